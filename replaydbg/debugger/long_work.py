"""Long work of a session: its progress, and a way to cancel it from another thread."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from replaydbg.debugger.session_results import WorkProgress
from replaydbg.engine.travel import Travel
from replaydbg.errors import Cancelled


class OutOfTime(Exception):
    """The time limit of the work has passed."""


class LongWork:
    """The progress of what a session is doing. `cancel` may be called from any thread."""

    def __init__(self, travel: Travel, report: Callable[[WorkProgress], None] | None) -> None:
        """`report` is called now and then while something takes long."""
        self._travel, self._report = travel, report
        self._cancelled = threading.Event()
        self._reached = self._found = 0
        self._until = math.inf
        self._is_silent = False
        self.total_lines = 0
        """Lines of the whole run; 0 until the first pass is over."""

    def cancel(self) -> None:
        """End what takes long in another thread: Cancelled is raised there."""
        self._cancelled.set()

    def begin(self, what: str, total: int = 0) -> None:
        """Begin something that may take long, of `total` lines if that is known; forget earlier calls of `cancel`."""
        self._cancelled.clear()
        self._reached = self._found = 0
        began = time.monotonic()
        timeline = self._travel.timeline

        def idle() -> None:
            if self._cancelled.is_set():
                raise Cancelled
            if time.monotonic() > self._until:
                raise OutOfTime
            if self._report is not None and not self._is_silent:
                counts = timeline.counts()
                share = counts[-1] / total if total and counts else 0.0
                share = self._reached / self.total_lines if self._reached else share
                text = f"{what}, {self._found:,} found" if self._found else what
                self._report(WorkProgress(text, min(share, 1.0), time.monotonic() - began))

        self._travel.idle = idle

    @contextmanager
    def limited(self, seconds: float, *, silent: bool = False) -> Iterator[None]:
        """Raise OutOfTime in the enclosed work after this time; `silent`: report no progress of it."""
        self._until, self._is_silent = time.monotonic() + seconds, silent
        try:
            yield
        finally:
            self._until, self._is_silent = math.inf, False

    def count_found(self) -> None:
        """Count a result that was found: progress reports their number."""
        self._found += 1

    def idle(self, reached: int = 0) -> None:
        """Report progress; `reached` is the line that the work has come to. Raises Cancelled.

        Work that consists of many short runs calls it itself: while it waits for one of them, `idle` is called only if
        that takes long.
        """
        self._reached = reached or self._reached
        self._travel.idle()
