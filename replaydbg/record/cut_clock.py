"""Take a live cut of a group at intervals, while its first program runs."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress

from replaydbg.log.live_cuts import take_live_cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


class CutClock:
    """Takes a cut each time an interval has passed. No process of the group takes part: it looks at its clock."""

    def __init__(self, directory: Path, interval: float) -> None:
        """`directory` is that of the group; `interval` in seconds."""
        self._directory, self._interval = directory, interval
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name="cuts", daemon=True)
        # Signals are for the thread that waits for the program.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def stop(self) -> None:
        """Take no more."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(self._interval):
            with suppress(OSError):  # the disk is full, or the group is gone: the program goes on
                take_live_cut(self._directory)
