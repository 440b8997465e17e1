"""The names of files as the process changes them: its working directory, renames and removals."""

from __future__ import annotations

import os
import posixpath
import stat
from dataclasses import dataclass

from replaydbg.resources.kinds import Unknown

NO_SIZE = Unknown("its size when it was opened is not recorded")
_NO_DIRECTORY = Unknown("the working directory is not recorded")


@dataclass(slots=True)
class FileNode:
    """A file that was opened, whatever its name is now. Several open file descriptions can be of it."""

    path: str | Unknown
    size: int | Unknown = NO_SIZE
    mode: int | None = None
    """As `stat` returned it; None: it was not asked."""
    is_deleted: bool = False
    made: int = 0
    """The last event that made it, or an empty one in its place, or may have done so; 0: none, or it was renamed since.
    """
    changed: int = 0
    """The last event by which the process changed its content."""
    has_hidden_stores: bool = False
    """Whether the process can have changed it without an event: it was mapped for writing, or given to SQLite."""


class FileNames:
    """Files by their names."""

    def __init__(self, cwd: str) -> None:
        """Begin in the working directory `cwd`."""
        self.cwd: str | Unknown = cwd or _NO_DIRECTORY
        self._nodes: dict[str, FileNode] = {}

    def absolute(self, path: str | bytes, base: str | Unknown | None = None) -> str | Unknown:
        """Return the absolute path of `path`, relative to `base` (None: the working directory)."""
        text = os.fsdecode(path)
        if posixpath.isabs(text):
            return posixpath.normpath(text)
        start = self.cwd if base is None else base
        return start if isinstance(start, Unknown) else posixpath.normpath(posixpath.join(start, text))

    def node(self, path: str | Unknown) -> FileNode:
        """Return the file of an absolute path: the known one of that name, or a new one."""
        if isinstance(path, Unknown):
            return FileNode(path)
        return self._nodes.setdefault(path, FileNode(path))

    def made_fifo(self, path: str | Unknown) -> None:
        """Follow `mkfifo`."""
        self.node(path).mode = stat.S_IFIFO

    def seen(self, path: str | Unknown, mode: int, size: int) -> None:
        """Take what `stat` returned of a file that was opened."""
        if isinstance(path, str) and (node := self._nodes.get(path)) is not None:
            node.mode, node.size = mode, size

    def removed(self, path: str | Unknown) -> None:
        """Follow the removal of a name."""
        node = self._nodes.pop(path, None) if isinstance(path, str) else None
        if node is not None:
            node.is_deleted = True

    def renamed(self, old: str | Unknown, new: str | Unknown) -> None:
        """Follow the renaming of a file or a directory, which replaces what had the new name."""
        if old == new:
            return
        self.removed(new)
        if isinstance(old, Unknown):
            return
        moved = {path: node for path, node in self._nodes.items() if path == old or path.startswith(old + "/")}
        for path, node in moved.items():
            del self._nodes[path]
            node.made = 0
            node.path = new if isinstance(new, Unknown) else new + path[len(old) :]
            if isinstance(node.path, str):
                self._nodes[node.path] = node
        if isinstance(self.cwd, str) and (self.cwd == old or self.cwd.startswith(old + "/")):
            self.cwd = new if isinstance(new, Unknown) else new + self.cwd[len(old) :]
