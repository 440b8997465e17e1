"""Examine kept recordings together, in a process of its own: a replay may take long, or crash.

The logs of all recordings of a session are prefixes of one log. So they wait for each other, if possible until the
tests are over: then one replay is enough for all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from replaydbg.classes import dataclass, replace
from replaydbg.pytest_plugin.report import report_text
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.pytest_plugin.shared.results import Examination, Result, read_examined

SECONDS = 60.0
"""Time limit of all examinations of a run together, in seconds."""

_WAITS = 30.0
"""Maximum seconds for which the first failure waits for others while tests run."""
_SHARE = 10
"""While tests run, failures wait at least this many times as long as the examinations so far took."""

_CANCELLED = "its analysis took too long"
_CRASHED = "the process ended before it was analysed"

_START = "import sys;del sys.path[0];from replaydbg.pytest_plugin.examination.examine import main;main(*sys.argv[1:])"


@dataclass(slots=True)
class _Item:
    """A recording, with what is known about it."""

    folder: Path
    result: Result
    found: Examination

    def take(self, found: Examination) -> None:
        """Add results."""
        self.found = self.found.with_later(found)
        report_text.write_about(self.folder, self.result.with_examination(self.found))

    def end(self, reason: str) -> None:
        """Report that no more results follow; `reason`: why there is none, if there is none."""
        if not self.found.known():
            self.found = Examination(verification=reason)
        report_text.write_about(self.folder, self.result.with_examination(replace(self.found, is_examined=True)))


class Examiner:
    """A thread that examines the recordings given to it, many at a time."""

    def __init__(self, *, bisects: bool, pages: bool = False) -> None:
        self._bisects, self._pages = bisects, pages
        self._waiting: list[_Item] = []
        self._since = 0.0
        """When the first of them was added."""
        self._spent = 0.0
        """Seconds that examinations have taken."""
        self._are_tests_over = False
        self._is_closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="examiner", daemon=True)
        self._thread.start()

    def add(self, folder: Path, result: Result) -> None:
        """Add a recording."""
        with self._changed:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting.append(_Item(folder, result, Examination()))
            self._changed.notify()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being examined."""
        return self._process is None

    def begin_last(self) -> None:
        """Examine the waiting recordings now: the tests are over, and no other recording is expected."""
        with self._changed:
            self._are_tests_over = True
            self._changed.notify()

    def close(self) -> None:
        """Cancel what is not done: the session has ended, and its time limit for waiting has passed."""
        with self._changed:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
            self._changed.notify()
        self._thread.join(10)

    def _work(self) -> None:
        while items := self._next():
            if self._spent < SECONDS:
                began = time.monotonic()
                self._examine(items)
                self._spent += time.monotonic() - began
            for each in items:
                each.end(self._why_not())

    def _why_not(self) -> str:
        """Return why a recording was not examined."""
        if not self._is_closed:
            return f"the time limit of {SECONDS:g} s for all analyses of this run was reached"
        return _CANCELLED if self._are_tests_over else _CRASHED

    def _next(self) -> list[_Item]:
        """Wait for recordings to examine, and return them; an empty list if the examiner was closed."""
        with self._changed:
            while not (self._is_closed or (self._waiting and self._left_to_wait() <= 0)):
                self._changed.wait(self._left_to_wait() if self._waiting else None)
            found, self._waiting = self._waiting, []
            return found

    def _left_to_wait(self) -> float:
        """Return for how many more seconds the recordings should wait for others."""
        if self._are_tests_over:
            return 0.0
        return self._since + max(_WAITS, _SHARE * self._spent) - time.monotonic()

    def _examine(self, items: Sequence[_Item]) -> None:
        """Examine recordings, and write about each as soon as something is known."""
        environment = {name: value for name, value in os.environ.items() if name != shared_names.VARIABLE}
        with self._changed:
            if self._is_closed:
                return
            self._process = process = subprocess.Popen(
                [sys.executable, "-c", _START, "bisect" * self._bisects, "pages" * self._pages],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        limit = threading.Timer(SECONDS - self._spent, process.kill)
        limit.start()
        assert process.stdin is not None, process
        assert process.stdout is not None, process
        try:
            with suppress(OSError), process.stdin as paths:  # it may have been killed
                for each in items:
                    paths.write(json.dumps(str(each.folder / shared_names.RECORDING)).encode() + b"\n")
            for line in process.stdout:
                with suppress(ValueError, IndexError):  # the last line may be truncated
                    examined = read_examined(line.decode("utf-8", "replace"))
                    items[examined.number].take(examined.found)
        finally:
            limit.cancel()
            process.stdout.close()
            process.wait()
            self._process = None
