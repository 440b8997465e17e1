"""The end of a terminal UI by a signal, or because its terminal was closed: its window, or the connection to it."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from textual.app import App

from replaydbg.tui.worker.session_thread import SessionThread

PATIENCE = 5.0
"""Seconds after which the process ends, however it stands with the app."""


def leave_closed_terminal() -> None:
    """Let output to a closed terminal go nowhere: what Python cannot write when it ends makes its exit code another."""
    with suppress(termios.error):
        termios.tcgetattr(1)
        return  # it is open: somebody has only sent the signal
    nowhere = os.open(os.devnull, os.O_WRONLY)
    gone = os.fstat(1).st_rdev
    for fd in (1, 2):
        if os.fstat(fd).st_rdev == gone:
            os.dup2(nowhere, fd)
    os.close(nowhere)


def end_on_signals(app: App[Any], owners: Sequence[SessionThread] = ()) -> None:
    """Let SIGTERM and SIGHUP end an app that runs, and the threads of its sessions.

    Without that the process would end at once, and leave the terminal as it is. The code of the app is a shell's for
    the signal: `return_code`, and `exit()` returns it, too.
    """
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, _end, app, signal.SIGTERM)

    def hang_up(*_: object) -> None:
        threading.Thread(target=ending, daemon=True).start()

    def ending() -> None:
        leave_closed_terminal()
        loop.call_soon_threadsafe(partial(_end, app, signal.SIGHUP))
        for each in owners:
            each.close()
        until = time.monotonic() + PATIENCE
        for each in owners:
            each.join(max(until - time.monotonic(), 0.0))
        time.sleep(PATIENCE)
        os._exit(128 + signal.SIGHUP)

    # Textual draws through a queue, which nobody empties when the terminal is gone: the app would wait for room in it
    # forever, and its handlers for signals with it. So this one is not of the event loop.
    signal.signal(signal.SIGHUP, hang_up)


def _end(app: App[Any], by: signal.Signals) -> None:
    app.exit(128 + by, return_code=128 + by)
