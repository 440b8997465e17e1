"""Serve the editor that has started this process, at the standard streams."""

from __future__ import annotations

import os

from replaydbg.dap.server import DapServer
from replaydbg.dap.wire.editor_stream import EditorStream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def serve_standard_streams(resolve: Callable[[str], Path]) -> None:
    """Serve the client at the standard streams until it disconnects or goes away; for `resolve` see `DapServer`.

    They are moved away: what else writes to the standard output, such as a process of a replay, would be taken for a
    message, and what reads from the standard input would take one away.
    """
    reads, writes = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    try:
        DapServer(
            EditorStream(lambda size: os.read(reads, size), lambda data: _write_all(writes, data)), resolve
        ).serve()
    finally:
        os.close(writes)


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
