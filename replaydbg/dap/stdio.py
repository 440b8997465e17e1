"""Serve the editor that has started this process, at the standard streams."""

from __future__ import annotations

from replaydbg.dap.server import DapServer
from replaydbg.dap.wire.editor_stream import EditorStream
from replaydbg.launch.moved_streams import moved_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def serve_standard_streams(resolve: Callable[[str], Path]) -> None:
    """Serve the client at the standard streams until it disconnects or goes away; for `resolve` see `DapServer`."""
    DapServer(EditorStream(*moved_streams()), resolve).serve()
