"""Agents of one process: what each carrier does, what is refused, and what a snapshot says if it is not complete."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from replaydbg import distributed
from replaydbg.distributed import Agent, AgentSystem, AsyncFunctions, Channel, Functions, Stream, Transport, Uncopied
from replaydbg.errors import BadDeclaration, ChannelMisuse, SnapshotIncomplete, UsageError
from tests.harness.replay_cases import Case, cases


@pytest.mark.parametrize("case", cases("agents"))
def test_a_program_with_agents_replays(case: Case) -> None:
    case.check()


class Pair:
    """Two agents with a channel in each direction."""

    def __init__(self, make: Callable[[], object] = queue.Queue) -> None:
        self.states: dict[str, Any] = {"X": [], "Y": []}
        system = self.system = AgentSystem()
        self.x: Agent = system.agent("X", lambda: self.states["X"])
        self.y: Agent = system.agent("Y", lambda: self.states["Y"])
        self.carriers = make(), make()
        self.to_y: Channel = system.channel(self.x, self.y, self.carriers[0])
        self.to_x: Channel = system.channel("Y", "X", self.carriers[1])


# ---- carriers ----


def pipe() -> Iterator[Stream]:
    receiving, sending = os.pipe()
    yield Stream(sending, receiving)
    os.close(sending)
    os.close(receiving)


def sockets(*, is_blocking: bool = True) -> Iterator[Stream]:
    one, other = socket.socketpair()
    one.setblocking(is_blocking)
    other.setblocking(is_blocking)
    with one, other:
        yield Stream(one, other)


def functions(*, carries_bytes: bool = False) -> Iterator[Functions]:
    inner: queue.SimpleQueue[Any] = queue.SimpleQueue()
    yield Functions(inner.put, inner.get, can_receive=lambda: not inner.empty(), carries_bytes=carries_bytes)


CARRIERS: dict[str, Callable[[], Iterator[object]]] = {
    "queue": lambda: iter([queue.Queue()]),
    "simple queue": lambda: iter([queue.SimpleQueue()]),
    "pipe": pipe,
    "sockets": sockets,
    "sockets that do not block": lambda: sockets(is_blocking=False),
    "functions": functions,
    "functions of bytes": lambda: functions(carries_bytes=True),
}


@pytest.mark.parametrize("kind", CARRIERS)
def test_messages_before_a_marker_are_in_flight(kind: str) -> None:
    """They still arrive afterwards, and no marker does; both directions have a carrier of their own."""
    made = [CARRIERS[kind](), CARRIERS[kind]()]
    pair = Pair(iter([next(each) for each in made]).__next__)
    pair.y.send(pair.to_x, b"early")
    pair.x.send(pair.to_y, b"first")
    snapshot = pair.x.begin()
    pair.x.send(pair.to_y, b"late")

    assert pair.y.receive(pair.to_y) == b"first"
    assert pair.y.receive(pair.to_y) == b"late"
    assert not snapshot.is_complete
    assert pair.x.take_markers(timeout=10)

    assert snapshot.wait(0).in_flight == {"X->Y": (), "Y->X": (b"early",)}
    assert pair.x.receive(pair.to_x) == b"early"
    with pytest.raises(TimeoutError, match="no message has arrived on channel 'Y->X' in time"):
        pair.x.receive(pair.to_x, timeout=0)


@pytest.mark.skipif(not hasattr(queue, "ShutDown"), reason="Python 3.13 has it")
def test_a_queue_that_was_shut_down_has_ended() -> None:
    pair, loop = Pair(), Pair(asyncio.Queue)
    for each in (pair, loop):
        each.carriers[1].shutdown()  # type: ignore[attr-defined]

    with pytest.raises(EOFError, match="the queue was shut down"):
        pair.x.receive(pair.to_x)
    with pytest.raises(EOFError, match="the queue was shut down"):
        asyncio.run(loop.x.receive_async(loop.to_x))

    for each in (pair, loop):
        snapshot = each.x.begin()
        assert not each.x.take_markers()
        each.y.join(snapshot)
        assert each.y.take_markers()
        assert snapshot.state().waiting == ("Y->X",)


def test_large_messages_and_parts_of_them_arrive_over_sockets() -> None:
    content = os.urandom(1 << 20)
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(30)
        pair = Pair(iter([Stream(one, other), queue.Queue()]).__next__)
        sender = threading.Thread(target=pair.x.send, args=(pair.to_y, content))
        sender.start()
        assert pair.y.receive(pair.to_y, timeout=30) == content
        sender.join()
        pair.x.begin()
        with pytest.raises(TimeoutError):
            pair.y.receive(pair.to_y, timeout=0.001)


def test_the_end_of_a_stream_is_an_eof_error() -> None:
    one, other = socket.socketpair()
    pair = Pair(iter([Stream(one, other), queue.Queue()]).__next__)
    pair.x.send(pair.to_y, b"last")
    one.close()

    assert pair.y.receive(pair.to_y) == b"last"
    with pytest.raises(EOFError):
        pair.y.receive(pair.to_y)
    state = pair.y.begin().state()
    assert [each.waits for each in state.channels] == ["the stream has ended", "waits for its marker"]
    other.close()


def test_a_marker_that_cannot_be_sent_breaks_nothing() -> None:
    one, other = socket.socketpair()
    one.close()
    other.close()
    pair = Pair(iter([Stream(one, other), queue.Queue()]).__next__)

    state = pair.x.begin().state()

    assert state.channels[0].waits.startswith("its marker could not be sent: ")
    with pytest.raises((OSError, ValueError)):
        pair.x.send(pair.to_y, b"message")


def test_what_a_stream_cannot_carry_gets_a_sentence() -> None:
    pair = Pair(iter([Stream(0, 1), queue.Queue()]).__next__)

    with pytest.raises(TypeError, match="carries bytes, and the message is of type int: give the channel encode= and"):
        pair.x.send(pair.to_y, 5)


def test_a_marker_waits_for_room_without_stopping_its_sender() -> None:
    pair = Pair(lambda: queue.Queue(1))
    pair.x.send(pair.to_y, 1)

    snapshot = pair.x.begin()

    assert pair.carriers[0].qsize() == 1  # type: ignore[attr-defined]
    assert pair.y.receive(pair.to_y) == 1
    assert pair.y.take_markers()
    assert pair.x.take_markers()
    assert snapshot.wait(0).states == {"X": [], "Y": []}


def test_two_full_queues_do_not_stop_two_threads_of_each_agent() -> None:
    """Each agent sends in one thread and receives in another one, and changes its state together with both."""
    pair = Pair(lambda: queue.Queue(1))
    pair.states.update(X=100, Y=100)
    snapshots = []

    def send(agent: Agent, channel: Channel) -> None:
        for number in range(100):
            with agent.atomic():
                pair.states[agent.name] -= number
                agent.send(channel, number)
            if number % 25 == 0:
                snapshots.append(agent.begin())

    def receive(agent: Agent, channel: Channel) -> None:
        def deposit(number: int) -> None:
            pair.states[agent.name] += number

        for _ in range(100):
            agent.receive(channel, apply=deposit)

    work = [(send, pair.x, pair.to_y), (send, pair.y, pair.to_x), (receive, pair.x, pair.to_x)]
    work.append((receive, pair.y, pair.to_y))
    threads = [threading.Thread(target=act, args=(agent, channel)) for act, agent, channel in work]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    for agent in (pair.x, pair.y) * 2:
        agent.take_markers()

    assert len(snapshots) == 8
    for snapshot in snapshots:
        state = snapshot.wait(0)
        assert sum(state.states.values()) + sum(map(sum, state.in_flight.values())) == 200


def test_join_and_task_done_count_no_markers() -> None:
    carrier: queue.Queue[Any] = queue.Queue()
    pair = Pair(iter([carrier, queue.Queue()]).__next__)
    pair.x.begin()
    pair.x.send(pair.to_y, 1)

    assert pair.y.receive(pair.to_y) == 1
    carrier.task_done()

    assert carrier.unfinished_tasks == 0


# ---- event loops ----


def test_tasks_of_one_agent_send_in_turn_and_a_cancelled_one_sends_nothing() -> None:
    async def run() -> None:
        pair = Pair(lambda: asyncio.Queue(1))
        await pair.x.send_async(pair.to_y, 1)
        waiting = [asyncio.create_task(pair.x.send_async(pair.to_y, number)) for number in (2, 3, 4)]
        await asyncio.sleep(0)
        snapshot = pair.x.begin()
        waiting[1].cancel()

        assert [await pair.y.receive_async(pair.to_y) for _ in range(3)] == [1, 2, 4]
        await pair.y.take_markers_async()
        assert pair.y.take_markers()
        await asyncio.wait_for(pair.x.take_markers_async(), 10)
        state = await asyncio.wait_for(snapshot.wait_async(), 10)
        assert state.is_complete

    asyncio.run(run())


def test_streams_of_an_event_loop() -> None:
    async def run() -> None:
        one, other = socket.socketpair()
        back, forth = await asyncio.open_connection(sock=one), await asyncio.open_connection(sock=other)
        ways = ((forth[0], back[1]), (back[0], forth[1]))

        def over(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncFunctions:
            async def receive() -> bytes:
                return await reader.readexactly((await reader.readexactly(1))[0])

            return AsyncFunctions(lambda data: writer.write(bytes([len(data)]) + data), receive, carries_bytes=True)

        pair = Pair(iter([over(*way) for way in ways]).__next__)
        await pair.y.send_async(pair.to_x, b"early")
        snapshot = pair.x.begin()
        await pair.x.send_async(pair.to_y, b"late")

        assert await pair.y.receive_async(pair.to_y) == b"late"
        await pair.x.take_markers_async()
        assert (await snapshot.wait_async()).in_flight == {"X->Y": (), "Y->X": (b"early",)}
        assert await pair.x.receive_async(pair.to_x) == b"early"
        for _, writer in (back, forth):
            writer.close()

    asyncio.run(run())


# ---- snapshots that are not complete, and copies ----


def test_an_error_names_what_is_missing() -> None:
    pair = Pair()
    snapshot = pair.x.begin()

    with pytest.raises(SnapshotIncomplete) as raised:
        snapshot.wait(0.001)

    assert str(raised.value) == (
        "Snapshot X#1 is not complete: the state of Y is not recorded; no marker has arrived on X->Y, Y->X."
    )
    assert raised.value.state == snapshot.state()
    assert raised.value.as_dict()["waiting"] == ("X->Y", "Y->X")
    assert str(snapshot.state()).splitlines()[0] == "snapshot X#1: incomplete"


def test_two_snapshots_at_once_and_one_later() -> None:
    pair = Pair()
    pair.x.send(pair.to_y, 1)
    first, second = pair.x.begin(), pair.y.begin()
    pair.y.send(pair.to_x, 2)
    for agent in (pair.x, pair.y, pair.x, pair.y):
        agent.take_markers()
    assert (pair.y.receive(pair.to_y), pair.x.receive(pair.to_x)) == (1, 2)
    third = pair.x.begin()
    pair.y.take_markers()
    pair.x.take_markers()

    assert [each.name for each in (first, second, third)] == ["X#1", "Y#1", "X#2"]
    assert first.wait(0).in_flight == {"X->Y": (1,), "Y->X": (2,)}
    assert second.wait(0).in_flight == {"X->Y": (1,), "Y->X": ()}
    assert third.wait(0).in_flight == {"X->Y": (), "Y->X": ()}


def test_the_recording_of_a_channel_ends_with_its_marker() -> None:
    """Another channel still waits: what follows the marker belongs to no state."""
    system = AgentSystem()
    x, y, z = (system.agent(name, int) for name in "XYZ")
    to_y, to_z = system.channel(x, y, queue.Queue()), system.channel(x, z, queue.Queue())
    from_y, from_z = system.channel(y, x, queue.Queue()), system.channel(z, x, queue.Queue())
    z.send(from_z, "z early")
    y.send(from_y, "y early")
    snapshot = x.begin()
    y.take_markers()
    y.send(from_y, "y late")
    received = [x.receive(from_y), x.receive(from_y), x.receive(from_z)]
    z.take_markers()
    x.take_markers()

    assert received == ["y early", "y late", "z early"]
    expected: dict[str, tuple[str, ...]] = {to_y.name: (), to_z.name: ()}
    assert snapshot.wait(0).in_flight == {**expected, "Y->X": ("y early",), "Z->X": ("z early",)}


def test_an_agent_that_is_not_reached_can_join() -> None:
    system = AgentSystem()
    x, y = system.agent("X", lambda: 1), system.agent("Y", lambda: 2)
    channel = system.channel(y, x, queue.Queue())
    snapshot = x.begin()
    assert snapshot.state().missing == ("Y",)

    y.join(snapshot)
    y.join(snapshot)

    assert x.take_markers()
    assert snapshot.wait(0).states == {"X": 1, "Y": 2}
    assert channel.name == "Y->X"


def test_a_snapshot_of_another_system_cannot_be_joined() -> None:
    snapshot = Pair().x.begin()

    with pytest.raises(UsageError, match="Snapshot X#1 is of another AgentSystem than agent 'Y'"):
        Pair().y.join(snapshot)


def test_states_and_messages_are_copies() -> None:
    pair = Pair()
    message = [1]
    pair.states["X"].append("before")
    pair.y.send(pair.to_x, message)
    snapshot = pair.x.begin()
    pair.states["X"].append("after")
    pair.x.receive(pair.to_x).append(2)
    pair.y.take_markers()
    pair.x.take_markers()

    state = snapshot.wait(0)

    assert state.states["X"] == ["before"]
    assert state.in_flight["Y->X"] == ([1],)


class Holder:
    """An object with a part that cannot be copied."""

    def __init__(self) -> None:
        self.items = [1, {"lock": threading.Lock()}]


def test_what_cannot_be_copied_is_named() -> None:
    pair = Pair()
    pair.states["X"] = {"held": Holder()}
    pair.y.send(pair.to_x, (threading.Lock(), 1))
    snapshot = pair.x.begin()
    del pair.states["Y"]
    pair.y.take_markers()
    pair.x.take_markers()

    state = snapshot.wait(0)

    no_lock = "cannot be copied: TypeError: cannot pickle '_thread.lock' object"
    assert state.states["X"] == Uncopied(f"state['held'].items[1]['lock'] {no_lock}")
    assert state.states["Y"] == Uncopied("the state function raised KeyError: 'Y'")
    assert state.in_flight["Y->X"] == (Uncopied(f"message[0] {no_lock}"),)
    assert json.loads(json.dumps(state.as_dict()))["agents"][1]["state"] == {"uncopied": state.states["Y"].reason}
    assert f"X: state['held'].items[1]['lock'] {no_lock}" in str(state)


def test_json_has_only_what_json_has() -> None:
    pair = Pair()
    pair.states["X"] = {"n": 1, "f": 0.5, "inf": float("inf"), "t": (None, True), "b": b"x", "d": {1: 2}, "s": {3}}
    data = json.loads(json.dumps(pair.x.begin().state().as_dict(), allow_nan=False))

    assert data["agents"] == [
        {
            "agent": "X",
            "state": {"n": 1, "f": 0.5, "inf": "inf", "t": [None, True], "b": "b'x'", "d": "{1: 2}", "s": "{3}"},
        }
    ]
    assert (data["schema_version"], data["snapshot"], data["is_complete"]) == (1, "X#1", False)
    assert data["channels"][0]["waits"] == "waits for its marker"


# ---- declarations and uses that are refused ----


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


def test_every_public_name_is_documented() -> None:
    from tests.project.test_docs import ROOT

    text = (ROOT / "docs" / "reference" / "distributed.md").read_text(encoding="utf-8")
    for name in distributed.__all__:
        assert f"{name}" in text
        for member in vars(getattr(distributed, name)):
            if not member.startswith("_") and not issubclass(getattr(distributed, name), Exception):
                assert f"`{member}" in text or member in _INTERNAL, f"{name}.{member}"


_INTERNAL = {"route", "read", "read_async", "reading", "turns", "pass_on_async", "async_transport"}
"""Of `Channel`: for the other modules only."""
