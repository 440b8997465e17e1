"""The fields of a gate table row, and short ways to write many rows."""

from __future__ import annotations

from replaydbg.classes import NamedTuple

# replaydbg/native/base/constants.h is written from these.
ARGS = 1
"""Arguments are logged and checked."""
DIGEST = 2
"""Bytes leave the program: their digest is logged and checked."""
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
"""For a method: the object is one of the arguments."""
FILLS_ALL = 1024
"""With FILLS: all of the buffer is filled, whatever number is returned."""
READS = 2048
"""Bytes come from the current position of a file."""
ALWAYS = 4096
"""The handler is also called where nothing is a crossing: in other threads, and after the end of the recording."""
MAKES_NOTHING = 8192
"""Neither the C function nor its result is, or temporarily uses, an object that the collector tracks."""
HEARS = 16384
"""It waits for other processes, or receives from them: after it, their actions can be known."""
REPEATS = 32768
"""For edited code: a clock, or a constant of the process. Its last outcome can be repeated."""
ACCEPTED = 65536
"""For edited code: it returns nothing, and nothing later depends on whether it was done."""
WRITTEN = 131072
"""For edited code: bytes leave; other ones than recorded count as written, all of them.

With ACCEPTED: it returns no number.
"""
DESCRIPTOR = 262144
"""For edited code: the first argument is a descriptor."""
OPENS_FIRST = 524288
"""For edited code: the outcome begins with a new descriptor."""
OUTPUT = 1048576
"""For `record --durable`: others see its effect, so the log is synchronised before it."""
AT_ONCE = 2097152
"""With OUTPUT: no other thread runs meanwhile."""
UNLESS_FILE = 4194304
"""With OUTPUT: not if its descriptor leads to a regular file that is not synchronised by each write."""
NAMES = 8388608
"""It makes, moves or removes a name of a file, or an attribute. The time is logged before it, for `resume`."""

STAYS = 16777216
"""In a future: made, since it stays inside the process."""
IF_INSIDE = 33554432
"""In a future: made if the descriptors that it is given lead to nothing but the program itself."""
DRAWN = 67108864
"""In a future: answered with numbers that are drawn from its seed."""

ASKS = 134217728
"""In a future: it asks the outside, and is told what the recorded run was told."""

NO_BUFFER = 99
"""The index of the buffer argument if there is none."""

REGULAR = "regular"
STOPS = "stops"
NOTED = "noted"


class Row(NamedTuple):
    """One gate."""

    module: str
    """The module that contains the function, such as `posix`."""
    name: str
    """Its name there: `stat`, `FileIO.read`, or `poll().poll` for a type that has no name."""
    handler: str
    """Its handler in the core: `regular`, `stops`, `noted`, or the name of an irregular one."""
    flags: int
    """The bits above."""
    buffer: int = NO_BUFFER
    """Index of the argument that is a buffer (for a method: not counting the object)."""

    @property
    def full_name(self) -> str:
        """The name with its module, such as `posix.stat`."""
        return f"{self.module}.{self.name}"

    @property
    def kind(self) -> str:
        """`regular`, `irregular` or `unsupported`, for display."""
        if self.handler in (STOPS, NOTED):
            return "unsupported"
        return REGULAR if self.handler == REGULAR else "irregular"


def rows(module: str, names: str, flags: int = ARGS, handler: str = REGULAR, buffer: int = NO_BUFFER) -> list[Row]:
    """Return a row for each of the names, which are separated by white space."""
    return [Row(module, name, handler, flags, buffer) for name in names.split()]
