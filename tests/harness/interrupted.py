"""Commands on a terminal of their own that are interrupted, and the processes that they leave running."""

from __future__ import annotations

import ctypes
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.harness.replays import TIMEOUT
from tests.harness.surroundings import without_steering
from tests.harness.waiting import cpu_ticks, process_fields

_PR_SET_CHILD_SUBREAPER = 36
_BUSY = 3
"""CPU ticks after which a process is computing, and no longer starting."""

_IN_A_SESSION = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "replaydbg", *sys.argv[1:]])
"""


class Seen(NamedTuple):
    """The end of an interrupted command."""

    status: int
    """Its exit code as in a shell: 128 plus the number of a signal that ended it."""
    text: str
    """Its output."""
    seconds: float
    """From the first signal to its end."""
    left: list[str]
    """Command lines of processes that it left running."""


class Command:
    """`replaydbg` with arguments on a terminal."""

    def __init__(self, *words: str) -> None:
        self._terminal, its = pty.openpty()
        env = without_steering(os.environ)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_A_SESSION, *words],
            stdin=its,
            stdout=its,
            stderr=its,
            env=env | {"TERM": "xterm"},
        )
        os.close(its)
        self._text = b""

    @property
    def text(self) -> str:
        """The output so far."""
        return self._text.decode(errors="replace")

    def wait_until_printed(self, text: str) -> None:
        """Return when `text` appears in its output."""
        until = time.monotonic() + TIMEOUT
        while text not in self.text:
            assert time.monotonic() < until, f"{text!r} was not printed: {self.text}"
            assert self._read(1.0), f"{text!r} was not printed: {self.text}"

    def wait_until_busy(self, least: int = _BUSY) -> None:
        """Return when one of its processes is computing."""
        until = time.monotonic() + TIMEOUT
        while not any(cpu_ticks(pid) >= least for pid in _descendants(self.process.pid) if pid != self.process.pid):
            assert time.monotonic() < until, f"nothing computes: {self.text}"
            assert self.process.poll() is None, f"it ended: {self.text}"
            self._read(0.01)

    def press(self, key: bytes = b"\x03") -> None:
        """Press Ctrl-C: the terminal sends SIGINT to all processes in its foreground."""
        os.write(self._terminal, key)

    def end(self, began: float) -> Seen:
        """Wait for its end, and end the processes that it left running."""
        until = time.monotonic() + TIMEOUT
        while self.process.poll() is None:
            assert time.monotonic() < until, f"it does not end: {self.text}"
            self._read(0.01)
        seconds = time.monotonic() - began
        while self._read(0.0):
            pass
        status = self.process.returncode
        return Seen(status if status >= 0 else 128 - status, self.text, seconds, _left())

    def close(self) -> None:
        """End it in any state."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._terminal)
        _left()

    def _read(self, seconds: float) -> bool:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return self.process.poll() is None and seconds > 0
        try:
            data = os.read(self._terminal, 65536)
        except OSError:
            return False  # no process has it open any more
        self._text += data
        return bool(data)


@contextmanager
def command(*words: str) -> Iterator[Command]:
    """Start `replaydbg` with `words`; its orphaned processes are adopted by this one until it has ended."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    started = Command(*words)
    try:
        yield started
    finally:
        started.close()
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0)


def _left() -> list[str]:
    """Return the command lines of our children that still run a moment after the command, and kill them."""
    found: dict[int, str] = {}
    until = time.monotonic() + 1.0
    while (found := _running()) and time.monotonic() < until:
        select.select([], [], [], 0.01)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return list(found.values())


def _running() -> dict[int, str]:
    """Return the replays and keepers among our children, which are orphans of the command."""
    found = {}
    for pid in _children(os.getpid()):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
            if process_fields(pid)[0] == "Z":
                os.waitpid(pid, os.WNOHANG)
            elif "replaydbg" in words or "_imp.create_dynamic" in words:
                found[pid] = words
        except (OSError, IndexError):
            continue  # it has ended
    return found


def _descendants(pid: int) -> list[int]:
    children = _children(pid)
    return [pid, *(each for child in children for each in _descendants(child))]


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:
        return []
