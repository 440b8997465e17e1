"""Read the heap of the present position in the background, when the user has stayed there for a while."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from textual.message import Message

from replaydbg.errors import Cancelled, ReplaydbgError
from replaydbg.events.show import printable
from replaydbg.tui.ui_messages import HeapRead
from replaydbg.tui.view_model import HeapAnswer, HeapRow

if TYPE_CHECKING:
    from replaydbg.commands.view import View
    from replaydbg.tui.worker.shown_process import ShownProcess

IDLE = 0.3
"""Seconds without a request after which the heap is read."""

MOST_SECONDS = 0.3
"""Time to read the heap above which that is done on request only."""

_PAUSE = 0.005


class HeapFollower:
    """Decides when the heap is read."""

    def __init__(self) -> None:
        self.is_on = False
        self._arrived = 0.0
        """When the present state was shown, by time.monotonic()."""

    def begin(self, process: ShownProcess) -> None:
        """Show from now on what is in memory, in place of a comparison; the first time however long it takes."""
        self.is_on, self._arrived = True, 0.0
        process.compared, process.heap_seconds = None, 0.0

    def arrive(self) -> None:
        """Wait again: the user is moving."""
        self._arrived = time.monotonic()

    def steps(self, view: View, process: ShownProcess) -> Generator[Message | None]:
        """Yield None until it is time, and the contents of the heap, or why they cannot be read."""
        while time.monotonic() - self._arrived < IDLE:
            time.sleep(_PAUSE)
            yield None
        if process.compared is not None or process.heap_seconds > MOST_SECONDS or view.here.is_changed:
            return
        began = time.monotonic()
        try:
            found = process.memory.contents(view, process.first)
        except Cancelled:
            raise
        except (ReplaydbgError, OSError) as error:
            found = HeapAnswer("", (HeapRow(printable(str(error))),), "", 0)
        process.heap_seconds = time.monotonic() - began
        yield HeapRead(found)
