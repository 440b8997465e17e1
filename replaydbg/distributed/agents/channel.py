"""A declared channel: its transport, what was sent and is not in it yet, and what was read ahead of the receiver."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager

from replaydbg.distributed.agents.outbox import Outbox
from replaydbg.errors import ChannelMisuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from typing import Any

    from replaydbg.distributed.agents.marker import Marker
    from replaydbg.distributed.agents.outbox import Entry
    from replaydbg.distributed.agents.snapshot_collector import Route
    from replaydbg.distributed.agents.transports import AsyncTransport, Transport


class Countdown:
    """The rest of a timeout in seconds. It reads no clock for a timeout of None (no limit) or 0."""

    def __init__(self, timeout: float | None) -> None:
        self._end = timeout if not timeout else time.monotonic() + timeout

    def left(self) -> float | None:
        """Return how many seconds are left: None without a limit."""
        return self._end if not self._end else max(0.0, self._end - time.monotonic())


class Channel:
    """A channel from one agent to another. Agents send and receive; this only names it."""

    def __init__(self, route: Route, transport: Transport, note_loss: Callable[[str, Marker, str], None]) -> None:
        self.route, self.transport = route, transport
        self.outbox = Outbox(transport, lambda marker, reason: note_loss(route.name, marker, reason))
        self.inbox: deque[Any] = deque()
        """Messages that were read while a marker was looked for: still in the channel for the algorithm."""
        self.end = ""
        """Why nothing can follow; empty if it can."""
        # Held from the transport to the agent's account: the items of a channel are accounted for in their order.
        self._reading = threading.Lock()
        self._async: _AsyncTurns | None = _AsyncTurns() if transport.is_async else None

    def __repr__(self) -> str:
        return f"<Channel {self.name}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self.route.name

    @property
    def sender(self) -> str:
        """The name of the agent that sends."""
        return self.route.sender

    @property
    def receiver(self) -> str:
        """The name of the agent that receives."""
        return self.route.receiver

    @contextmanager
    def reading(self, left: float | None) -> Iterator[None]:
        """Let only one thread read. Raises TimeoutError if another one reads for longer than `left` seconds."""
        if not self._reading.acquire(timeout=-1 if left is None else left):
            raise self._timeout()
        try:
            yield
        finally:
            self._reading.release()

    def read(self, left: float | None) -> Any:
        """Return the next item of the transport. Raises TimeoutError, and EOFError if nothing can follow."""
        try:
            item = self.transport.receive(left)
        except TimeoutError as error:
            # One of the system has its own message.
            raise error if error.args else self._timeout() from None
        # There is room again for a marker of the sender.
        self.outbox.flush()
        return item

    def _timeout(self) -> TimeoutError:
        return TimeoutError(f"no message has arrived on channel {self.name!r} in time")

    @property
    def turns(self) -> _AsyncTurns:
        """The lock that orders the tasks that use it. Raises ChannelMisuse if it is not asynchronous."""
        if self._async is None:
            raise ChannelMisuse(f"channel {self.name!r} is not asynchronous: use send and receive")
        return self._async

    @property
    def async_transport(self) -> AsyncTransport:
        """The transport of an asynchronous channel."""
        return self.transport  # type: ignore[return-value]

    async def read_async(self) -> Any:
        """Return the next item of the transport. Raises EOFError if nothing can follow."""
        item = await self.async_transport.receive_async()
        self.outbox.flush()
        return item

    async def pass_on_async(self, entry: Entry) -> None:
        """Send a message when it is its turn."""
        try:
            async with self.turns.sending:
                await self.outbox.pass_on_async(entry, self.async_transport)
        finally:
            self.outbox.drop(entry)
            self.outbox.flush()


class _AsyncTurns:
    """Locks of tasks: one task reads, one sends."""

    def __init__(self) -> None:
        # Not at the top: programs without asyncio would pay 40 ms for it.
        import asyncio

        self.reading: asyncio.Lock = asyncio.Lock()
        self.sending: asyncio.Lock = asyncio.Lock()
