"""What a row of the gate table says, and short ways to write many of them."""

from __future__ import annotations

from typing import NamedTuple

# The same bits as in replaydbg/native/core.h.
ARGS = 1
"""Arguments are logged and checked."""
DIGEST = 2
"""Bytes leave: their digest is logged and checked."""
FILLS = 4
"""The call fills a buffer of the caller, which is logged."""
SHAPE = ARGS | DIGEST | FILLS
BOTH = 8
"""Also executed in replay: its effect is local to the process."""
PATH = 16
"""Arguments may be path-like objects."""
OPENS = 32
"""The result is a descriptor or a tuple of them."""
CLOSES = 64
"""The first argument is a descriptor that is closed."""
COPIES = 128
"""With OPENS: the new descriptor is a copy of the first argument's."""
WRITES_FD = 256
"""Bytes go to the descriptor in the first argument."""
SELF = 512
"""Of a method: the object belongs to the arguments."""
FILLS_ALL = 1024
"""With FILLS: all of the buffer is filled, whatever number is returned."""
READS = 2048
"""Bytes come from the current position of a file."""
ALWAYS = 4096
"""The handler is also asked where nothing is a crossing: in other threads, and after the recording has ended."""
MAKES_NOTHING = 8192
"""Neither the C function nor what comes of it is, or uses for a moment, an object that the collector tracks."""
HEARS = 16384
"""It waits for other processes, or tells of them: after it, what they did can be known."""
REPEATS = 32768
"""Of edited code: a clock, or what stays the same in a process. What it gave last can be given again."""
ACCEPTED = 65536
"""Of edited code: it gives nothing, and nobody asks later whether it was done."""
WRITTEN = 131072
"""Of edited code: bytes leave; other ones than recorded count as written, all of them. With ACCEPTED: it gives no
number."""
DESCRIPTOR = 262144
"""Of edited code: the first argument is a descriptor."""
OPENS_FIRST = 524288
"""Of edited code: the outcome begins with a new descriptor."""

NO_BUFFER = 99
"""The index of the buffer argument where there is none."""

REGULAR = "regular"
STOPS = "stops"
NOTED = "noted"


class Row(NamedTuple):
    """One gate."""

    module: str
    """The module that has the function, such as `posix`."""
    name: str
    """Its name there: `stat`, `FileIO.read`, or `poll().poll` for a type that has no name."""
    handler: str
    """Who serves it in the core: `regular`, `stops`, `noted`, or the name of an irregular one."""
    flags: int
    """The bits above."""
    buffer: int = NO_BUFFER
    """Index of the argument that is a buffer (of a method: not counting the object)."""

    @property
    def full_name(self) -> str:
        """`posix.stat`."""
        return f"{self.module}.{self.name}"

    @property
    def kind(self) -> str:
        """`regular`, `irregular` or `unsupported`, for people."""
        if self.handler in (STOPS, NOTED):
            return "unsupported"
        return REGULAR if self.handler == REGULAR else "irregular"


def rows(module: str, names: str, flags: int = ARGS, handler: str = REGULAR, buffer: int = NO_BUFFER) -> list[Row]:
    """Return a row for each of the names, which are separated by white space."""
    return [Row(module, name, handler, flags, buffer) for name in names.split()]
