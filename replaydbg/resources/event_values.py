"""Take arguments and outcomes of events apart."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.events import linux
from replaydbg.events.records import Event
from replaydbg.events.values import ContentRef, ExceptionValue, OpenFile


def argument(event: Event, index: int, name: str = "", default: object = None) -> object:
    """Return an argument by its index, or the keyword argument `name`; `default` if it was not given."""
    arguments = event.arguments or ()
    keywords = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
    if name and name in keywords:
        return keywords[name]
    positional = len(arguments) - bool(keywords)
    return arguments[index] if index < positional else default


def number_of(value: object) -> int:
    """Return the descriptor, or process id, that a value is, or the descriptor of a file in it; -1: none."""
    found = value.fd if isinstance(value, OpenFile) else value
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < _MOST_NUMBER else -1


def whole(value: object) -> int | None:
    """Return a value that is an integer of the kernel (64 bits); None: it is not. A damaged log can have any."""
    return int(value) if isinstance(value, int) and -_MOST <= value < _MOST else None


def integer(value: object, default: int = 0) -> int:
    """Return a value that is an integer of the kernel, else `default`."""
    found = whole(value)
    return default if found is None else found


def items(value: object) -> Sequence[object]:
    """Return the items of a list or tuple; none of another value."""
    return value if isinstance(value, list | tuple) else ()


def first(value: object) -> object:
    """Return the first item of a list or tuple; None without one."""
    found = items(value)
    return found[0] if found else None


def byte_count(value: object) -> int | None:
    """Return how many bytes an outcome is, or counts; None: nothing was read (it would have blocked)."""
    if isinstance(value, tuple):  # of recvfrom and its kin
        value = first(value)
    if isinstance(value, bytes | bytearray):
        return len(value)
    if isinstance(value, ContentRef):
        return value.length
    found = whole(value)
    return found if found is not None and found >= 0 else None


def error_number(event: Event) -> int:
    """Return the errno of the OSError that a call raised; 0: it raised none."""
    outcome = event.outcome
    found = outcome.os_error[0] if event.raised and isinstance(outcome, ExceptionValue) and outcome.os_error else 0
    return integer(found)


IN_PROGRESS = (linux.EINPROGRESS, linux.EALREADY, linux.EAGAIN)
"""A connection that was begun without waiting."""

_MOST = 1 << 63
_MOST_NUMBER = 1 << 31
