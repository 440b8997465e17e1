"""Rules for pipes, for descriptors of the kernel's own objects, and for what is not known."""

from __future__ import annotations

import os
import select
import socket

from replaydbg.resources.kinds import (
    OpenedEpoll,
    OpenedEventFd,
    OpenedOther,
    OpenedPidFd,
    OpenedPipe,
    OpenedTimerFd,
    Unknown,
)
from replaydbg.resume.plan_rows import CannotReopen, Fate, PlanRow


def plan_pipe(opened: OpenedPipe) -> PlanRow:
    """Decide a pipe: a new one if both ends are the program's own."""
    numbers = opened.handle.numbers
    if opened.other_end:
        text = f"the {opened.side} end of a pipe within the program"
        return PlanRow("pipes", Fate.REOPENED, text, "", numbers, opened=opened)
    reason = "it ends (EOF)" if opened.side == "read" else "EPIPE at the next write"
    return PlanRow("pipes", Fate.LOST, f"the {opened.side} end of a pipe", reason, numbers, opened=opened)


def reopen_pipe(opened: OpenedPipe) -> int:
    """Return an end of a pipe whose other end is closed."""
    reader, writer = os.pipe()
    kept, other = (reader, writer) if opened.side == "read" else (writer, reader)
    os.close(other)
    set_pipe_mode(kept, opened)
    return kept


def set_pipe_mode(fd: int, opened: OpenedPipe) -> None:
    """Let the calls of a pipe wait, or not, as recorded."""
    flags = opened.handle.flags
    os.set_blocking(fd, not (isinstance(flags, int) and flags & os.O_NONBLOCK))


def plan_epoll(opened: OpenedEpoll) -> PlanRow:
    """Decide an epoll: a new one with the same registrations."""
    numbers = opened.handle.numbers
    if isinstance(opened.watched, Unknown):
        return PlanRow("epolls", Fate.REFUSED, "an epoll", opened.watched.reason, numbers, opened=opened)
    count = len(opened.watched)
    text = f"an epoll of {count} descriptor{'s' * (count != 1)}"
    return PlanRow("epolls", Fate.REOPENED, text, "", numbers, opened=opened)


def reopen_epoll(opened: OpenedEpoll) -> int:
    """Return a new epoll, in which the core registers what was registered."""
    made = select.epoll()
    try:
        return os.dup(made.fileno())
    finally:
        made.close()


def plan_eventfd(opened: OpenedEventFd) -> PlanRow:
    """Decide an eventfd: a new one with the same counter."""
    numbers = opened.handle.numbers
    if isinstance(opened.value, Unknown):
        return PlanRow("eventfds", Fate.REFUSED, "an eventfd", opened.value.reason, numbers, opened=opened)
    return PlanRow("eventfds", Fate.REOPENED, f"an eventfd at {opened.value}", "", numbers, opened=opened)


def reopen_eventfd(opened: OpenedEventFd) -> int:
    """Return a new eventfd with the same counter."""
    assert isinstance(opened.value, int)
    flags = opened.handle.flags if isinstance(opened.handle.flags, int) else 0
    fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_SEMAPHORE * opened.is_semaphore | (flags & os.O_NONBLOCK))
    if opened.value:
        os.eventfd_write(fd, opened.value)
    return fd


def plan_timerfd(opened: OpenedTimerFd) -> PlanRow:
    """Refuse a timerfd: when it was due next is not recorded."""
    reason = "the time at which it is due next is not recorded"
    return PlanRow("timerfds", Fate.REFUSED, "a timerfd", reason, opened.handle.numbers, opened=opened)


def plan_pidfd(opened: OpenedPidFd) -> PlanRow:
    """Decide a pidfd: its process is no child of the resumed program."""
    reason = "its process is no longer a child: the pidfd reads as if the process had ended"
    text = f"a pidfd of process {opened.pid}"
    return PlanRow("pidfds", Fate.LOST, text, reason, opened.handle.numbers, opened=opened)


def reopen_pidfd(opened: OpenedPidFd) -> int:
    """Return a descriptor that is always ready to read, as a pidfd is whose process has ended."""
    ours, other = socket.socketpair()
    other.close()
    return ours.detach()


def plan_other(opened: OpenedOther) -> PlanRow:
    """Refuse what is not known."""
    return PlanRow("others", Fate.REFUSED, opened.kind, opened.reason, opened.handle.numbers, opened=opened)


def never(opened: object) -> int:
    """Raise CannotReopen: the rule has no way to open it."""
    raise CannotReopen("it cannot be opened again")
