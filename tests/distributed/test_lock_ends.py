"""Locks of files that nobody released end with the last close of their open file, or with their process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from replaydbg.distributed.cuts import finder_of
from replaydbg.distributed.descriptors import FILE, ChannelEnd
from replaydbg.distributed.live_cuts import positions_at
from replaydbg.distributed.lock_ends import Ending, LockCall, LockEnds
from replaydbg.distributed.matching.columns import Member
from replaydbg.distributed.matching.matching import GroupMatching
from replaydbg.events.transfers import Endpoint, Transfer
from tests.distributed.model import columns_of

PEERS = tuple(f"{mode} {family}" for family in ("flock", "lockf") for mode in ("exclusive", "shared"))
ENDPOINTS = [
    *(Endpoint(number, "file-lock", "8:1", peer, 0, "") for number, peer in enumerate(PEERS, 1)),
    Endpoint(len(PEERS) + 1, "stream", "", "", 0, ""),
]
STREAM = len(PEERS) + 1
FILES = [ChannelEnd(1, number, 0, FILE) for number in (1, 2, 3)]

Owner = int | ChannelEnd
"""What has a lock: a process, or an open file."""


@dataclass
class Call:
    """A call of a process: a lock, an unlock, or a close."""

    what: str
    file: ChannelEnd
    owner: Owner
    endpoint: int
    ticket: int
    """That which it took before; 0: it takes one after it."""
    released: str = ""
    """The lock of the process that a close has ended."""
    is_done: bool = False


@dataclass
class Process:
    """A process of the model."""

    number: int
    files: set[ChannelEnd]
    rows: list[Transfer] = field(default_factory=list)
    calls: dict[int, LockCall] = field(default_factory=dict)
    closed: dict[ChannelEnd, int] = field(default_factory=dict)
    """The event that closed each open file."""
    events: int = 0
    doing: Call | None = None
    has_ended: bool = False


class Model:
    """Processes with open files in common; calls take three steps, and the kernel does them in the second one."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)  # drawn by hypothesis, hardly any lock would be taken
        self.processes = [
            Process(number, set(self.draw.sample(FILES, self.draw.randint(1, len(FILES))))) for number in (1, 2, 3)
        ]
        self.first = {each.number: frozenset(each.files) for each in self.processes}
        self.ticket = 0
        self.locks: dict[Owner, str] = {}
        """Who has which lock."""
        self.ended: list[tuple[str, list[tuple[int, int]]]] = []
        """Each lock that ended without a release, with all that had to happen for it: processes and events."""
        self.causes: list[tuple[tuple[int, int], tuple[int, int]]] = []
        """Events, and the acquisitions that they let go on."""
        for _ in range(self.draw.randint(0, 80)):
            process = self.draw.choice(self.processes)
            if not process.has_ended:
                self.step(process)

    def take(self) -> int:
        self.ticket += 1
        return self.ticket

    def step(self, process: Process) -> None:
        call = process.doing
        if call is None:
            self.begin(process)
        elif call.is_done:
            self.end(process, call)
        elif call.what != "lock" or not self.excluding(call):
            self.do(process, call)

    def begin(self, process: Process) -> None:
        if not process.files or self.draw.random() < 0.1:
            process.has_ended = True
            for file in sorted(process.files):
                self.drop(process, file)
            self.drop_lock(process.number, [(process.number, process.events)])
            return
        file = self.draw.choice(sorted(process.files))
        what = self.draw.choice(["lock", "lock", "unlock", "close"])
        owners: list[Owner] = [process.number, file]
        owner = self.draw.choice(owners)
        peer = self.draw.randint(1, 2) + (2 if owner == process.number else 0)
        if what == "unlock":
            peer = PEERS.index(self.locks[owner]) + 1 if owner in self.locks else peer
        if what == "lock" and owner in self.locks:
            return  # conversions have a release of their own
        endpoint = STREAM if what == "close" else peer
        process.doing = Call(what, file, owner, endpoint, 0 if what == "lock" else self.take())

    def excluding(self, call: Call) -> list[Owner]:
        mode, family = PEERS[call.endpoint - 1].split()
        return [
            owner
            for owner, other in self.locks.items()
            if owner != call.owner and other.split()[1] == family and "exclusive" in (mode, other.split()[0])
        ]

    def do(self, process: Process, call: Call) -> None:
        if call.what == "lock" and call.owner in self.locks:
            process.doing = None  # another process has locked the same open file meanwhile: as in begin()
            return
        event = process.events + 1
        call.is_done = True
        if call.what == "unlock":
            self.locks.pop(call.owner, None)
        elif call.what == "close":
            process.closed[call.file] = event
            self.drop(process, call.file)
            call.released = self.locks.pop(process.number, "")
        else:
            peer = PEERS[call.endpoint - 1]
            for other, causes in self.ended:
                if other.split()[1] == peer.split()[1] and "exclusive" in (other.split()[0], peer.split()[0]):
                    self.causes += [(cause, (process.number, event)) for cause in causes]
            self.locks[call.owner] = peer

    def drop(self, process: Process, file: ChannelEnd) -> None:
        process.files -= {file}
        if not any(file in each.files for each in self.processes):
            had = [each for each in self.processes if file in self.first[each.number]]
            self.drop_lock(file, [(each.number, each.closed.get(file, each.events)) for each in had])

    def drop_lock(self, owner: Owner, causes: list[tuple[int, int]]) -> None:
        if owner in self.locks:
            self.ended.append((self.locks.pop(owner), causes))

    def end(self, process: Process, call: Call) -> None:
        process.events += 1
        if call.what != "close":
            is_of_process = call.owner == process.number
            process.calls[process.events] = LockCall(frozenset([call.file]), is_of_process)
        elif call.released:  # the core knows of it
            self.row(process, "send", call.ticket, PEERS.index(call.released) + 1)
        way = "receive" if call.what == "lock" else "send"
        self.row(process, way, call.ticket or self.take(), call.endpoint)
        process.doing = None

    def row(self, process: Process, way: str, ticket: int, endpoint: int) -> None:
        number = process.events
        process.rows.append(Transfer(number, number - 1, ticket, endpoint, way, 0, 0, "", False, False))

    # ---- what is recorded ----

    def members(self) -> list[Member]:
        return [Member(each.number, ENDPOINTS, columns_of(each.rows), events=each.events) for each in self.processes]

    def closings(self, end: ChannelEnd) -> Iterator[Ending]:
        for each in self.processes:
            if end in self.first[each.number]:
                closed = each.closed.get(end, 0)
                tickets = [row.ticket for row in each.rows if row.event == closed]
                yield Ending(each.number, closed, tickets[-1]) if tickets else self.end_of(each.number)

    def end_of(self, number: int) -> Ending:
        process = self.processes[number - 1]
        return Ending(number, process.events, max((row.ticket for row in process.rows), default=0))

    def lock_ends(self) -> LockEnds:
        calls = {each.number: each.calls for each in self.processes}
        return LockEnds(self.members(), calls, self.closings, self.end_of)


@settings(max_examples=300)
@given(st.integers(0, 1 << 32))
@example(379598901)  # a lock that has a later ticket than the one that it followed
def test_what_ended_a_lock_is_in_the_cut_of_the_next_acquisition(seed: int) -> None:
    model = Model(seed)
    members = model.members()
    finder = finder_of(GroupMatching(members), more=model.lock_ends().requirements())
    events = {each.number: each.events for each in model.processes}

    for (process, event), (target, acquired) in model.causes:
        if process != target and 0 < event <= events[process] and acquired <= events[target]:
            cut = finder.latest(dict(finder.last) | {process: event - 1})
            assert cut[target] < acquired, (process, event, target, acquired)


@settings(max_examples=300)
@given(st.integers(0, 1 << 32))
def test_every_value_of_the_clock_meets_these_requirements(seed: int) -> None:
    model = Model(seed)
    members = model.members()
    finder = finder_of(GroupMatching(members), more=model.lock_ends().requirements())

    for ticket in range(model.ticket + 1):
        assert finder.is_consistent(positions_at(members, ticket))
