"""Positions from which a process of a group can go on."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.distributed.resumable import ResumableFinder
from replaydbg.events.records import Entry
from tests.distributed.test_quiet import CALL, LOCK, call, recv, started, switch


def resumable(entries: Sequence[Entry], *receives: int) -> list[int]:
    return list(ResumableFinder(set(receives)).read(entries))


def test_before_each_event_of_one_thread_and_at_the_end() -> None:
    assert resumable([call(1, "posix.write", 3, None), call(2, "time.sleep", 1.0)]) == [0, 1, 2]


def test_other_threads_can_wait_for_locks() -> None:
    entries: list[Entry] = [started(0, 1), switch(0, 1, 0, LOCK), call(1, "posix.write", 3, None)]

    assert resumable(entries) == [0, 1]


def test_a_call_of_another_thread_must_only_wait() -> None:
    begin: list[Entry] = [started(0, 1), switch(0, 1, 0, CALL), call(1, "posix.open", "x"), call(2, "posix.open", "y")]

    assert resumable(begin) == [0, 1, 2]  # it has not ended
    assert resumable([*begin, recv(3, 3, lane=1)], 3) == [0, 1, 2, 3]
    assert resumable([*begin, call(3, "time.sleep", 1, lane=1)]) == [0, 1, 2, 3]
    assert resumable([*begin, call(3, "posix.write", 3, None, lane=1)]) == [0, 3]


def test_a_forked_child_has_no_other_threads() -> None:
    begin: list[Entry] = [started(0, 1), switch(0, 1, 0, CALL), call(1, "posix.fork", outcome=0)]

    assert resumable([*begin, call(2, "posix.open", "x")]) == [0, 1, 2]
