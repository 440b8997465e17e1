"""Quiet positions: a process waits for others, and nothing that it received is left to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from replaydbg.distributed.quiet import QuietFinder
from replaydbg.events.records import Control, ControlKind, Entry, Event, Site, SwitchReason
from replaydbg.events.values import ExceptionValue, OpenFile, TypeName

LOCK, CALL, ENDED, USED_UP = SwitchReason.LOCK, SwitchReason.CROSSING, SwitchReason.ENDED, SwitchReason.PREEMPTED


def call(number: int, gate: str, *arguments: Any, lane: int = 0, outcome: Any = None) -> Event:
    raised = isinstance(outcome, ExceptionValue)
    return Event(number, lane, Site(gate, "prog.py", "f", 1, 0), arguments, raised, outcome, None, None, 0)


def switch(after: int, lane: int, to: int, why: SwitchReason) -> Control:
    return Control(ControlKind.LANE, after, lane, 0, to, why=why)


def started(after: int, lane: int) -> Control:
    return Control(ControlKind.LANE_STARTED, after, 0, 0, lane, name="worker")


def end(after: int) -> Control:
    return Control(ControlKind.END, after, 0, 0, 0)


def quiet(entries: Sequence[Entry], *receives: int) -> list[int]:
    return list(QuietFinder(set(receives)).read(entries))


def recv(number: int, fd: int, *, lane: int = 0, outcome: Any = b"x") -> Event:
    return call(number, "_socket.socket.recv", OpenFile(fd), 10, lane=lane, outcome=outcome)


WOULD_BLOCK = ExceptionValue(TypeName("builtins", "BlockingIOError"), (11, "Resource temporarily unavailable"))


def test_a_receive_and_the_end() -> None:
    assert quiet([recv(1, 3), call(2, "posix.write", 4, None), recv(3, 3), end(4)], 1, 3) == [0, 2, 4]


@pytest.mark.parametrize(
    ("gate", "arguments", "is_wait"),
    [
        ("select.epoll.poll", (-1, 5), True),
        ("select.epoll.poll", (None, 5), True),
        ("select.epoll.poll", (0, 5), False),
        ("select.epoll.poll", (), True),
        ("select.poll().poll", (0.0,), False),
        ("select.select", ([OpenFile(3)], [], [], 0), False),
        ("select.select", ([OpenFile(3)], [], []), True),
        ("posix.waitpid", (77, 0), True),
        ("posix.waitpid", (77, 1), False),
        ("_socket.socket._accept", (OpenFile(3),), True),
        ("posix.write", (3, None), False),
    ],
)
def test_which_calls_wait(gate: str, arguments: tuple[Any, ...], is_wait: bool) -> None:
    assert quiet([call(5, gate, *arguments)]) == [4] * is_wait


def test_a_receive_of_what_a_poll_reported_is_no_wait() -> None:
    polled = call(1, "select.epoll.poll", -1, 5, outcome=[(3, 1)])
    assert quiet([polled, recv(2, 3), recv(3, 4)], 2, 3) == [0, 2]

    selected = call(1, "select.select", [OpenFile(4), OpenFile(3)], [], [], None, outcome=([1], [], []))
    closed = call(3, "_socket.socket.close", OpenFile(3))
    assert quiet([selected, recv(2, 3), closed, recv(4, 3)], 2, 4) == [0, 3]


def test_a_descriptor_that_failed_instead_of_waiting_never_waits() -> None:
    closed = call(4, "_socket.socket.close", OpenFile(3))
    assert quiet([recv(1, 3), recv(2, 3, outcome=WOULD_BLOCK), recv(3, 3), closed, recv(5, 3)], 1, 2, 3, 5) == [4]


def test_all_threads_wait_in_calls() -> None:
    entries: list[Entry] = [started(0, 1), switch(0, 0, 1, CALL), switch(0, 1, 0, CALL), recv(1, 3), recv(2, 4, lane=1)]

    assert quiet(entries, 1, 2) == [0]
    assert quiet(entries, 1) == []  # the call of the other one was none
    assert quiet([*entries[:2], switch(0, 1, 0, USED_UP), *entries[3:]], 1, 2) == []


def test_a_thread_that_waits_for_a_lock() -> None:
    """The second thread waits for a lock; the main one receives, and waits again."""
    begin: list[Entry] = [started(0, 1), switch(0, 0, 1, CALL), switch(0, 1, 0, LOCK), recv(1, 3)]

    assert quiet([*begin, switch(1, 0, 0, CALL), recv(2, 3)], 1, 2) == [0, 1]
    # It may have been released before: then it would come after what ended first.
    assert quiet([*begin, switch(1, 0, 1, CALL)], 1, 2) == []


def test_one_thread_is_left() -> None:
    entries: list[Entry] = [
        started(0, 1),
        switch(0, 0, 1, LOCK),
        recv(1, 3, lane=1),
        switch(1, 1, 0, ENDED),
        recv(2, 3),
    ]

    assert quiet(entries, 1, 2) == [1]
