"""Runs the program's process: starts it, stands aside for its signals, and returns how it ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NamedTuple

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Sent to us by somebody who means the program. Ctrl-C and Ctrl-\\ reach it too: the terminal sends them to both."""


class Ended(NamedTuple):
    """How a process ended."""

    status: int
    """Its exit code, or minus the number of the signal that ended it."""
    cpu_seconds: float
    """CPU time of the process and of its children that it waited for."""


def run_process(
    argv: list[str],
    env: dict[str, str],
    *,
    fds: Sequence[int | None] = (None, None, None),
    ignored: Sequence[int] = (),
    meanwhile: Callable[[], None] | None = None,
    handled: Callable[[], int] | None = None,
) -> Ended:
    """Run `argv`; `fds` become its standard streams (None: inherit, -1: closed); `ignored` signals stay so in it.

    `meanwhile` is called once the process runs; it must not raise. `handled` tells how many signals the program has
    handled by itself so far; without it none can be told.
    """
    forward = _Forwarder(handled)
    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    # Before the fork: a Ctrl-C must not end us and leave the program behind.
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        pid = os.fork()
        if pid == 0:
            _become(argv, env, fds, ignored)
        forward.pid = pid
        if meanwhile is not None:
            meanwhile()
        return _wait(pid)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Forwarder:
    """Passes a signal on to the program, unless it was sent to the whole group and the program has had it already.

    A signal does not say to how many it was sent. A program that handled one at this moment got it from the same hand;
    a second one would hit it while it is ending.
    """

    STEPS, STEP = 10, 0.005
    """The program has 50 ms: it handles a signal at its next instruction, or is inside C code and gets it twice."""

    def __init__(self, handled: Callable[[], int] | None) -> None:
        self.handled = handled or (lambda: 0)
        self.known = 0
        self.pid = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.pid:
            return
        for _ in range(self.STEPS):
            count = self.handled()
            if count > self.known:
                self.known = count
                return
            time.sleep(self.STEP)
        os.kill(self.pid, number)
        time.sleep(self.STEP)
        self.known = max(self.known, self.handled())


def _become(argv: list[str], env: dict[str, str], fds: Sequence[int | None], ignored: Sequence[int]) -> None:
    try:
        for target, fd in enumerate(fds):
            if fd == -1:
                os.close(target)
            elif fd is not None:
                os.dup2(fd, target, inheritable=True)
        for number in signal.valid_signals():
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        os.execve(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"replaydbg: {argv[0]} cannot be started: {error.strerror}\n".encode())
    finally:
        os._exit(126)


def _wait(pid: int) -> Ended:
    while True:
        _, status, usage = os.wait4(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return Ended(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)
        os.kill(os.getpid(), signal.SIGSTOP)  # Ctrl-Z stops the program; the shell waits for us
        os.kill(pid, signal.SIGCONT)
