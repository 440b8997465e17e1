"""What a recorded program had open at the moment."""

from __future__ import annotations

import os
import struct

from replaydbg.resources.file_names import FileNode

_OPEN = struct.Struct("=ciiiiQI")


class OpenedThen:
    """An open file or directory at the moment."""

    def __init__(self, kind: str, numbers: tuple[int, ...], offset: int, flags: int, node: FileNode) -> None:
        self.kind, self.node = kind, node
        self.path = node.path if isinstance(node.path, str) else ""
        self.numbers, self._offset, self._flags = numbers, offset, flags

    def encoded(self, index: int) -> bytes:
        """Return it as the core takes it; `index`: of its file, -1: nothing is known of that."""
        is_directory = self.kind == "directory"
        if index < 0 and not (is_directory and self.path):
            return b""
        first, name = self.numbers[0], os.fsencode(self.path) if is_directory else b""
        parts = [_OPEN.pack(b"O", first, index, self._flags, -1, self._offset, len(name)), name]
        parts += [_OPEN.pack(b"O", each, -1, 0, first, 0, 0) for each in self.numbers[1:]]
        return b"".join(parts)
