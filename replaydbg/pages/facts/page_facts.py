"""What a page shows, as frozen values. Texts are as the program has them: the markup masks and escapes them."""

from __future__ import annotations

from replaydbg.classes import dataclass
from replaydbg.render.source.highlighting import Span


@dataclass(frozen=True, slots=True)
class Instant:
    """A moment to which the page links."""

    text: str
    """As every command takes it: `120:35`."""
    count: int
    """The number of lines up to it."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of source."""

    number: int
    text: str
    spans: tuple[Span, ...]
    """Its coloured pieces."""
    hits: int
    """How often it ran; -1: it contains no code."""
    values: tuple[tuple[str, str], ...]
    """Names and values beside it."""
    is_here: bool
    """Whether the frame executes it."""


@dataclass(frozen=True, slots=True)
class ShownVariable:
    """A local variable of a frame."""

    name: str
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A frame of the stack."""

    number: int
    """From the innermost one, 0."""
    file: str
    """In short form."""
    line: int
    function: str
    text: str
    """Its source line; empty if it is not available."""
    is_library: bool
    source: tuple[SourceLine, ...] = ()
    """The lines around; none of frames that are not shown in detail."""
    variables: tuple[ShownVariable, ...] = ()
    problem: str = ""
    """Why there are no variables; empty: there may be."""


@dataclass(frozen=True, slots=True)
class WriteStep:
    """A last write of a value."""

    expression: str
    headline: str
    """When it was written, and where; or that it was not."""
    instant: Instant | None
    """None: it was not written."""
    source: str
    details: tuple[str, ...]
    """What it was before and after, and where it came from."""
    depth: int
    """How many writes lead from the failure to it: 0 for a name in the failing line."""


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A line of output."""

    number: int
    """From 1; its moment is `@out:` and this number."""
    text: str
    stream: int
    """1 for stdout, 2 for stderr."""
    instant: Instant


@dataclass(frozen=True, slots=True)
class PrintedPart:
    """The output around the failure."""

    lines: tuple[PrintedLine, ...] = ()
    before: int = 0
    """Number of lines before these."""
    after: int = 0
    """Number of lines behind them."""


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """A row of the timeline: a thread, or a process that this one started."""

    name: str
    spans: tuple[tuple[int, int], ...]
    """Ranges of line counts in which it ran."""
    is_process: bool = False
    lane: int = 0
    """The number of the thread."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The run from left to right."""

    first: int
    """The count of the line at which it begins."""
    last: int
    bars: tuple[TimelineBar, ...]
    raised: tuple[tuple[Instant, str], ...]
    """Exceptions that the program's own code raised; a selection, if there are many."""
    more_bars: int = 0
    """Number of rows that are left out."""


@dataclass(frozen=True, slots=True)
class CallBar:
    """A call, or several short ones in a row."""

    depth: int
    """From the outermost call, 0."""
    first: int
    last: int
    """The counts of lines at which it begins and ends."""
    name: str
    title: str
    """Name, place, moment and length."""
    is_library: bool


@dataclass(frozen=True, slots=True)
class CallStrip:
    """The calls of a thread."""

    name: str
    bars: tuple[CallBar, ...]
    deepest: int
    """How many levels of calls there were; the bars may have fewer."""


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """A function that was called."""

    name: str
    place: str
    """File and line, in short form."""
    calls: int
    lines: int
    """From its calls to their ends."""


@dataclass(frozen=True, slots=True)
class CallChart:
    """The calls of functions from left to right."""

    first: int
    """The count of the line at which it begins."""
    last: int
    strips: tuple[CallStrip, ...]
    more_strips: int
    """Number of threads that are left out."""
    functions: tuple[CalledFunction, ...]
    """Those that took most lines."""
    calls: int
    """How many calls there are in all."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class HeapPoint:
    """The heap at a moment."""

    instant: Instant
    objects: int
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class HeapCourse:
    """How the heap grew."""

    points: tuple[HeapPoint, ...]
    verdict: str
    rows: tuple[tuple[str, str, tuple[int, ...], tuple[int, ...]], ...]
    """What grew: what it is, its type, and its number and bytes in each snapshot."""
    note: str = ""
    """What the snapshots are."""


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process of a group."""

    number: int
    how: str
    ended: str
    command: str
    is_shown: bool
    """Whether the page is about it."""
    problem: str
    """Why there is no recording that can be read; empty: there is one."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The group of the process."""

    name: str
    rows: tuple[ProcessRow, ...]
    more: int
    """Number of processes without a row."""
    drawings: tuple[bytes, ...]
    """The space-time diagram as SVG, with less and less around the cut: the first one that fits is shown."""
    note: str
    """About the cut; or why there is no drawing."""


@dataclass(frozen=True, slots=True)
class OpeningCommand:
    """A command that opens the recording."""

    text: str
    purpose: str


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Everything on a page."""

    kind: str
    """`Failure`, `End`, or another word for what it shows."""
    title: str
    """The exception, or how the program ended."""
    message: str
    """The whole text of the exception, if the title is not all of it."""
    name: str
    """The recording, as commands take it."""
    facts: tuple[tuple[str, str], ...]
    """Labels and texts about the run."""
    place: str = ""
    """Where it is: file, line, function and thread."""
    instant: Instant | None = None
    """The moment that is shown; None: nothing was replayed."""
    warnings: tuple[str, ...] = ()
    """What the reader must know: that the replay differed, what is missing."""
    frames: tuple[StackFrame, ...] = ()
    more_frames: int = 0
    """Number of frames between the last two of `frames`."""
    shown_frame: int = 0
    """The number of the frame that is open at first."""
    exceptions: tuple[tuple[str, str], ...] = ()
    """The exceptions that were being handled: type and text."""
    writes: tuple[WriteStep, ...] = ()
    writes_note: str = ""
    printed: PrintedPart | None = None
    """None: unknown."""
    timeline: Timeline | None = None
    calls: CallChart | None = None
    heap: HeapCourse | None = None
    group: GroupFacts | None = None
    events: tuple[tuple[str, ...], ...] = ()
    """The last events, where nothing was replayed."""
    commands: tuple[OpeningCommand, ...] = ()
