"""Signals that end a command from outside: Ctrl-C, SIGTERM and SIGHUP.

Python raises KeyboardInterrupt for the first of them only; the two others end the process without any clean-up, and its
replay, or the programs of a hunt, would run on. Here each of them is an exception, and a second signal does not disturb
the clean-up.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that request the end of a command."""

IMPATIENT = 3
"""Number of signals that end a command at once, whatever it does."""

_PR_SET_PDEATHSIG = 1
"""The number of that option of prctl(2)."""


class Terminated(BaseException):
    """SIGTERM or SIGHUP requested the end of this command.

    Not a KeyboardInterrupt: a prompt goes on after a Ctrl-C, and must not after these.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"signal {number}")


INTERRUPTIONS = (KeyboardInterrupt, Terminated)
"""The exceptions for signals that request the end of a command."""


def number_of(interruption: BaseException) -> int:
    """Return the signal that raised one of `INTERRUPTIONS`."""
    return interruption.number if isinstance(interruption, Terminated) else signal.SIGINT


def raise_for(number: int) -> None:
    """Raise the exception for the signal."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(number)


class _Requests:
    """The signals received so far that request the end of this process."""

    def __init__(self) -> None:
        self.count = self.postponed = self.depth = 0

    def came(self, number: int, frame: FrameType | None) -> None:
        """Raise for the first signal; ignore the next ones during the clean-up, until there are too many of them."""
        self.count += 1
        if self.count >= IMPATIENT:
            die_by(number)
        elif self.count > 1:
            return
        elif self.depth:
            self.postponed = number
        else:
            raise_for(number)


_requests = _Requests()


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt or Terminated in the block when a signal requests the end of this process.

    Ignored signals stay ignored (nohup, jobs in the background of a shell). Outside of the main thread, where Python
    handles no signals, nothing changes.
    """
    try:
        before = {each: signal.getsignal(each) for each in ENDING if signal.getsignal(each) != signal.SIG_IGN}
        _requests.count = _requests.postponed = 0
        for each in before:
            signal.signal(each, _requests.came)
    except ValueError:
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: it was not set from Python.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


@contextmanager
def postponed() -> Iterator[None]:
    """Delay the exception for a signal until the end of the block: the clean-up then knows what the block started."""
    _requests.depth += 1
    try:
        yield
    finally:
        _requests.depth -= 1
        if _requests.postponed and not _requests.depth:
            number, _requests.postponed = _requests.postponed, 0
            raise_for(number)


def forked() -> None:
    """In a forked process: restore the default effect of the signals."""
    for each in ENDING:
        if signal.getsignal(each) == _requests.came:
            signal.signal(each, signal.SIG_DFL)


def end_with_parent(parent: int) -> None:
    """In a forked process: end when the thread of the process `parent` that forked us ends, even if it is killed."""
    # Imported here: most commands fork nothing.
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it has ended already


def die_by(number: int) -> None:
    """End this process by the signal, at once."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
