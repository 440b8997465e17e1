"""The terminal's part of the prompt: Ctrl-C and progress."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import CodeType, FrameType
from typing import TextIO

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.errors import Cancelled

SHOWN_AFTER = 0.2
"""Seconds after which a long operation shows its progress."""

EVERY = 0.1
"""Seconds between two updates of the progress line."""

LINE_EVERY = 2.0
"""Minimum number of seconds between two lines of progress where stderr is not a terminal."""

SAME_LINE_EVERY = 60.0
"""The same for two equal lines: a command may begin the same work at each of thousands of moments."""

IMPATIENT = 3
"""Number of Ctrl-C during one operation that ends the debugger."""


class Interrupts:
    """The effect of Ctrl-C: it cancels a running operation, and at other times raises KeyboardInterrupt.

    Only between the lines of a prompt it is ignored: it was meant for the operation that has just ended.
    """

    def __init__(self) -> None:
        self._is_busy = self._is_prompting = self._is_reading = False
        self._number = 0
        self._session: Session | None = None
        self._end: Callable[[int, FrameType | None], object] = signal.default_int_handler
        """Ends the command, and lets nothing disturb that."""
        self._shielded: set[CodeType] = set()

    def shield(self, callback: Callable[..., object]) -> None:
        """Raise nothing in a Python function that is called while a line is read: readline would drop the exception."""
        self._shielded.add(callback.__code__)

    def check(self) -> None:
        """Raise Cancelled if there was a Ctrl-C since the operation began."""
        if self._number:
            self._number = 0
            raise Cancelled

    @contextmanager
    def busy(self, session: Session | None = None) -> Iterator[None]:
        """Context of a running operation."""
        self._number, self._is_busy, self._session = 0, True, session
        try:
            yield
        finally:
            self._is_busy = False

    @contextmanager
    def prompting(self) -> Iterator[None]:
        """Context in which lines are read and executed, one after the other."""
        self._is_prompting = True
        try:
            yield
        finally:
            self._is_prompting = False

    def read(self, read: Callable[[], str]) -> str:
        """Return the line that `read` returns. Raises what that raises, and KeyboardInterrupt."""
        self._is_reading = True
        try:
            return read()
        finally:
            self._is_reading = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Context in which this handler decides what Ctrl-C does."""
        before = signal.getsignal(signal.SIGINT)
        if callable(before):
            self._end = before
        signal.signal(signal.SIGINT, self._came)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _came(self, number: int, frame: FrameType | None) -> None:
        if self._is_busy:
            self._number += 1
            if self._number >= IMPATIENT:
                self._end(number, frame)
            elif self._session is not None:
                self._session.work.cancel()
        elif self._is_reading and not self._is_shielded(frame):
            self._is_reading = False  # a second one must not interrupt whoever handles the first
            raise KeyboardInterrupt
        elif not self._is_prompting:
            self._end(number, frame)

    def _is_shielded(self, frame: FrameType | None) -> bool:
        while frame is not None and frame.f_code not in self._shielded:
            frame = frame.f_back
        return frame is not None


class AtOnce:
    """Ctrl-C in a command that answers one question: it ends the command, as Python's own handler does."""

    def check(self) -> None:
        """Do nothing: the handler has already raised."""

    def busy(self, session: Session | None = None) -> AbstractContextManager[None]:
        """Context of a running operation."""
        return nullcontext()

    def installed(self) -> AbstractContextManager[None]:
        """Context in which this handler decides what Ctrl-C does."""
        return nullcontext()


class ProgressLine:
    """Shows progress on stderr when an operation takes longer than a moment, and cancels it at a Ctrl-C."""

    def __init__(
        self,
        err: TextIO,
        check: Callable[[], None],
        *,
        is_quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._err, self._check, self._is_quiet, self._clock = err, check, is_quiet, clock
        self._is_terminal = err.isatty()
        self._is_shown = False
        self._shown_at = 0.0
        self._lines: dict[str, float] = {}
        """When each line was written; only where stderr is not a terminal."""

    def __call__(self, progress: WorkProgress) -> None:
        """Show the progress. Raises Cancelled."""
        self._check()
        is_new = not self._is_shown or progress.seconds > self._shown_at + EVERY
        if self._is_quiet or progress.seconds < SHOWN_AFTER or not is_new:
            return
        self._shown_at = progress.seconds
        if self._is_terminal:
            share = f" {progress.done:.0%}" if progress.done else ""
            self._err.write(f"\r{progress.what}{share}, {progress.seconds:.1f} s (Ctrl-C cancels)\x1b[K")
            self._is_shown = True
        elif not self._is_shown:
            self._is_shown = self._write_line(f"replaydbg: {progress.what} ...\n")
        self._err.flush()

    def _write_line(self, line: str) -> bool:
        """Write a line unless it follows another one, or the same one, too soon; return whether it was written."""
        now = self._clock()
        self._lines = {each: at for each, at in self._lines.items() if now - at < SAME_LINE_EVERY}
        if line in self._lines or any(now - at < LINE_EVERY for at in self._lines.values()):
            return False
        self._lines[line] = now
        self._err.write(line)
        return True

    def clear(self) -> None:
        """Clear the line when the operation has ended."""
        if self._is_shown and self._is_terminal:
            self._err.write("\r\x1b[K")
            self._err.flush()
        self._is_shown = False

    @contextmanager
    def cleared(self) -> Iterator[None]:
        """Clear it at the end of the block, however it ends."""
        try:
            yield
        finally:
            self.clear()
