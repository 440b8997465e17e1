"""Transports of messages and markers: queues, functions of the program, or a class derived here."""

from __future__ import annotations

import queue
import sys

from replaydbg.distributed.agents.marker import from_bytes, to_bytes
from replaydbg.errors import BadDeclaration, ChannelMisuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable
    from typing import Any


# Python 3.13 can shut a queue down.
_SHUT_DOWN: type[Exception] = getattr(queue, "ShutDown", queue.Empty)
_ENDED = "the queue was shut down"


class Transport:
    """Carries the items of one channel: first in, first out, each of them once.

    A class of your own overrides `send` and `receive`, and whatever else it can do better.
    """

    is_async = False
    """Whether an item is received by `receive_async`, in an event loop."""
    can_poll = True
    """Whether `receive` works with a timeout of 0."""

    def ends(self) -> tuple[object, object]:
        """Return the objects that are sent to and received from; no two channels may have one in common."""
        return self, self

    def send(self, item: Any) -> None:
        """Send an item; wait if there is no room."""
        raise NotImplementedError

    def try_send(self, item: Any) -> bool:
        """Send an item if there is room for it; return whether it was sent. Without an override, it may wait."""
        self.send(item)
        return True

    def receive(self, timeout: float | None) -> Any:
        """Return the next item; wait at most `timeout` seconds, None: without a limit.

        Raises TimeoutError, and EOFError if nothing can follow.
        """
        raise NotImplementedError

    def marker_taken(self) -> None:
        """Note that the item that was received is a marker: the program never sees it."""


class AsyncTransport(Transport):
    """A transport whose items are received in an event loop; `send` of a marker must not wait."""

    is_async = True

    async def send_async(self, item: Any) -> None:
        """Send an item; wait if there is no room."""
        self.send(item)

    async def receive_async(self) -> Any:
        """Return the next item. Raises EOFError if nothing can follow."""
        raise NotImplementedError


class _Queue(Transport):
    """A `queue.Queue` or `queue.SimpleQueue`. A marker in it takes one place of a bounded queue."""

    def __init__(self, carrier: queue.Queue[Any] | queue.SimpleQueue[Any]) -> None:
        self._queue = carrier

    def ends(self) -> tuple[object, object]:
        return self._queue, self._queue

    def send(self, item: Any) -> None:
        self._queue.put(item)

    def try_send(self, item: Any) -> bool:
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            return False
        return True

    def receive(self, timeout: float | None) -> Any:
        try:
            return self._queue.get(timeout != 0, timeout)
        except queue.Empty:
            raise TimeoutError from None
        except _SHUT_DOWN:
            raise EOFError(_ENDED) from None

    def marker_taken(self) -> None:
        # The program calls task_done() for its own messages, and join() must not wait for markers.
        if isinstance(self._queue, queue.Queue):
            self._queue.task_done()


class _AsyncQueue(AsyncTransport):
    """An `asyncio.Queue`."""

    def __init__(self, carrier: asyncio.Queue[Any]) -> None:
        self._queue = carrier
        loops = sys.modules["asyncio"]
        self._shut_down: type[Exception] = getattr(loops, "QueueShutDown", loops.QueueEmpty)

    def ends(self) -> tuple[object, object]:
        return self._queue, self._queue

    async def send_async(self, item: Any) -> None:
        await self._queue.put(item)

    def try_send(self, item: Any) -> bool:
        if self._queue.full():
            return False
        self._queue.put_nowait(item)
        return True

    async def receive_async(self) -> Any:
        try:
            return await self._queue.get()
        except self._shut_down:
            raise EOFError(_ENDED) from None

    def receive(self, timeout: float | None) -> Any:
        """Take an item that is there."""
        if self._queue.empty():
            raise TimeoutError
        return self._queue.get_nowait()

    def marker_taken(self) -> None:
        self._queue.task_done()


class Functions(Transport):
    """A channel of your own: a function that sends an item, and one that waits for the next item and returns it.

    `can_receive` returns whether an item can be received without waiting; without it, there are no timeouts. With
    `carries_bytes`, messages are bytes, and so are markers: each item gets one byte in front.
    """

    def __init__(
        self,
        send: Callable[[Any], object],
        receive: Callable[[], Any],
        *,
        can_receive: Callable[[], bool] | None = None,
        carries_bytes: bool = False,
    ) -> None:
        self._send, self._receive, self._can_receive = send, receive, can_receive
        self._carries_bytes = carries_bytes
        self.can_poll = can_receive is not None

    def ends(self) -> tuple[object, object]:
        """Return both functions."""
        return self._send, self._receive

    def send(self, item: Any) -> None:
        """Call the function that sends."""
        self._send(to_bytes(item, None) if self._carries_bytes else item)

    def receive(self, timeout: float | None) -> Any:
        """Call the function that receives."""
        if timeout is not None:
            if self._can_receive is None or timeout > 0:
                raise ChannelMisuse("functions of your own have no timeout; with can_receive=, a timeout of 0 works")
            if not self._can_receive():
                raise TimeoutError
        item = self._receive()
        return from_bytes(item, None) if self._carries_bytes else item


class AsyncFunctions(AsyncTransport):
    """A channel of your own in an event loop: a function that sends without waiting, and a coroutine that receives.

    Such as a function that calls `StreamWriter.write`. `carries_bytes` is as for `Functions`.
    """

    can_poll = False

    def __init__(
        self, send: Callable[[Any], object], receive: Callable[[], Awaitable[Any]], *, carries_bytes: bool = False
    ) -> None:
        self._send, self._receive, self._carries_bytes = send, receive, carries_bytes

    def send(self, item: Any) -> None:
        """Call the function that sends."""
        self._send(to_bytes(item, None) if self._carries_bytes else item)

    async def receive_async(self) -> Any:
        """Call the function that receives."""
        item = await self._receive()
        return from_bytes(item, None) if self._carries_bytes else item


def transport_of(carrier: object, channel: str) -> Transport:
    """Return the transport over what the program gave for a channel. Raises BadDeclaration."""
    if isinstance(carrier, Transport):
        return carrier
    if isinstance(carrier, queue.SimpleQueue):
        return _Queue(carrier)
    if isinstance(carrier, queue.Queue):
        _check_order(carrier, queue.Queue, channel)
        return _Queue(carrier)
    # Not imported here: if the program has not, this is no queue of it.
    loops = sys.modules.get("asyncio")
    if loops is not None and isinstance(carrier, loops.Queue):
        _check_order(carrier, loops.Queue, channel)
        return _AsyncQueue(carrier)
    raise BadDeclaration(
        f"channel {channel!r} cannot go over {type(carrier).__name__}: give a queue.Queue, queue.SimpleQueue, "
        "asyncio.Queue, or a Stream, Functions, AsyncFunctions or Transport of replaydbg.distributed"
    )


def _check_order(carrier: Any, plain: Any, channel: str) -> None:
    """Raise BadDeclaration for a queue that is not first in, first out, such as a PriorityQueue or a LifoQueue."""
    kind = type(carrier)
    if kind._put is not plain._put or kind._get is not plain._get:
        raise BadDeclaration(
            f"channel {channel!r} cannot go over {kind.__name__}: a marker separates the messages before it from those "
            "behind it, so a channel must be first in, first out"
        )
