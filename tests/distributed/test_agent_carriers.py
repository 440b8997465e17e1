"""Carriers of messages and markers: queues, sockets, pipes, functions, and the queues of an event loop."""

from __future__ import annotations

import asyncio
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from replaydbg.distributed import (
    Agent,
    AgentSystem,
    AsyncFunctions,
    Channel,
    Functions,
    GlobalSnapshot,
    SnapshotIncomplete,
    Stream,
)
from tests.distributed.agent_pair import Pair


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


@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_message_larger_than_the_buffer_waits_for_its_reader(is_blocking: bool) -> None:
    content = os.urandom(1 << 20)
    made = sockets(is_blocking=is_blocking)
    pair = Pair(iter([next(made), queue.Queue()]).__next__)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pair.y.receive(pair.to_y)))
    reader.start()
    pair.x.send(pair.to_y, content)
    reader.join()

    assert received == [content]


def test_bytes_that_no_agent_sent_are_refused() -> None:
    one, other = socket.socketpair()
    with one, other:
        pair = Pair(iter([Stream(one, other), queue.Queue()]).__next__)
        one.sendall(b"\0\0\0\2??")
        with pytest.raises(ValueError, match="bytes that no agent sent arrived in a channel of agents: "):
            pair.y.receive(pair.to_y)


def test_the_end_of_a_stream_is_noted_by_an_open_snapshot() -> None:
    one, other = socket.socketpair()
    pair = Pair(iter([queue.Queue(), Stream(one, other)]).__next__)
    pair.y.send(pair.to_x, b"early")
    snapshot = pair.x.begin()
    one.close()

    assert not pair.x.take_markers(timeout=None)

    assert snapshot.state().channels[1].waits == "the stream has ended"
    assert snapshot.state().in_flight["Y->X"] == ()
    assert pair.x.receive(pair.to_x) == b"early"
    assert snapshot.state().in_flight["Y->X"] == (b"early",)
    other.close()


def test_waiting_for_a_marker_has_a_timeout() -> None:
    pair = Pair()
    pair.x.begin()

    assert not pair.x.take_markers(timeout=0.01)


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
        # The state of X was recorded while the message that was cancelled counted as sent.
        with pytest.raises(SnapshotIncomplete):
            await asyncio.wait_for(snapshot.wait_async(), 10)

    asyncio.run(run())


def test_a_marker_waits_for_room_before_the_next_message_of_a_task() -> None:
    async def run() -> None:
        pair = Pair(lambda: asyncio.Queue(1))
        await pair.x.send_async(pair.to_y, 1)
        snapshot = pair.x.begin()
        sending = asyncio.create_task(pair.x.send_async(pair.to_y, 2))
        await asyncio.sleep(0)

        assert [await pair.y.receive_async(pair.to_y) for _ in range(2)] == [1, 2]
        await sending
        assert await pair.x.take_markers_async()
        assert snapshot.state().in_flight == {"X->Y": (), "Y->X": ()}

    asyncio.run(run())


def test_a_coroutine_that_ends_leaves_a_snapshot_incomplete() -> None:
    async def run() -> None:
        async def receive() -> Any:
            raise EOFError("closed")

        pair = Pair(lambda: AsyncFunctions(lambda _: None, receive))
        snapshot = pair.x.begin()

        assert not await pair.x.take_markers_async()
        assert not pair.x.take_markers()
        assert snapshot.state().channels[1].waits == "closed"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(snapshot.wait_async(), 0.01)

    asyncio.run(run())


def test_a_task_waits_for_a_snapshot_of_threads() -> None:
    async def run() -> None:
        pair = Pair()
        snapshot = pair.x.begin()
        thread = threading.Thread(target=lambda: [pair.y.take_markers(), pair.x.take_markers()])
        thread.start()
        assert (await asyncio.wait_for(snapshot.wait_async(), 60)).is_complete
        thread.join()

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


def test_a_snapshot_that_knows_of_a_message_that_was_withdrawn_is_not_complete() -> None:
    async def scene() -> GlobalSnapshot:
        system = AgentSystem()
        one, other = system.agent("X", lambda: 0), system.agent("Y", lambda: 0)
        there, back = system.channel(one, other, asyncio.Queue(1)), system.channel(other, one, asyncio.Queue())
        await one.send_async(there, "fills the queue")
        sending = asyncio.create_task(one.send_async(there, "is withdrawn"))
        await asyncio.sleep(0)
        snapshot = one.begin()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert await other.receive_async(there) == "fills the queue"
        await other.take_markers_async()
        await one.take_markers_async()
        with pytest.raises(SnapshotIncomplete, match="X->Y: a message that counted as sent"):
            await snapshot.wait_async()
        assert back.name == "Y->X"
        return snapshot

    assert not asyncio.run(scene()).is_complete


def test_a_marker_that_waited_for_room_is_taken_by_an_agent_that_looks_for_markers() -> None:
    async def scene() -> bool:
        system = AgentSystem()
        one, other = system.agent("X", lambda: 0), system.agent("Y", lambda: 0)
        there = system.channel(one, other, asyncio.Queue(1))
        system.channel(other, one, asyncio.Queue(1))
        await one.send_async(there, 1)
        snapshot = one.begin()
        assert await other.receive_async(there) == 1
        await other.take_markers_async()
        await one.take_markers_async()
        return bool(snapshot.is_complete)

    assert asyncio.run(scene())
