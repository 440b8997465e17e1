"""Frozen results of a session's queries."""

from __future__ import annotations

import re

from replaydbg.classes import dataclass, field
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.debugger.source.source_files import is_library
from replaydbg.engine.cell_queries import CellStep
from replaydbg.engine.protocol import Watch
from replaydbg.engine.query_results import Evaluation, Task, Variable
from replaydbg.engine.reports import Frame, Lane
from replaydbg.replay.clock import Moment

__all__ = [
    "Breakpoint",
    "ValueChange",
    "Evaluation",
    "Frame",
    "Here",
    "Lane",
    "Logged",
    "Moment",
    "MovedItem",
    "Origin",
    "Output",
    "PartChange",
    "WorkProgress",
    "Raised",
    "Task",
    "Variable",
    "LastWrite",
]

_ADDRESS = re.compile(r"\b0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Here:
    """The position of a session: before a line."""

    moment: Moment
    """Event and step."""
    count: int
    """Lines since the program's start, the one that is about to run included."""
    total: int
    """Lines of the whole run."""
    why: str
    """The reason for the stop: `seek`, `step`, `breakpoint`, `exception`, `watch`, `end`, `start`."""
    lane: int
    """The running thread."""
    stack: tuple[Frame, ...]
    """Its frames, innermost first; at most 1,000: `Session.stack` has them all."""
    lanes: tuple[Lane, ...]
    """All that are alive."""
    breakpoint: int = 0
    """The number of the breakpoint that stopped it; 0: none did."""
    is_changed: bool = False
    """Whether something was changed before: from there on it is another run than the recorded one."""
    message: str = ""
    """A message, such as the exception."""

    @property
    def top(self) -> Frame | None:
        """The innermost frame; None without Python code."""
        return self.stack[0] if self.stack else None

    @property
    def percent(self) -> float:
        """How far into the run it is."""
        return 100.0 * self.count / self.total if self.total else 100.0


def are_other_values(one: tuple[str, int], two: tuple[str, int]) -> bool:
    """Whether two values, each as its text and its digest, differ in more than the addresses of objects."""
    if one[1] != two[1] or not one[1] & 1:
        return one[1] != two[1]
    return _ADDRESS.sub("", one[0]) != _ADDRESS.sub("", two[0])


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception at the line that raised it."""

    count: int
    lane: int
    type: str
    message: str
    """Its first argument, if that is a str or an int."""
    is_uncaught: bool = False
    """Whether it ended the program."""
    lineage: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The full names of its type and of what that inherits from, in method resolution order."""
    file: str = field(default="", compare=False)
    """The source file of the function that raised it, as its code object names it; empty: not known."""
    line: int = field(default=0, compare=False)
    """The line there."""
    function: str = field(default="", compare=False)
    """The function's qualified name."""
    is_again: bool = field(default=False, compare=False)
    """Whether it had been raised before: by `raise error` in a handler, or an exception that was kept."""

    @property
    def text(self) -> str:
        """As a traceback names it, as far as that is known."""
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def is_own(self) -> bool:
        """Whether the program's own code raised it, and no library."""
        return not is_library(self.file)


@dataclass(frozen=True, slots=True)
class Output:
    """Something written to a standard stream."""

    count: int
    """The last line that ran before it was printed; where that is not known, the one at which it left the program."""
    event: int
    """The first event after it."""
    stream: int
    """1 or 2."""
    data: bytes
    line: int
    """The line of the function that printed it, as a count: its arguments may have been made after it began."""
    point: int = 0
    """The point of the line `count` at which it was printed; 0: it is not known."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A place at which a session stops, in either direction."""

    number: int
    file: str = ""
    """As the program's code objects name it."""
    line: int = 0
    function: str = ""
    """Name or qualified name: its first line."""
    exception: str = ""
    """Name of a type, or `*` for any: where it is raised."""
    is_own: bool = False
    """Whether it is only for exceptions that the program's own code raises."""
    own_code: OwnCode = OwnCode()
    """Which code that is."""
    place: str = ""
    """A variable, an attribute or an item: stops where its value has changed."""
    watch: Watch | None = None
    """The value that `place` names in the frame in which it was set; with `cell`, the data frame that has it."""
    cell: tuple[CellStep, ...] = ()
    """The steps from a data frame to a cell or column: see `cell_queries.CellStep`."""
    condition: str = ""
    """An expression that must be true there, in the innermost frame; one that raises counts as true."""
    ignore: int = 0
    """The number of hits to ignore first, in each search and in either direction."""
    hits: str = ""
    """A rule for the numbers of its hits in the whole run, such as `%3`; empty: all."""
    enabled: bool = True
    temporary: bool = False
    """Removed when it has stopped the session once."""

    @property
    def is_of_lines(self) -> bool:
        """Whether it is at a line or a function."""
        return not self.exception and self.watch is None

    def __str__(self) -> str:
        if self.exception:
            place = f"{'own ' if self.is_own else ''}exception {self.exception}"
        elif self.place:
            place = f"change of {self.place}"
        else:
            place = self.function or f"{self.file}:{self.line}"
        return place + (f" {self.hits}" if self.hits else "") + (f" if {self.condition}" if self.condition else "")


@dataclass(frozen=True, slots=True)
class CountedHit:
    """A hit of a breakpoint, with its number in the whole run."""

    count: int
    """The line that is about to run."""
    hit: int
    """From 1 on."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A change of a value."""

    count: int
    """The line that made it."""
    moment: Moment
    file: str
    line: int
    function: str
    lane: int
    text: str
    """The value after it, as text; empty: there is none."""


@dataclass(frozen=True, slots=True)
class PartChange:
    """An item or an attribute of a value, before and after."""

    name: str
    """The source text that follows the value's name: `.speed`, `['key']`."""
    before: str
    """As text; empty: there was none."""
    after: str


@dataclass(frozen=True, slots=True)
class Origin:
    """A part of an expression from which a value came."""

    text: str
    """The part as it would be written: `price`, `order.lines[0]`, `total("a")`, `1.5`."""
    kind: str
    """`place`: a variable, an attribute or an item; `call`; `constant`; `made`: a function."""
    is_same: bool
    """Whether the value is that of this part itself, and not computed from it or taken out of it."""
    events: tuple[int, ...] = ()
    """The events that C code asked for in this very call."""
    parts: tuple[Origin, ...] = ()
    """Origins of that value, of a call: of what the function returned, or the arguments of C code."""
    count: int = 0
    """Of a call of the program's own function: the line that returned it; 0: of nothing else."""
    moment: Moment | None = None
    file: str = ""
    line: int = 0
    function: str = ""
    source: str = ""
    """The text of that line."""


@dataclass(frozen=True, slots=True)
class MovedItem:
    """Where an item of a sequence was before a line moved it."""

    index: int
    source: str
    """An expression for it where the line is about to run; empty: the sequence has another name there."""


@dataclass(frozen=True, slots=True)
class LastWrite:
    """The last write of a value."""

    expression: str
    count: int
    """The line that wrote it; 0: it was not written since the program began."""
    moment: Moment | None
    file: str
    line: int
    function: str
    lane: int
    source: str
    """The line's text; empty if it is not available."""
    before: str
    """The value before, as text; empty: there was none."""
    after: str
    """The value after it."""
    is_argument: bool
    """Whether it was passed by the call in that line."""
    events: tuple[int, ...]
    """The events of the line until the value was there, at most 20. `origins` has those on which the value depends."""
    names: tuple[str, ...]
    """The variables that the line reads: ask about them at that moment to follow it further."""
    is_binding: bool = False
    """Whether the variable got another object there, rather than the object another content."""
    content: LastWrite | None = None
    """The last change of the object itself, if it is older than that binding."""
    is_equal: bool = False
    """Whether it wrote a value that was equal to the one that was there: nothing changed."""
    changed: LastWrite | None = None
    """The last change of the value, if that write left it equal."""
    note: str = ""
    """A note about what may have happened unseen."""
    origins: tuple[Origin, ...] = ()
    """Origins of the value, as far as they were traced."""
    unknown: str = ""
    """The part of its origin that is unknown; empty, with origins: nothing is missing."""
    parts: tuple[PartChange, ...] = ()
    """The parts of the value that changed, if its text did not; only some, if there are many."""
    moved: MovedItem | None = None
    """If the line only moved an item to this index: where it was."""


@dataclass(frozen=True, slots=True)
class Logged:
    """One line of a retroactive log."""

    count: int
    moment: Moment
    lane: int
    text: str


@dataclass(frozen=True, slots=True)
class WorkProgress:
    """How far something long has come."""

    what: str
    done: float
    """From 0 to 1."""
    seconds: float
    """Since it began."""
