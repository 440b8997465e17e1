"""Wrong declarations and uses of agents and channels get a sentence."""

from __future__ import annotations

import asyncio
import queue
import socket
from collections.abc import Callable
from typing import Any

import pytest

from replaydbg.distributed import AgentSystem, Functions, Stream, Transport
from replaydbg.errors import BadDeclaration, ChannelMisuse
from tests.distributed.agent_pair import Pair


class Newest(queue.LifoQueue[Any]):
    """A subclass is not first in, first out either."""


@pytest.mark.parametrize(
    "make", [queue.PriorityQueue, queue.LifoQueue, Newest, asyncio.PriorityQueue, asyncio.LifoQueue]
)
def test_queues_of_another_order_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(BadDeclaration, match="a channel must be first in, first out"):
        Pair(make)


def test_a_subclass_that_keeps_the_order_is_not_refused() -> None:
    class Logged(queue.Queue[Any]):
        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            super().put(item, block, timeout)

    Pair(Logged)


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda s: s.agent("X", int), "agent 'X' is declared already"),
        (lambda s: s.agent("", int), "the name of an agent has 1 to 100 printable characters (got '')"),
        (lambda s: s.agent("a\nb", int), "printable"),
        (lambda s: s.agent(5, int), "(got 5)"),
        (lambda s: s.agent("Z", 5), "agent 'Z' needs a function that returns its state (got int)"),
        (lambda s: s.channel("X", "Z", queue.Queue()), "no agent 'Z' is declared here (declared: X, Y)"),
        (lambda s: s.channel(AgentSystem().agent("X", int), "Y", queue.Queue()), "no agent 'X' is declared here"),
        (lambda s: s.channel("X", None, queue.Queue()), "no agent None is declared here"),
        (
            lambda s: s.channel("X", "Y", queue.Queue()),
            "channel 'X->Y' is declared already: give the second one a name=",
        ),
        (lambda s: s.channel("X", "Y", [], name="other"), "channel 'other' cannot go over list: give a queue.Queue"),
        (lambda s: s.channel("X", "Y", queue.Queue(), name=""), "the name of a channel has 1 to 202"),
    ],
)
def test_bad_declarations_get_a_sentence(declare: Callable[[Any], object], sentence: str) -> None:
    with pytest.raises(BadDeclaration) as raised:
        declare(Pair().system)

    assert sentence in str(raised.value)


def test_one_carrier_is_one_channel() -> None:
    pair = Pair()

    with pytest.raises(BadDeclaration, match="cannot go over what carries 'X->Y' already"):
        pair.system.channel("X", "Y", pair.carriers[0], name="second")

    inner: queue.Queue[Any] = queue.Queue()
    pair.system.channel("X", "Y", Functions(inner.put, inner.get), name="functions")
    with pytest.raises(BadDeclaration, match="carries 'functions' already"):
        pair.system.channel("X", "Y", Functions(inner.put, inner.get), name="again")

    one, other = socket.socketpair()
    with one, other:
        pair.system.channel("X", "Y", Stream(one, other), name="there")
        pair.system.channel("Y", "X", Stream(other, one), name="and back")
        with pytest.raises(BadDeclaration, match="carries 'there' already"):
            pair.system.channel("X", "Y", Stream(one, other), name="again")


def test_nothing_is_declared_after_a_snapshot() -> None:
    pair = Pair()
    pair.x.begin()

    with pytest.raises(BadDeclaration, match="before the first snapshot is begun"):
        pair.system.agent("Z", int)


def test_uses_of_a_channel_that_it_does_not_have() -> None:
    pair, loop = Pair(), Pair(asyncio.Queue)
    slow = Pair(lambda: Functions(queue.Queue[Any]().put, queue.Queue[Any]().get))
    coroutine = loop.x.send_async
    uses: list[tuple[Callable[[], object], str]] = [
        (lambda: pair.y.send(pair.to_y, 1), "agent 'Y' cannot send over channel 'X->Y': 'X' sends and 'Y' receives"),
        (lambda: pair.x.receive(pair.to_y), "agent 'X' cannot receive from channel 'X->Y'"),
        (lambda: pair.x.send(Pair().to_y, 1), "agent 'X' cannot send"),
        (lambda: loop.x.send(loop.to_y, 1), "channel 'X->Y' is asynchronous: use `await agent.send_async(...)`"),
        (lambda: loop.y.receive(loop.to_y), "is asynchronous: use `await agent.receive_async(...)`"),
        (
            lambda: asyncio.run(pair.x.send_async(pair.to_y, 1)),
            "channel 'X->Y' is not asynchronous: use send and receive",
        ),
        (lambda: asyncio.run(pair.y.receive_async(pair.to_y)), "is not asynchronous"),
        (lambda: asyncio.run(coroutine(loop.to_x, 1)), "agent 'X' cannot send over channel 'Y->X'"),
        (lambda: slow.y.receive(slow.to_y, timeout=1), "functions of your own have no timeout"),
        (lambda: [loop.x.begin(), loop.x.take_markers(timeout=1)], "use `await take_markers_async()`"),
    ]
    for use, sentence in uses:
        with pytest.raises(ChannelMisuse) as raised:
            use()
        assert sentence in str(raised.value)


def test_a_marker_of_other_agents_is_refused() -> None:
    carrier: queue.Queue[Any] = queue.Queue()
    one, other = Pair(iter([carrier, queue.Queue()]).__next__), Pair(iter([carrier, queue.Queue()]).__next__)
    one.x.begin()

    with pytest.raises(ChannelMisuse, match="the marker of a snapshot X#1 of other agents"):
        other.y.take_markers()


def test_a_transport_of_ones_own_needs_only_send_and_receive() -> None:
    class Board(Transport):
        def __init__(self) -> None:
            self.items: list[Any] = []

        def send(self, item: Any) -> None:
            self.items.append(item)

        def receive(self, timeout: float | None) -> Any:
            if not self.items:
                raise TimeoutError
            return self.items.pop(0)

    pair = Pair(Board)
    pair.y.send(pair.to_x, "early")
    snapshot = pair.x.begin()
    pair.y.take_markers()
    pair.x.take_markers()

    assert snapshot.wait(0).in_flight["Y->X"] == ("early",)
