"""The first pass in a thread of its own, while questions that need only a part of it are answered."""

from __future__ import annotations

import threading
from collections.abc import Callable

from replaydbg.engine.reports import EndReport

_WAIT = 0.02
"""Seconds between two looks at how far it is."""


class _Stopped(BaseException):
    """The session is being closed."""


class PassAhead:
    """A first pass that has begun. Stop it."""

    def __init__(self, run: Callable[[Callable[[], None]], EndReport]) -> None:
        """`run` runs it, and calls its argument now and then, which may raise to stop it."""
        self._ended: EndReport | None = None
        self._failure: BaseException | None = None
        self._is_stopped = threading.Event()
        # Nothing waits for it at the end of the debugger: its processes end with the keeper.
        self._thread = threading.Thread(target=self._run, args=(run,), name="replaydbg-first-pass", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()

    def wait(self, is_enough: Callable[[], bool], idle: Callable[[], None]) -> None:
        """Wait until it has gone far enough or has ended; `idle` is called now and then, and may raise to cancel."""
        while self._thread.is_alive() and not is_enough():
            self._thread.join(_WAIT)
            idle()

    def result(self) -> EndReport:
        """Return how the run ended; it must be over. Raises what the pass did, such as EngineLost."""
        if self._failure is not None:
            raise self._failure
        assert self._ended is not None, "it is over"
        return self._ended

    def stop(self) -> None:
        """End it; again is harmless."""
        self._is_stopped.set()
        self._thread.join()

    def _run(self, run: Callable[[Callable[[], None]], EndReport]) -> None:
        try:
            self._ended = run(self._check)
        except BaseException as failure:  # noqa: BLE001  whoever asks for the result gets it
            self._failure = failure

    def _check(self) -> None:
        if self._is_stopped.is_set():
            raise _Stopped
