"""POSIX locks of ranges of files (`lockf`, `F_SETLK`): of the process, or of an open file description."""

from __future__ import annotations

from typing import NamedTuple

from replaydbg.resources.descriptions import Description
from replaydbg.resources.file_names import FileNode
from replaydbg.resources.kinds import MakingCall

ENDLESS = 1 << 62
"""The end of a range that reaches to the end of the file."""


class LockedRange(NamedTuple):
    """A range that is locked."""

    first: int
    end: int
    """The byte after it; ENDLESS: all that follow."""
    is_exclusive: bool
    node: FileNode
    holder: Description | None
    """The open file description; None: the process."""
    through: Description
    """That of the call that locked it."""
    origin: MakingCall


class LockedRanges:
    """The ranges that a process has locked. A later lock of the same holder replaces what it covers (fcntl(2))."""

    def __init__(self) -> None:
        """Begin without any."""
        self.all: list[LockedRange] = []

    def lock(self, new: LockedRange) -> None:
        """Lock a range."""
        self.unlock(new.node, new.first, new.end, new.holder)
        self.all.append(new)

    def unlock(self, node: FileNode, first: int, end: int, holder: Description | None) -> None:
        """Unlock a range: what is left of the locks that it is in keeps locked."""
        kept: list[LockedRange] = []
        for each in self.all:
            if each.node is not node or each.holder is not holder or each.end <= first or each.first >= end:
                kept.append(each)
                continue
            if each.first < first:
                kept.append(each._replace(end=first))
            if each.end > end:
                kept.append(each._replace(first=end))
        self.all = kept

    def closed(self, node: FileNode) -> None:
        """Drop the locks of the process in a file: closing any descriptor of it releases them."""
        if self.all:
            self.all = [each for each in self.all if each.node is not node or each.holder is not None]

    def forget(self, description: Description) -> None:
        """Drop the locks of an open file description that was closed."""
        if self.all:
            self.all = [each for each in self.all if each.holder is not description]

    def forked(self) -> None:
        """Drop the locks of the process: a forked child does not have them."""
        self.all = [each for each in self.all if each.holder is not None]
