"""Releases of eventfds, semaphores and locks of files come before the acquisitions that they let go on."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed.cuts import finder_of
from replaydbg.distributed.edges import HappensBefore
from replaydbg.distributed.happens_before import edges_without_bytes
from replaydbg.distributed.live_cuts import positions_at
from replaydbg.distributed.matching.columns import Member
from replaydbg.distributed.matching.matching import GroupMatching
from replaydbg.events.transfers import Endpoint, Transfer
from tests.distributed.model import columns_of

OWN = "8:1"
EXCLUSIVE, SHARED = "exclusive flock", "shared flock"


def member(
    process: int, kind: str, transfers: list[Transfer], peers: tuple[str, ...] = ("",), events: int = 99
) -> Member:
    ends = [Endpoint(number, kind, OWN, peer, 0, "") for number, peer in enumerate(peers, 1)]
    return Member(process, ends, columns_of(transfers), events=events)


def move(way: str, event: int, ticket: int, endpoint: int = 1) -> Transfer:
    return Transfer(event, event - 1, ticket, endpoint, way, 0, 0, "", False, False)


def edges(*members: Member) -> list[tuple[int, int, int, int, bool]]:
    return [(*each[:4], each.is_certain) for each in edges_without_bytes(members)]


def test_a_read_of_an_eventfd_needs_the_writes_of_all_processes_before_it() -> None:
    one = member(1, "eventfd", [move("send", 2, 1), move("send", 3, 3), move("send", 4, 9)])
    two = member(2, "eventfd", [move("send", 5, 2)])
    reader = member(3, "eventfd", [move("receive", 7, 4), move("receive", 8, 5), move("receive", 9, 10)])

    # The second read needs no more than the first one.
    assert edges(one, two, reader) == [(1, 3, 3, 7, False), (2, 5, 3, 7, False), (1, 4, 3, 9, False)]


def test_eventfds_with_other_numbers_are_others() -> None:
    writer = member(1, "eventfd", [move("send", 2, 1)])
    other = Member(2, [Endpoint(1, "eventfd", "8:2", "", 0, "")], columns_of([move("receive", 3, 4)]), events=9)

    assert edges(writer, other) == []


@pytest.mark.parametrize(
    ("peers", "is_certain"),
    [
        ((EXCLUSIVE, EXCLUSIVE), True),
        (("exclusive lockf", "exclusive lockf"), True),
        (("exclusive lockf part", "exclusive lockf part"), False),
        ((EXCLUSIVE, "exclusive lockf"), False),
        ((SHARED, EXCLUSIVE), False),
        ((EXCLUSIVE, SHARED), False),
    ],
)
def test_a_lock_that_one_has_at_a_time_is_acquired_after_its_release(peers: tuple[str, str], is_certain: bool) -> None:
    one = member(1, "file-lock", [move("receive", 2, 1), move("send", 3, 2)], (peers[0],))
    two = member(2, "file-lock", [move("receive", 5, 3), move("send", 6, 4)], (peers[1],))

    assert edges(one, two) == [(1, 3, 2, 5, is_certain)]


def test_shared_locks_do_not_need_each_other() -> None:
    one = member(1, "file-lock", [move("receive", 2, 1), move("send", 3, 3)], (SHARED,))
    two = member(2, "file-lock", [move("receive", 5, 2), move("send", 6, 4), move("receive", 7, 5)], (SHARED,))

    assert edges(one, two) == []


def test_whoever_ended_with_a_lock_had_ended_before_the_next_one_got_it() -> None:
    one = member(1, "file-lock", [move("receive", 2, 1)], (EXCLUSIVE,), events=30)
    running = member(3, "file-lock", [move("receive", 2, 2), move("send", 9, 8)], (EXCLUSIVE,), events=30)
    two = member(2, "file-lock", [move("receive", 5, 3), move("receive", 6, 4)], (EXCLUSIVE,))

    assert edges(one, two) == [(1, 30, 2, 5, False)]
    # It took a ticket later, so it had another part of the file.
    assert edges(running, two) == []


# ---- a model ----


@dataclass
class Process:
    """A process of the model, which makes one call at a time."""

    number: int
    rows: list[Transfer] = field(default_factory=list)
    events: int = 0
    doing: tuple[str, int] | None = None
    """The call that it is in: what it is, and the ticket that it took before it, or 0."""
    is_done: bool = False
    """Whether the kernel has done it."""
    has: int = 0
    """The endpoint of the lock that it has; 0: none."""
    released: int = 0
    """That of the lock that it had before."""


class Model:
    """Processes whose calls begin, are done by the kernel, and end, in any order: tickets are taken at both ends."""

    def __init__(self, count: int) -> None:
        self.processes = [Process(number) for number in range(1, count + 1)]
        self.ticket = 0
        self.kernel: list[tuple[Process, str, int]] = []
        """The acts of the kernel in its order: the process, the call, and its event."""

    def take(self) -> int:
        self.ticket += 1
        return self.ticket

    def begin(self, process: Process, call: str) -> None:
        process.doing = call, 0 if call in ("exclusive", "shared", "read") else self.take()

    def can_do(self, process: Process) -> bool:
        call = process.doing[0] if process.doing else ""
        others = [each.has for each in self.processes if each is not process and each.has]
        if call == "exclusive":
            return not others
        if call == "shared":
            return 1 not in others
        if call == "read":
            return self.count() > 0
        return bool(call)

    def count(self) -> int:
        found = 0
        for _, call, _ in self.kernel:
            found = found + 1 if call == "write" else 0 if call == "read" else found
        return found

    def do(self, process: Process) -> None:
        assert process.doing is not None
        call = process.doing[0]
        self.kernel.append((process, call, process.events + 1))
        process.is_done = True
        if call in ("exclusive", "shared"):
            process.has = 1 if call == "exclusive" else 2
        elif call == "unlock":
            process.released, process.has = process.has, 0

    def end(self, process: Process) -> None:
        assert process.doing is not None
        call, ticket = process.doing
        process.events += 1
        endpoint = {"exclusive": 1, "shared": 2}.get(call) or (process.released if call == "unlock" else 1)
        way = "send" if ticket else "receive"
        process.rows.append(move(way, process.events, ticket or self.take(), endpoint))
        process.doing, process.is_done = None, False

    def run(self, data: st.DataObject, *, locks: bool) -> None:
        for _ in range(data.draw(st.integers(0, 60))):
            process = data.draw(st.sampled_from(self.processes))
            if process.doing is None:
                calls = (["unlock"] if process.has else ["exclusive", "shared"]) if locks else ["read", "write"]
                self.begin(process, data.draw(st.sampled_from(calls)))
            elif process.is_done:
                self.end(process)
            elif self.can_do(process):
                self.do(process)
        for process in self.processes:  # a call that never ended
            if process.doing is not None and process.doing[1]:
                process.rows.append(
                    move("send", 0, process.doing[1], max(process.has, 1))._replace(begun=process.events)
                )

    def causes(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Return what the kernel did before what else: the event of a release, and that of an acquisition."""
        found = []
        for at, (process, call, event) in enumerate(self.kernel):
            if call not in ("exclusive", "shared", "read") or event > process.events:
                continue
            for other, earlier, its in self.kernel[:at]:
                if other is not process and self._lets(earlier, call, other, its, at):
                    found.append(((other.number, its), (process.number, event)))
        return found

    def _lets(self, earlier: str, call: str, other: Process, event: int, at: int) -> bool:
        if call == "read":  # since the last one
            since = max((n for n in range(at) if self.kernel[n][1] == "read"), default=-1)
            return earlier == "write" and any(self.kernel[n] == (other, earlier, event) for n in range(since + 1, at))
        if earlier != "unlock":
            return False
        return call == "exclusive" or self._was_exclusive(other, event)

    def _was_exclusive(self, process: Process, event: int) -> bool:
        calls = [call for each, call, its in self.kernel if each is process and its < event]
        return calls[-1] == "exclusive"

    def members(self, kind: str, peers: tuple[str, ...]) -> list[Member]:
        return [member(each.number, kind, each.rows, peers, each.events) for each in self.processes]


