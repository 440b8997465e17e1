"""The data that the terminal UI shows, as frozen values: the worker creates them, the panels draw them."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING

from replaydbg.classes import dataclass, field
from replaydbg.render.source.highlighting import Span

if TYPE_CHECKING:
    from pathlib import Path

    from replaydbg.debugger.assertions import Assertion
    from replaydbg.groups.messages import MessageEnd


NESTED = 20
"""Number of steps of tasks that are looked at for the one that runs at a line."""

WRONG = {
    "bad": "an expression is true",
    "check": "an expression is false",
    "raises": "an expression raises, or an exception of this type was raised",
    "function": "my function FILE.py:NAME returns true, or an assertion in it fails",
    "output": "the output matches a pattern",
    "invariant": "an invariant of the program is false",
}
"""The predicates of a bisection, with their descriptions."""

BEHIND = {
    "--frame FUNC": "variables of that function's innermost call",
    "--in MODULE": "names of that module (default: the main module)",
    "--from MOMENT": "start of the search",
    "--to MOMENT": "end of the search",
    "--only-at PLACE": "evaluate only there: FILE:LINE, or a function's first line",
    "--linear": "probe every line; finds temporary violations",
    "--permanent": "the line after which it stayed so",
    "--all": "list every change between bad and good",
}
"""Words that may follow a predicate, and their purpose."""


@dataclass(frozen=True, slots=True)
class FrameRow:
    """A frame of the stack."""

    file: str
    """The name in the code object."""
    place: str
    """File, line and function in short form."""
    line: int
    function: str
    text: str
    """The line of source; empty if it is not available."""
    is_library: bool = False


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A lane, a thread of the program."""

    id: int
    name: str
    state: str
    """Description of its activity, or of what it waits for."""
    place: str
    is_shown: bool
    """Whether the stack panel shows its frames."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """An asyncio task that is not done."""

    name: str
    state: str
    """Whether it runs, or what it waits for."""
    places: tuple[str, ...]
    depth: int
    """How many tasks that await each other are above it."""


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A variable or a watched expression."""

    name: str
    text: str
    mark: str = " "
    """The change since the previous stop: `~` changed, `+` new, `-` gone, or a space."""
    old: str = ""
    """The previous value, if it has changed."""
    watch: int = 0
    """The number of the watched expression; 0: it is a variable."""
    parts: int = 0
    """Number of items or attributes."""
    depth: int = 0
    """Nesting depth within the value that holds it."""
    expression: str = ""
    """Its expression in the frame."""
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
    """0 if it is not at a line."""
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
    """A source file with its hit counts."""

    file: str
    title: str
    lines: tuple[str, ...]
    spans: tuple[tuple[Span, ...], ...]
    """The coloured pieces of each line."""
    hits: Mapping[int, int]
    """Number of hits of each line in the whole run."""
    code: frozenset[int]
    """The lines that contain code: those of them without hits never ran."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The session's position, with all data that the panels show of it."""

    count: int
    total: int
    moment: str
    percent: str
    event: int
    lane: str
    """The lane, as it is shown."""
    lane_number: int
    place: str
    reason: str
    """The reason for the stop, as far as it is worth a notice."""
    why: str
    is_changed: bool
    seconds: float | None
    """Seconds since the start, by the last clock mark; None: unknown."""
    frames: tuple[FrameRow, ...]
    frame: int
    """The index of the selected frame."""
    depth: int
    """Number of frames: those of a deep stack are not all included."""
    lanes: tuple[LaneRow, ...]
    tasks: tuple[TaskRow, ...]
    values: tuple[ValueRow, ...]
    points: tuple[PointRow, ...]
    marks: tuple[MarkRow, ...]
    direction: str
    """`backwards` if n, s, f and c were reversed; else empty."""
    is_commanded: bool
    """Whether commands of a breakpoint are being typed."""
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
    """From 1; its moment is `@out:` and this number."""
    text: str
    stream: int
    """1 for stdout, 2 for stderr."""
    count: int
    """The line that printed it."""


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """A mark on the timeline."""

    count: int
    text: str = ""
    is_faint: bool = False
    """Whether it is a less important one of its row: a look that found nothing wrong."""


@dataclass(frozen=True, slots=True)
class FailedWhere:
    """Where the exception was raised that ended the program, as it is shown."""

    place: str
    moment: str
    percent: str
    lane: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The data of the whole run."""

    name: str
    """The recording's name."""
    command: str
    python: str
    ended: str
    """Description of how it ended."""
    first: int
    """The line count of the program's own first line, where the timeline begins."""
    first_event: int
    """The last event before it."""
    last: int
    """The line count at its end."""
    events: int
    total: int
    density: tuple[int, ...]
    """Number of events in each of equal stretches between `first` and `last`."""
    exceptions: tuple[TimelineMark, ...]
    """The exceptions; a selection, if there are many."""
    failure: TimelineMark | None
    """The exception that ended the program."""
    failed_at: tuple[tuple[str, int], ...]
    """Its traceback: file and line of each frame, innermost first."""
    failed_where: FailedWhere | None
    """Where it was raised, as it is shown."""
    snapshots: tuple[TimelineMark, ...]
    output: tuple[OutputLine, ...]
    output_left_out: int
    """Number of lines of output before these."""
    limitation: str
    """Why a seek may take longer than usual; empty: no reason."""
    words: tuple[str, ...]
    """The commands of the prompt."""
    claim: Assertion | None = None
    """The assertion of a failed test, if there is one."""
    process: str = ""
    """The number of the process in its group; empty: it is in none."""


