"""A snapshot of agents is a consistent cut of what they did, and has the messages that were in flight in that cut."""

from __future__ import annotations

import queue
from collections import defaultdict
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.distributed import Agent, AgentSystem, Channel, GlobalSnapshot, GlobalState
from replaydbg.distributed.cuts import CutFinder, Requirement


class Run:
    """Agents whose state is the number of their events, and what each did: the oracle."""

    def __init__(self, agents: int, pairs: list[tuple[int, int]], room: int) -> None:
        self.events = [0] * agents
        self.room = room
        system = AgentSystem()
        self.agents: list[Agent] = [
            system.agent(f"A{at}", partial(self.events.__getitem__, at)) for at in range(agents)
        ]
        self.queues: list[queue.Queue[Any]] = [queue.Queue(room) for _ in pairs]
        self.channels: list[Channel] = [
            system.channel(f"A{a}", f"A{b}", carrier, name=f"c{at}")
            for at, ((a, b), carrier) in enumerate(zip(pairs, self.queues, strict=True))
        ]
        self.pairs = pairs
        self.sent: defaultdict[int, list[int]] = defaultdict(list)
        self.received: defaultdict[int, list[int]] = defaultdict(list)
        self.snapshots: list[tuple[int, GlobalSnapshot]] = []

    def send(self, at: int) -> None:
        """Send the number of the message, unless that could wait for room."""
        open_ones = sum(not each.is_complete for _, each in self.snapshots)
        if self.room and self.queues[at].qsize() + open_ones >= self.room:
            return
        sender = self.pairs[at][0]
        self.agents[sender].send(self.channels[at], len(self.sent[at]))
        self.events[sender] += 1
        self.sent[at].append(self.events[sender])

    def receive(self, at: int) -> None:
        """Receive a message if there is one."""
        receiver = self.pairs[at][1]
        try:
            message = self.agents[receiver].receive(self.channels[at], timeout=0)
        except TimeoutError:
            return
        assert message == len(self.received[at])
        self.events[receiver] += 1
        self.received[at].append(self.events[receiver])

    def begin(self, at: int) -> None:
        """Begin a snapshot."""
        self.snapshots.append((at, self.agents[at].begin()))

    def take_all_markers(self) -> None:
        """Let each marker arrive: one gets over a channel in each round."""
        for _ in range(2 + len(self.agents) * (1 + len(self.snapshots))):
            for agent in self.agents:
                agent.take_markers()

    def reached(self, initiator: int) -> set[int]:
        """Return the agents to which channels lead from one."""
        found, before = {initiator}, set[int]()
        while found != before:
            before = set(found)
            found |= {b for a, b in self.pairs if a in found}
        return found

    def check(self, initiator: int, state: GlobalState) -> None:
        """Compare a snapshot with what is computed from all events."""
        reached = self.reached(initiator)
        names = [agent.name for agent in self.agents]
        assert set(state.missing) == {names[at] for at in range(len(names)) if at not in reached}
        cut = {at: state.states.get(name, 0) for at, name in enumerate(names)}
        for at, (sender, receiver) in enumerate(self.pairs):
            messages = state.in_flight[f"c{at}"]
            assert (f"c{at}" in state.waiting) == (sender not in reached)
            if sender in reached:
                sent = sum(event <= cut[sender] for event in self.sent[at])
                taken = sum(event <= cut[receiver] for event in self.received[at])
                assert taken <= sent
                assert messages == tuple(range(taken, sent))
        if state.is_complete:
            assert self.finder().is_consistent(cut)

    def finder(self) -> CutFinder:
        """Return the offline search over the same events."""
        needed = [
            Requirement(sender, receiver, self.sent[at][: len(self.received[at])], self.received[at])
            for at, (sender, receiver) in enumerate(self.pairs)
        ]
        return CutFinder(dict(enumerate(self.events)), needed)


Steps = list[tuple[str, int]]
Plan = tuple[int, list[tuple[int, int]], int, Steps]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Return any topology, bounded or unbounded channels, and any schedule."""
    agents = draw(st.integers(1, 4))
    ring = draw(st.sampled_from(([], [(at, (at + way) % agents) for at in range(agents) for way in (1, -1)])))
    number = st.integers(0, agents - 1)
    pairs = ring + draw(st.lists(st.tuples(number, number), max_size=4))
    steps: Steps = [(kind, at) for at in range(len(pairs)) for kind in ("send", "send", "receive")]
    steps += [(kind, at) for at in range(agents) for kind in ("begin", "take")]
    # Long ones: a marker, and what is sent after it, have to be received while another channel still waits.
    length = draw(st.sampled_from((0, 30, 60)))
    schedule = draw(st.lists(st.sampled_from(steps), min_size=length, max_size=length + 30))
    return agents, pairs, draw(st.sampled_from((0, 2, 3))), schedule


def run_of(plan: Plan) -> Run:
    """Return what the agents did."""
    agents, pairs, room, schedule = plan
    run = Run(agents, pairs, room)
    for kind, at in schedule:
        if kind == "take":
            run.agents[at].take_markers()
        else:
            {"send": run.send, "receive": run.receive, "begin": run.begin}[kind](at)
    return run


@given(plans())
@settings(deadline=None)
def test_a_snapshot_is_a_consistent_cut_with_its_messages(plan: Plan) -> None:
    """After any schedule; several snapshots can overlap, and markers are looked for at any time."""
    run = run_of(plan)
    run.take_all_markers()

    for initiator, snapshot in run.snapshots:
        run.check(initiator, snapshot.state())


@given(plans())
@settings(deadline=None)
def test_receiving_everything_completes_snapshots_too(plan: Plan) -> None:
    run = run_of(plan)
    # A marker gets over a channel in each round, also where no message is left.
    for _ in range(sum(map(len, run.sent.values())) + len(run.agents) * (1 + len(run.snapshots))):
        for at in range(len(run.pairs)):
            run.receive(at)

    for initiator, snapshot in run.snapshots:
        run.check(initiator, snapshot.state())
    assert all(len(run.sent[at]) == len(run.received[at]) for at in range(len(run.pairs)))
