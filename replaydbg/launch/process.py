"""Runs the program's process: starts it, stands aside for its signals, and returns how it ended."""

from __future__ import annotations

import os
import signal
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
) -> Ended:
    """Run `argv`; `fds` become its standard streams (None: inherit, -1: closed); `ignored` signals stay so in it.

    `meanwhile` is called once the process runs; it must not raise.
    """
    pid = os.fork()
    if pid == 0:
        _become(argv, env, fds, ignored)
    return _wait(pid, meanwhile)


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


def _wait(pid: int, meanwhile: Callable[[], None] | None) -> Ended:
    def forward(number: int, frame: FrameType | None) -> None:
        os.kill(pid, number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        if meanwhile is not None:
            meanwhile()
        while True:
            _, status, usage = os.wait4(pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                return Ended(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)
            os.kill(os.getpid(), signal.SIGSTOP)  # Ctrl-Z stops the program; the shell waits for us
            os.kill(pid, signal.SIGCONT)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
