"""Calls that receive from a descriptor or send to it, and what their outcomes say of a stream."""

from __future__ import annotations

from replaydbg.events import linux
from replaydbg.events.records import Event
from replaydbg.events.values import ExceptionValue

READS_ALL = "_io.FileIO.readall"
RECEIVES = {
    "posix.read",
    "posix.readinto",
    "posix.readv",
    "posix.eventfd_read",
    "_io.FileIO.read",
    READS_ALL,
    "_io.FileIO.readinto",
    *(f"_socket.socket.{name}" for name in ("recv", "recvfrom", "recvmsg")),
    *(f"_socket.socket.{name}_into" for name in ("recv", "recvfrom", "recvmsg")),
}
SENDS = {
    "posix.eventfd_write",
    "posix.write",
    "posix.writev",
    "_io.FileIO.write",
    *(f"_socket.socket.{name}" for name in ("send", "sendall", "sendto", "sendmsg")),
}
_IN_BACKGROUND = ("BlockingIOError", "InterruptedError")
_BROKEN = ("BrokenPipeError", "ConnectionResetError")


def argument(event: Event, index: int) -> object:
    """Return a positional argument of a call; None: it was given none."""
    arguments = event.arguments or ()
    return arguments[index] if index < len(arguments) and not isinstance(arguments[index], dict) else None


def connects(event: Event) -> bool:
    """Whether a call has connected a socket, or has begun to."""
    if event.raised:
        return isinstance(event.outcome, ExceptionValue) and event.outcome.type.qualname in _IN_BACKGROUND
    return event.outcome in (None, 0, linux.EINPROGRESS)


def meets_end(event: Event) -> bool:
    """Whether a call has met the end of a stream, or a broken pipe."""
    if event.raised:
        outcome = event.outcome
        return isinstance(outcome, ExceptionValue) and outcome.type.qualname in _BROKEN
    if event.gate in RECEIVES:
        outcome = event.outcome
        moved = outcome[0] if isinstance(outcome, tuple) and outcome else outcome
        if event.gate == READS_ALL:
            return isinstance(moved, bytes)
        if argument(event, 1) == 0:  # it asked for nothing
            return False
        return moved == b"" or (moved == 0 and type(moved) is int)
    return False