@dataclass(frozen=True, slots=True)
class LaneSpans:
    """The times at which a lane ran: a row of the timeline."""

    lane: int
    name: str
    spans: tuple[tuple[int, int], ...]
    """Ranges of line counts, from and to."""


@dataclass(frozen=True, slots=True)
class TaskSpans:
    """The times at which an asyncio task ran: a row of the timeline."""

    name: str
    lane: int
    """The lane of its event loop."""
    spans: tuple[tuple[int, int], ...]
    """Ranges of line counts, from and to."""
    last: int
    """Where the row ends: the end of the task's last step, or of the run if it was not done."""


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """The asyncio tasks of a run."""

    tasks: tuple[TaskSpans, ...] = ()
    """In the order in which they began to run."""
    turns: Mapping[int, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)
    """For each lane, in order: the first line of a step, the line behind it, and the place of the task in `tasks`."""

    def running(self, lane: int, count: int) -> int | None:
        """Return the place in `tasks` of the one that a lane runs at a line; None: it runs none."""
        turns = self.turns.get(lane, ())
        at = bisect_right(turns, (count, sys.maxsize)) - 1
        # A step that runs another event loop goes on behind the steps in it.
        nearest = (each for each in reversed(turns[max(at - NESTED, 0) : at + 1]) if each[0] < count <= each[1])
        return next((each[2] for each in nearest), None)


@dataclass(frozen=True, slots=True)
class Track:
    """The moments found by a query: a row of the timeline."""

    key: str
    title: str
    marks: tuple[TimelineMark, ...]
    more: int = 0
    """Number of further moments that are not included."""
    levels: tuple[tuple[int, float], ...] = ()
    """In place of marks, a curve: lines of the run, and the height from there on, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A line of an answer; choosing it may lead to a moment or another query."""

    text: str
    style: str = ""
    count: int = 0
    """The line count to go to; 0: none."""
    why: str = ""
    """An expression whose writer is then looked up there."""
    path: str = ""
    """The path of a heap object to query."""
    end: MessageEnd | None = None
    """A send or a receive to go to, in any process."""
    order: str = ""
    """A command of the prompt."""
    recording: Path | None = None
    """Another recording to open."""
    values: tuple[str, float] | None = None
    """An expression whose values are searched for again, for so many seconds."""

    @property
    def leads_somewhere(self) -> bool:
        """Whether it can be chosen."""
        leads = (self.count, self.why, self.path, self.end, self.order, self.recording, self.values)
        return any(leads)


@dataclass(frozen=True, slots=True)
class AnswerList:
    """The answer to a query, as a list to choose from."""

    title: str
    choices: tuple[Choice, ...]
    hint: str = "Enter goes there"
    at: int = 0
    """The index at which the cursor begins."""


@dataclass(frozen=True, slots=True)
class LineCompletion:
    """What completes a line that is being typed."""

    start: int
    """Where in the line the words begin."""
    words: tuple[str, ...]
    common: str
    """The beginning that all words have."""


@dataclass(frozen=True, slots=True)
class HeapRow:
    """A line of a heap diff."""

    text: str
    mark: str = " "
    """`~`, `+`, `-` or a space."""
    value: str = ""
    path: str = ""
    """The path of the object; empty: the line has none."""
    is_title: bool = False
    is_changed: bool = False
    """Whether it shows a changed value."""
    is_text: bool = False
    """Whether it is a sentence, to be wrapped."""
    series: tuple[int, ...] = ()
    """Numbers that are drawn as bars before the text."""


@dataclass(frozen=True, slots=True)
class HeapAnswer:
    """The differences between two moments, or what is in memory at one."""

    title: str
    rows: tuple[HeapRow, ...]
    scope: str
    """The scope of reported differences: `mine`, `standard` or `all`; empty: it is about one moment."""
    since: int
    """The line count of the moment that was compared with the present one."""


@dataclass(frozen=True, slots=True)
class EventsAnswer:
    """The program's events around a moment."""

    rows: tuple[tuple[int, str], ...]
    """The number and the text of each event."""
    here: int
    """The last event before this moment."""


@dataclass(frozen=True, slots=True)
class ConsoleLine:
    """A line of text for the console."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to an order."""

    scene: Scene | None = None
    texts: tuple[SourceText, ...] = ()
    """Source files that are shown for the first time."""
    printed: tuple[ConsoleLine, ...] = ()
    error: str = ""
    """The error message; empty on success."""
    is_over: bool = False
    """Whether the user asked to quit."""
    answer: object = None
    """The result of a query."""
    overview: Overview | None = None
    """The run, if it is that of another process than before."""
