"""Run functions in processes of their own, all at once, and collect their results."""

from __future__ import annotations

import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from replaydbg.launch.interruption import end_with_parent, forked, postponed

Task = Callable[[], bytes]


def in_processes(tasks: Sequence[Task], *, timeout: float) -> list[bytes]:
    """Run all tasks at once, each in a fork of this process; empty: it took longer than `timeout` seconds, or died."""
    with ExitStack() as stack:
        running: list[_Forked] = []
        try:
            for task in tasks:
                with postponed():
                    running.append(_Forked(task, stack))
            until = time.monotonic() + timeout
            return [each.result(until) for each in running]
        finally:
            for each in running:
                each.kill()


class _Forked:
    def __init__(self, task: Task, stack: ExitStack) -> None:
        self.report = stack.enter_context(os.fdopen(os.memfd_create("replaydbg-task"), "w+b"))
        us = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                forked()
                end_with_parent(us)
                # Ctrl-C reaches only this process; the child and its processes form a group that can be ended together.
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                self.report.write(task())
                self.report.flush()
            except BaseException:  # noqa: BLE001 - whatever it is, nobody above us is there to show it
                traceback.print_exc()
            finally:
                # Never return into the caller's code: the state belongs to another process.
                os._exit(0)
        self.is_over = False

    def result(self, until: float) -> bytes:
        fd = os.pidfd_open(self.pid)
        try:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                return b""
        finally:
            os.close(fd)
        self._reap()
        self.report.seek(0)
        return self.report.read()

    def kill(self) -> None:
        if self.is_over:
            return
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._reap()

    def _reap(self) -> None:
        os.waitpid(self.pid, 0)
        self.is_over = True