@given(st.data(), st.booleans())
def test_whatever_let_an_acquisition_go_on_is_in_its_cut(data: st.DataObject, locks: bool) -> None:
    model = Model(data.draw(st.integers(2, 4)))
    model.run(data, locks=locks)
    kind, peers = ("file-lock", (EXCLUSIVE, SHARED)) if locks else ("eventfd", ("",))
    members = model.members(kind, peers)
    finder = finder_of(GroupMatching(members))

    for (process, event), (target, acquired) in model.causes():
        last = dict(finder.last)
        cut = finder.latest(last | {process: event - 1})
        assert cut[target] < acquired


@given(st.data(), st.booleans())
def test_every_value_of_the_clock_is_a_consistent_cut(data: st.DataObject, locks: bool) -> None:
    model = Model(data.draw(st.integers(2, 4)))
    model.run(data, locks=locks)
    kind, peers = ("file-lock", (EXCLUSIVE, SHARED)) if locks else ("eventfd", ("",))
    members = model.members(kind, peers)
    finder = finder_of(GroupMatching(members))

    for ticket in range(model.ticket + 1):
        assert finder.is_consistent(positions_at(members, ticket))


@given(st.data())
def test_a_certain_order_is_what_happened(data: st.DataObject) -> None:
    model = Model(data.draw(st.integers(2, 4)))
    model.run(data, locks=True)
    done = {(process.number, event): at for at, (process, _, event) in enumerate(model.kernel)}
    certain: defaultdict[bool, list[HappensBefore]] = defaultdict(list)
    for each in edges_without_bytes(model.members("file-lock", (EXCLUSIVE, SHARED))):
        certain[each.is_certain].append(each)

    for each in certain[True]:
        assert done[each.process, each.event] < done[each.to_process, each.to_event]
