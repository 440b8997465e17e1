"""Contents of files that the recorded program has written, and what is behind each path that it named."""

from __future__ import annotations

import os
import posixpath
import stat
import struct
from dataclasses import dataclass, field
from enum import IntEnum

from replaydbg.events.values import STAT_FIELDS, StatResult
from replaydbg.resources.file_names import FileNode
from replaydbg.resources.kinds import Unknown

_NAME = struct.Struct("=cBBBiIII")
_NODE = struct.Struct("=cBIiQQ")
_PIECE = struct.Struct("=QQQ")
_STATUS = struct.Struct(f"={len(STAT_FIELDS)}q")
_USUAL_MODE = stat.S_IFREG | 0o644


class NameKind(IntEnum):
    """What is behind a path. The core has the same numbers."""

    UNKNOWN = 0
    ABSENT = 1
    FILE = 2
    MADE = 3
    """A directory that the program has made, so all of its names are known."""
    DIRECTORY = 4
    LINK = 5
    OTHER = 6
    """Something is there."""


@dataclass(slots=True)
class LayerFile:
    """A file as the program has left it at the moment."""

    node: FileNode
    """Identifies it while the log is read."""
    base: bytes | None
    """Its content before the program wrote to it; None: not known, only its size may be."""
    mode: int = _USUAL_MODE
    links: int = 1
    pieces: list[tuple[int, int, int]] = field(default_factory=list)
    """Writes, in their order: event, offset and length. Event 0: it got the size that is given as offset."""

    def begin_anew(self, mode: int | None) -> None:
        """Follow that it was made, or cut to nothing."""
        self.base = b""
        self.pieces.clear()
        self.mode = self.mode if mode is None else mode

    def found(self, content: bytes | None) -> None:
        """Take the content that the program has read of it, before it writes to it for the first time."""
        if self.base is None and content is not None and not any(event for event, *_ in self.pieces):
            self.base = content
            self.pieces.clear()

    def resized(self, size: int | Unknown) -> None:
        """Follow that it was cut or lengthened."""
        if isinstance(size, int):
            self.pieces.append((0, size, 0))

    def written(self, event: int, offset: int | Unknown, length: int) -> None:
        """Follow a write. Where its place is not known, neither is the content."""
        if isinstance(offset, int):
            self.pieces.append((event, offset, length))
        else:
            self.lost(self.node.size)

    def lost(self, size: int | Unknown) -> None:
        """Follow that something was written which no replay has: only its size is known, if it is."""
        self.base = None
        self.pieces.clear()
        self.resized(size)

    def encoded(self) -> bytes:
        """Return it as the core takes it."""
        base = self.base or b""
        head = _NODE.pack(b"N", self.base is not None, self.mode, self.links, len(base), len(self.pieces))
        return head + base + b"".join(_PIECE.pack(*each) for each in self.pieces)


@dataclass(slots=True)
class LayerName:
    """What is behind a path."""

    kind: NameKind = NameKind.UNKNOWN
    is_touched: bool = False
    """Whether the program has made, changed or removed it: what it was told of it before is outdated."""
    file: LayerFile | None = None
    status: StatResult | None = None
    target: str = ""
    """Of a link."""
    listing: tuple[str, ...] | None = None
    """The names in a directory, as the program was told."""
    mode: int = 0o755
    """The permissions of a directory that the program has made."""

    def encoded(self, path: str, node: int) -> bytes:
        """Return it as the core takes it; `node`: the index of its file, or -1."""
        if self.kind is NameKind.MADE:
            node = self.mode
        name, target = os.fsencode(path), os.fsencode(self.target)
        listing = b"" if self.listing is None else b"".join(os.fsencode(each) + b"\0" for each in self.listing) + b"\0"
        has_status = self.status is not None
        head = _NAME.pack(b"P", self.kind, self.is_touched, has_status, node, len(name), len(target), len(listing))
        numbers = [getattr(self.status, each) for each in STAT_FIELDS] if has_status else []
        return head + (_STATUS.pack(*map(_signed, numbers)) if numbers else b"") + name + target + listing


def _signed(number: object) -> int:
    value = number if isinstance(number, int) else 0
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


class LayerNames:
    """Paths, and what is behind them."""

    def __init__(self) -> None:
        self.by_path: dict[str, LayerName] = {}

    def touch(self, path: str, kind: NameKind, file: LayerFile | None = None, target: str = "") -> None:
        """Follow that the program has made, changed or removed it."""
        self.exists(posixpath.dirname(path), NameKind.DIRECTORY)
        self.by_path[path] = LayerName(kind, True, file, None, target)

    def exists(self, path: str, kind: NameKind, status: StatResult | None = None) -> None:
        """Note that something is there, as the program saw; then its directories are."""
        known = self.by_path.setdefault(path, LayerName())
        if known.is_touched or not path.startswith("/"):
            return
        if known.kind in (NameKind.UNKNOWN, NameKind.ABSENT, NameKind.OTHER):
            known.kind = kind
        known.status = status or known.status
        above = posixpath.dirname(path)
        if above != path and self.by_path.get(above, LayerName()).kind not in (NameKind.DIRECTORY, NameKind.MADE):
            self.exists(above, NameKind.DIRECTORY)

    def is_absent(self, path: str) -> None:
        """Note that nothing is there, as the program saw."""
        known = self.by_path.setdefault(path, LayerName())
        if known.kind is NameKind.UNKNOWN:
            known.kind = NameKind.ABSENT

    def listed(self, path: str, names: tuple[str, ...]) -> None:
        """Note what is in a directory, as the program saw."""
        self.exists(path, NameKind.DIRECTORY)
        known = self.by_path[path]
        if known.kind is NameKind.DIRECTORY and known.listing is None:
            known.listing = names

    def removed(self, path: str) -> None:
        """Follow that the program has removed it."""
        known = self.by_path.get(path)
        if known is not None and known.file is not None:
            known.file.links -= 1
        self.touch(path, NameKind.ABSENT)

    def forget(self, path: str) -> None:
        """Forget what is behind a path, and which names its directory has: somebody else has changed it."""
        self.by_path[path] = LayerName()
        above = self.by_path.get(posixpath.dirname(path))
        if above is not None and above.kind in (NameKind.MADE, NameKind.DIRECTORY):
            above.kind, above.listing = NameKind.DIRECTORY, None

    def renamed(self, old: str, new: str) -> None:
        """Follow that the program has renamed it, and all that is in it."""
        if old == new:
            return
        self.removed(new)
        moved = [path for path in self.by_path if path == old or path.startswith(f"{old}/")]
        for path in moved:
            known = self.by_path[path]
            kind = known.kind
            if path == old and kind in (NameKind.UNKNOWN, NameKind.ABSENT):
                kind = NameKind.OTHER
            self.touch(path, NameKind.ABSENT)
            if kind not in (NameKind.UNKNOWN, NameKind.ABSENT):
                self.by_path[new + path[len(old) :]] = LayerName(kind, True, known.file, None, known.target)
        if not moved:
            self.touch(old, NameKind.ABSENT)
            self.touch(new, NameKind.OTHER)
