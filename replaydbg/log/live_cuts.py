"""Live cuts of a group: values of its clock, written down while it runs.

Every send takes a ticket of the clock before it is made, every receive after it. So all that happened up to a value is
a consistent global state, whatever process wrote it down: a value is a marker on all channels at once.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

from replaydbg.classes import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CUTS = "cuts"
"""The file in the directory of a group that runs."""
MOST_CUTS = 10_000
"""Later ones are not kept."""
LONGEST_NAME = 200
"""Bytes of a name."""

_AT_TICKETS = 32
"""Where in the page the clock is, see log/page.h."""
_LARGEST = 1 << 63


class LiveCut(NamedTuple):
    """A moment of the group's clock."""

    ticket: int
    """How many tickets the group had taken."""
    time: int
    """When, in nanoseconds since 1970."""
    process: int
    """The process that asked for it (`replaydbg.cut`); 0: it was asked from outside."""
    position: int
    """The position of that process; 0: from outside."""
    name: str


def take_live_cut(directory: Path, name: str = "") -> LiveCut:
    """Write down the present value of a running group's clock. Raises OSError: FileNotFoundError if it has ended."""
    with (directory / "page").open("rb") as page:
        with mmap.mmap(page.fileno(), 64, access=mmap.ACCESS_READ) as memory:
            ticket = int.from_bytes(memory[_AT_TICKETS : _AT_TICKETS + 8], "little")
        cut = LiveCut(
            ticket, time.time_ns(), 0, 0, name.encode("utf-8", "replace")[:LONGEST_NAME].decode("utf-8", "ignore")
        )
        # The page is open: the group's directory is not removed and made anew meanwhile.
        fd = os.open(directory / CUTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, line_of(cut).encode())
        finally:
            os.close(fd)
    return cut


def line_of(cut: LiveCut) -> str:
    """Return the line of a cut, as the core writes it, too."""
    return f"{cut.ticket} {cut.time} {cut.process} {cut.position} {cut.name.encode().hex()}.\n"


def read_live_cuts(directory: Path) -> list[LiveCut]:
    """Return the cuts of a running group; a line that is not whole is left out."""
    try:
        fd = os.open(directory / CUTS, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return []
    with os.fdopen(fd, "rb") as file:
        data = file.read(MOST_CUTS * (LONGEST_NAME * 2 + 100))
    found = (_parsed(line) for line in data.split(b"\n")[:MOST_CUTS])
    return [each for each in found if each is not None]


def _parsed(line: bytes) -> LiveCut | None:
    words = line.removesuffix(b".").split(b" ")
    if not line.endswith(b".") or len(words) != 5 or len(line) > LONGEST_NAME * 2 + 100:
        return None
    try:
        name = bytes.fromhex(words[4].decode("ascii")).decode("utf-8", "replace")
        ticket, moment, process, position = (int(each) for each in words[:4])
    except ValueError:
        return None
    return checked(ticket, moment, process, position, name)


def checked(ticket: Any, moment: Any, process: Any, position: Any, name: Any) -> LiveCut | None:
    """Return a cut of these values; None: they are not those of one."""
    numbers = (ticket, moment, process, position)
    if not all(type(each) is int and 0 <= each < _LARGEST for each in numbers) or type(name) is not str:
        return None
    return LiveCut(ticket, moment, process, position, name)
