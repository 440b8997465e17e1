"""The end of a terminal UI whose terminal was closed: its window, or the connection to it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from replaydbg.tui.worker.session_thread import SessionThread

PATIENCE = 5.0
"""Seconds after which the process ends, however it stands with the app."""

CODE = 128 + signal.SIGHUP


def leave_terminal() -> None:
    """Let output go nowhere: what Python cannot write when it ends makes its exit code another one."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    gone = os.fstat(1).st_rdev
    for fd in (1, 2):
        if os.fstat(fd).st_rdev == gone:
            os.dup2(nowhere, fd)
    os.close(nowhere)


def end_on_hang_up(end: Callable[[], object], owner: SessionThread) -> None:
    """Call `end` in another thread when the terminal is closed, and end the process if that does not.

    Textual draws through a queue, which nobody empties when the terminal is gone: the app would wait for room in it
    forever, and its handlers for signals with it. So this one is not of the event loop.
    """

    def hang_up(*_: object) -> None:
        threading.Thread(target=ending, daemon=True).start()

    def ending() -> None:
        leave_terminal()
        end()
        owner.close()
        owner.join(PATIENCE)
        time.sleep(PATIENCE)
        os._exit(CODE)

    signal.signal(signal.SIGHUP, hang_up)
