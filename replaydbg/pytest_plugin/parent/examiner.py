"""Examine kept recordings, one after the other, each in a process of its own: a replay may take long, or crash."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from replaydbg.pytest_plugin.report import report_text
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.pytest_plugin.shared.results import Examination, Result, read_examination

SECONDS = 60
"""Time limit of an examination in seconds: the replay, and the answers."""

_START = "import sys;del sys.path[0];from replaydbg.pytest_plugin.examination.examine import main;main(*sys.argv[1:])"


class Examiner:
    """A thread with a queue."""

    def __init__(self, *, bisects: bool) -> None:
        self._bisects = bisects
        self._queue: queue.SimpleQueue[tuple[Path, Result] | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="examiner", daemon=True)
        self._thread.start()

    def add(self, folder: Path, result: Result) -> None:
        """Add a recording to the queue."""
        self._queue.put((folder, result))

    def close(self) -> None:
        """Cancel what is not done: the session has ended, and its time limit for waiting has passed."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
        self._queue.put(None)
        self._thread.join(10)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            folder, result = item
            found = Examination()
            for each in self._examine(folder):
                found = found.with_later(each)
                report_text.write_about(folder, result.with_examination(found))
            if not found.known():
                found = Examination(verification="its analysis took too long")
            report_text.write_about(folder, result.with_examination(replace(found, is_examined=True)))

    def _examine(self, folder: Path) -> Iterator[Examination]:
        """Yield the results, each as soon as it is known."""
        environment = {name: value for name, value in os.environ.items() if name != shared_names.VARIABLE}
        with self._lock:
            if self._is_closed:
                return
            self._process = process = subprocess.Popen(
                [sys.executable, "-c", _START, str(folder / shared_names.RECORDING), "bisect" if self._bisects else ""],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        limit = threading.Timer(SECONDS, process.kill)
        limit.start()
        try:
            for line in process.stdout or ():
                with suppress(ValueError):  # the last line may be truncated
                    yield read_examination(line.decode("utf-8", "replace"))
        finally:
            limit.cancel()
            process.wait()
            self._process = None
