"""Messages between the debugger and a process of the engine (the other side is replaydbg/native/engine/engine.c)."""

from __future__ import annotations

from itertools import pairwise

from replaydbg.classes import dataclass
from replaydbg.engine.queries import (
    EvaluateAtLines,
    EvaluatePassages,
    FindStores,
    FollowTasks,
    ItemKey,
    JudgeEachLine,
)
from replaydbg.engine.query_results import DictEntry
from replaydbg.log.coding.encode import text, varint, zigzag

VERSION = 14
"""Both sides come from one installation; the keeper refuses another number than its own."""

CLONE, RUN, WHERE, STACK, DIVERT, CHANGE, SPACE, OBJECT = b"C", b"R", b"W", b"L", b"D", b"M", b"I", b"O"
HEAP, FREED, BECOME = b"G", b"N", b"F"
"""Kinds of messages to a process."""

STOOD, LEFT, CLONED, ENDED, FRAMES, LIES, ANSWER, PICTURE, BECAME = "S", "K", "C", "E", "L", "O", "A", "P", "F"
"""Kinds of messages from a process: it stopped, it left a checkpoint, it was cloned, the program ended, the frames of a
thread, the address of an object, an answer, a file with a snapshot of its heap, that it became a child. X in place of
an answer or a file has the reason of a failure."""

MOST_CALLS = 100_000
"""The most calls that are reported of a run."""
MOST_BREAKS = 255
"""The most breaks of a run: the core has one byte for their number."""

MOST_WATCHED = 256
"""The most values that are watched in one run: the core has that many places."""

ANY, STEP, NEXT, FINISH, TRACK = range(5)
"""The rule that ends a step forward, besides a count of lines: none, the thread's next line, the next one of the same
activation or of a caller, a caller's. TRACK ends nothing: the count of the thread's last line is reported."""

MOST_PATTERNS = 256
"""The most patterns of files that say which code is the user's own: the core has that many places."""


@dataclass(frozen=True, slots=True)
class Break:
    """A place where a run stops, or whose passages it counts."""

    file: str = ""
    """As the program's code objects name it; empty with a function: in any file."""
    line: int = 0
    """From 1; 0 with a function."""
    function: str = ""
    """Name or qualified name of a function: its first line."""
    stop_at: int = 1
    """The passage that stops the run, from 1; 0: none does."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step from a variable to a value: exactly one of the six is given."""

    attribute: str | None = None
    index: int | None = None
    key: str | None = None
    cell: tuple[int, ...] | None = None
    """An item of an array of several dimensions: an index for each."""
    field: tuple[str, int] | None = None
    """A field in the structure of a type in C: the full name of the type, and the offset of the field."""
    entry: DictEntry | None = None
    """An item of a dictionary whose key is neither text nor a whole number."""

    @property
    def item(self) -> ItemKey | None:
        """The key of an item; None of an attribute."""
        if self.entry is not None:
            return ("entry", self.entry.key, self.entry.type)
        return self.key if self.index is None and self.cell is None else self.cell if self.index is None else self.index

    @property
    def indices(self) -> tuple[int, ...]:
        """The numbers by which it is an item; empty: it is none, or of a dictionary."""
        return self.cell or (() if self.index is None else (self.index,))

    @property
    def length(self) -> int:
        """How many steps it is for the core."""
        return len(self.cell) if self.cell is not None else 1

    def encode(self) -> bytes:
        """Return it as the core reads it."""
        if self.attribute is not None:
            return varint(1) + zigzag(0) + text(self.attribute)
        if self.index is not None:
            return varint(2) + zigzag(self.index) + text("")
        if self.cell is not None:
            return b"".join(varint(4) + zigzag(each) + text("") for each in self.cell)
        if self.field is not None:
            return varint(5) + zigzag(self.field[1]) + text(self.field[0])
        if self.entry is not None:
            return varint(6) + zigzag(self.entry.key) + text("") + zigzag(self.entry.hash)
        assert self.key is not None, "one of six"
        return varint(3) + zigzag(0) + text(self.key)


