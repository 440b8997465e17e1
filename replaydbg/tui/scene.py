"""What the terminal UI shows, as frozen values: the worker makes them of a session's answers, the panels draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replaydbg.debugger.claimed import Claim

Span = tuple[int, int, str]
"""A piece of a line of source: where it begins and ends, and what it is, such as `keyword`."""


WRONG = {
    "bad": "an expression is true",
    "check": "an expression is false",
    "raises": "an expression raises, or an exception of this type was raised",
    "function": "my function FILE.py:NAME returns true, or an assertion in it fails",
    "output": "the output matches a pattern",
    "invariant": "an invariant of the program is false",
}
"""What a bisection can look for, in words."""

BEHIND = {
    "--frame FUNC": "variables of that function's innermost call",
    "--in MODULE": "names of that module (default: the main module)",
    "--from MOMENT": "start of the search",
    "--to MOMENT": "end of the search",
    "--linear": "probe every line; finds temporary violations",
    "--all": "list every change between bad and good",
}
"""What may stand behind that, and what it is for."""


@dataclass(frozen=True, slots=True)
class FrameRow:
    """A frame of the stack."""

    file: str
    """As the code object names it."""
    place: str
    """File, line and function, as short as they are clear."""
    line: int
    function: str
    text: str
    """The line of source; empty if it is not at hand."""
    is_library: bool = False


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A lane, a thread of the program."""

    id: int
    name: str
    state: str
    """What it does or waits for, in words."""
    place: str
    is_shown: bool
    """Whether its frames are the ones on the stack panel."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """An asyncio task that is not done."""

    name: str
    waits_for: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A variable or a watched expression."""

    name: str
    text: str
    mark: str = " "
    """What became of it since the stop before: `~` another value, `+` new, `-` gone, or a space."""
    old: str = ""
    """The value before, where it is another one now."""
    watch: int = 0
    """The number of the watched expression; 0: it is a variable."""
    parts: int = 0
    """How many items or attributes it has."""
    depth: int = 0
    """How deep it lies in the value that holds it."""
    expression: str = ""
    """What it is called in the frame."""
    is_open: bool = False
    """Whether its parts follow it."""
    digest: int = 0
    """See Variable."""


@dataclass(frozen=True, slots=True)
class PointRow:
    """A breakpoint."""

    number: int
    text: str
    file: str
    line: int
    """0 where it is at no line."""
    is_enabled: bool


@dataclass(frozen=True, slots=True)
class MarkRow:
    """A named moment."""

    name: str
    moment: str
    count: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A source file with what ran of it."""

    file: str
    title: str
    lines: tuple[str, ...]
    spans: tuple[tuple[Span, ...], ...]
    """For each line, its pieces that have a colour of their own."""
    hits: Mapping[int, int]
    """How often each line ran in the whole run."""
    code: frozenset[int]
    """The lines that hold code: those of them without hits never ran."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the session stands, with all that the panels show of it."""

    count: int
    total: int
    moment: str
    percent: str
    event: int
    lane: str
    place: str
    reason: str
    """What brought it here, as far as it needs to be said."""
    why: str
    is_changed: bool
    seconds: float | None
    """Since the start, by the last clock mark; None: not known."""
    frames: tuple[FrameRow, ...]
    frame: int
    """The selected one."""
    depth: int
    """How many frames there are: of a deep stack not all are here."""
    lanes: tuple[LaneRow, ...]
    tasks: tuple[TaskRow, ...]
    values: tuple[ValueRow, ...]
    points: tuple[PointRow, ...]
    marks: tuple[MarkRow, ...]
    direction: str
    """`backwards` if n, s, f and c were turned; empty otherwise."""
    is_commanded: bool
    """Whether lines are being typed that belong to a breakpoint."""
    values_error: str = ""
    """Why there are no values; empty: there are."""

    @property
    def at(self) -> FrameRow | None:
        """The selected frame."""
        return self.frames[self.frame] if self.frame < len(self.frames) else None


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line that the program wrote."""

    number: int
    """From 1; its moment is `@out:` and this."""
    text: str
    stream: int
    """1 or 2."""
    count: int
    """The line that printed it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something on the timeline."""

    count: int
    text: str = ""
    is_faint: bool = False
    """Whether it is one of the less telling ones of its row: looked at, and nothing was wrong."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole run."""

    name: str
    """The recording's."""
    command: str
    python: str
    ended: str
    """How it ended, in words."""
    first: int
    """The count of the program's own first line, where the timeline begins."""
    first_event: int
    """The last event before it."""
    last: int
    """Where it ends."""
    events: int
    total: int
    density: tuple[int, ...]
    """Events in each of equal stretches between `first` and `last`."""
    exceptions: tuple[Mark, ...]
    """A few of them, if there are many."""
    failure: Mark | None
    """The exception that ended the program."""
    failed_at: tuple[tuple[str, int], ...]
    """Where it came from: file and line of each frame, innermost first."""
    snapshots: tuple[Mark, ...]
    output: tuple[OutputLine, ...]
    output_left_out: int
    """Lines of output before these."""
    limitation: str
    """Why a seek may take longer than it should; empty: it should not."""
    words: tuple[str, ...]
    """The words of the prompt."""
    claim: Claim | None = None
    """Of a test that failed: what its line claims, if it claims something."""


@dataclass(frozen=True, slots=True)
class LaneSpans:
    """When a lane ran: a row of the timeline."""

    lane: int
    name: str
    spans: tuple[tuple[int, int], ...]
    """Counts of lines, from and to."""


@dataclass(frozen=True, slots=True)
class Track:
    """Moments that were found: a row of the timeline."""

    key: str
    title: str
    marks: tuple[Mark, ...]
    more: int = 0
    """So many more are not there."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A line of an answer; choosing it leads somewhere, if it does."""

    text: str
    style: str = ""
    count: int = 0
    """The line of the run to go to; 0: nowhere."""
    why: str = ""
    """Who wrote this is asked there, then."""
    path: str = ""
    """An object of the heap that is asked about."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question was answered, as a list to choose from."""

    title: str
    choices: tuple[Choice, ...]
    hint: str = "Enter goes there"
    at: int = 0
    """The one that the cursor begins at."""


@dataclass(frozen=True, slots=True)
class HeapRow:
    """A line of a heap diff."""

    text: str
    mark: str = " "
    """`~`, `+`, `-` or a space."""
    value: str = ""
    path: str = ""
    """The object; empty: the line is of none."""
    is_title: bool = False
    is_changed: bool = False
    """Whether it is of a value that is another one."""


@dataclass(frozen=True, slots=True)
class HeapAnswer:
    """What differs between two moments."""

    title: str
    rows: tuple[HeapRow, ...]
    scope: str
    """Whose objects are told: `mine`, `standard` or `all`."""
    since: int
    """The count of lines at the moment that it was compared with."""


@dataclass(frozen=True, slots=True)
class EventsAnswer:
    """What the program asked the outside around a moment."""

    rows: tuple[tuple[int, str], ...]
    """The number and the text of each."""
    here: int
    """The last event before here."""


@dataclass(frozen=True, slots=True)
class Said:
    """A line of text for the console."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of an order."""

    scene: Scene | None = None
    texts: tuple[SourceText, ...] = ()
    """Source files that are shown for the first time."""
    said: tuple[Said, ...] = ()
    error: str = ""
    """What could not be done, and why."""
    is_over: bool = False
    """Whether the user wants it to end."""
    answer: object = None
    """What a question gave."""