@dataclass(frozen=True, slots=True)
class Watch:
    """A value whose changes are looked for: a local variable of one activation, or a module's, or an object, and what
    it leads to."""

    name: str
    """The variable; empty of an object."""
    module: str = ""
    """Of a module's variable: the module's name."""
    started: int = 0
    """Of a local variable: when its function's activation was started, as a count of lines."""
    first_line: int = 0
    """Of a local variable: where its function begins."""
    object: tuple[int, int] = (0, 0)
    """The address of an object, the same in all processes of the session, and of its type."""
    steps: tuple[PathStep, ...] = ()
    """From the variable, or the object, to the value; at most 32."""
    stops: bool = True
    """Whether a change stops the run; if not, changes are only counted."""
    looks_at_returns: bool = False
    """Whether it is checked when functions return as well as at each line."""
    is_cell: bool = False
    """Whether the watch is on the variable's cell, which functions share, and not on its content."""

    def encode(self) -> bytes:
        """Return it as the core reads it."""
        flags = int(self.stops) | int(self.looks_at_returns) << 1 | int(self.is_cell) << 2
        kind = 3 if self.object[0] else 2 if self.module else 1
        numbers = (kind, flags, self.started, self.first_line, *self.object)
        head = b"".join(varint(each) for each in numbers)
        steps = b"".join(each.encode() for each in self.steps)
        length = sum(each.length for each in self.steps)
        return head + text(self.module) + text(self.name) + varint(length) + steps


@dataclass(frozen=True, slots=True)
class Watches:
    """Several values that are watched in one run; changes are counted for each."""

    each: tuple[Watch, ...]
    """At most MOST_WATCHED."""

    def encode(self) -> bytes:
        """Return it as the core reads it."""
        assert 0 < len(self.each) <= MOST_WATCHED, len(self.each)
        encoded = [each.encode() for each in self.each]
        return varint(5) + varint(len(encoded)) + b"".join(varint(len(each)) + each for each in encoded)


@dataclass(frozen=True, slots=True)
class Judged:
    """A predicate that is watched like a value: a change is one from not bad to bad, or back."""

    query: JudgeEachLine
    """The predicate."""
    stops: bool = False
    """Whether a change stops the run; if not, changes are only counted."""
    looks_at_returns: bool = False
    """Whether it is evaluated when functions return as well as at each line."""

    def encode(self) -> bytes:
        """Return it as the core reads it."""
        flags = int(self.stops) | int(self.looks_at_returns) << 1
        return varint(4) + varint(flags) + self.query.encode()


@dataclass(frozen=True, slots=True)
class RunOrder:
    """An order to go on, until one of several things happens or the program ends."""

    until: int = 0
    """The count of lines at which to stop; 0: none."""
    rule: int = ANY
    """ANY, STEP, NEXT or FINISH."""
    lane: int = 0
    """The thread that the rule is for."""
    own: tuple[str, ...] | None = None
    """None: the rule is for all code; else for own code alone, by these patterns of files: see `OwnCode`."""
    spacing: float = 0.0
    """Seconds of CPU time between the checkpoints that are left behind; 0: none are."""
    at_raises: bool = False
    """Whether an exception stops it where it is raised."""
    event: int = 0
    """Stop inside the line that asked for this event, as soon as it has been consumed; 0: none."""
    point: int = 0
    """Stop inside the line `until`, at this point of it; 0: before it."""
    follows_path: bool = False
    """Whether to report the path of the innermost frame: its instructions, calls and events."""
    most_calls: int = 0
    """Report so many calls of functions, at most MOST_CALLS; with `own` only those of own code."""
    breaks: tuple[Break, ...] = ()
    """At most MOST_BREAKS."""
    passages: EvaluatePassages | FindStores | EvaluateAtLines | FollowTasks | None = None
    """The query to evaluate at each passage of a break, or at `lines`."""
    lines: tuple[int, ...] = ()
    """Counts of lines, ascending, from 1: what EvaluateAtLines evaluates there counts as passages of break 1."""
    most_passages: int = 0
    """The number of passages with a true condition after which to stop at one."""
    watch: Watch | Watches | Judged | None = None
    """A value to watch, or several, or a predicate to evaluate, line by line."""

    def encode(self) -> bytes:
        """Return it as the core reads it."""
        assert len(self.breaks) <= MOST_BREAKS, len(self.breaks)
        head = varint(self.until) + varint(int(self.spacing * 1e9)) + varint(self.rule) + varint(self.lane)
        patterns = self.own or ()
        head += varint(int(self.own is not None)) + varint(len(patterns))
        head += b"".join(text(each + "\0") for each in patterns)
        head += varint(int(self.at_raises)) + varint(self.event) + varint(self.point) + varint(int(self.follows_path))
        head += varint(self.most_calls)
        breaks = b"".join(
            text(each.file + "\0") + text(each.function + "\0") + varint(each.line) + varint(each.stop_at)
            for each in self.breaks
        )
        query = self.passages.encode() if self.passages is not None else b""
        passages = varint(self.most_passages) + varint(len(query)) + query
        lines = b"".join(varint(count - before) for before, count in pairwise((0, *self.lines)))
        watch = self.watch.encode() if self.watch is not None else varint(0)
        return head + varint(len(self.breaks)) + breaks + passages + varint(len(lines)) + lines + watch
