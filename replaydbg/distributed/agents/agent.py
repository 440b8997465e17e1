"""An agent: a thread, a task or an object with a state of its own that sends and receives over channels.

The rules are those of K. M. Chandy and L. Lamport, Distributed Snapshots (ACM TOCS 3, 1985). The agent that begins
records its state, and sends a marker on each outgoing channel before any other message. An agent that receives the
first marker of a snapshot does the same; the channel of that marker is empty. A later marker ends the recording of its
channel: the channel's state is what was received on it since the agent recorded its own.
"""

from __future__ import annotations

from replaydbg.distributed.agents.atomic import Atomic
from replaydbg.distributed.agents.channel import Countdown
from replaydbg.distributed.agents.copies import copied_state
from replaydbg.distributed.agents.global_snapshot import GlobalSnapshot
from replaydbg.distributed.agents.marker import Marker
from replaydbg.errors import ChannelMisuse, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from replaydbg.distributed.agents.channel import Channel
    from replaydbg.distributed.agents.snapshot_collector import Collectors, SnapshotCollector

_MOST_AHEAD = 1000
"""Items that one call reads ahead of each channel: a sender that is faster would keep it there."""


class Agent:
    """One agent of a system; `AgentSystem.agent` makes it. Several threads may use it."""

    def __init__(self, name: str, state: Callable[[], Any], collectors: Collectors) -> None:
        self.name = name
        """Its name."""
        self.incoming: list[Channel] = []
        self.outgoing: list[Channel] = []
        self._state, self._collectors = state, collectors
        # It guards what counts: the state, what was sent and what was received. No transport is waited for with it.
        self._lock = Atomic()
        self._open: list[SnapshotCollector] = []

    def __repr__(self) -> str:
        return f"<Agent {self.name}>"

    def begin(self) -> GlobalSnapshot:
        """Begin a global snapshot: record the state of this agent, and send a marker on each outgoing channel.

        It does not wait. While the program goes on, the other agents record their states when they receive a marker.
        Any thread may call it, and several snapshots may go on at the same time.
        """
        snapshot = GlobalSnapshot(self._collectors.begin(self.name))
        self.join(snapshot)
        return snapshot

    def join(self, snapshot: GlobalSnapshot) -> None:
        """Record the state of this agent for a snapshot that another agent has begun; do nothing if it is recorded.

        This is needed for an agent to which no channels lead from the one that began. Raises UsageError for a snapshot
        of another system.
        """
        collector = snapshot.collector
        with self._lock:
            if not collector.has_state(self.name):
                if self._collectors.find(collector.marker) is not collector:
                    raise UsageError(f"Snapshot {snapshot.name} is of another AgentSystem than agent {self.name!r}.")
                self._record(collector)
        self._flush()

    def atomic(self) -> AbstractContextManager[Any]:
        """Return a context in which no other thread records the state of this agent.

        For agents of several threads: a change of the state and the send that belongs to it have to be in one context.
        A message that is sent in it is passed on when the context ends, which raises what sending raises. Do not wait
        for a message in it, and do not `await`.
        """
        return self._lock

    def send(self, channel: Channel, message: Any) -> None:
        """Send a message; wait if there is no room. Raises ChannelMisuse, and what the transport raises."""
        self._check_sender(channel)
        if channel.transport.is_async:
            raise ChannelMisuse(f"channel {channel.name!r} is asynchronous: use `await agent.send_async(...)`")
        self._lock.send(channel, message)

    async def send_async(self, channel: Channel, message: Any) -> None:
        """Send a message over an asynchronous channel; wait if there is no room. Raises as `send` does."""
        self._check_sender(channel)
        _ = channel.turns
        with self._lock:
            entry = channel.outbox.add(message)
        await channel.pass_on_async(entry)

    def receive(
        self, channel: Channel, *, timeout: float | None = None, apply: Callable[[Any], Any] | None = None
    ) -> Any:
        """Return the next message; markers before it are handled and never returned.

        It waits at most `timeout` seconds; None: no limit. `apply` is called with the message before any other thread
        can record the state of this agent, and its result is returned: an agent of several threads changes its state
        in it. Raises TimeoutError, EOFError if the channel has ended, ChannelMisuse, and what the transport raises.
        """
        self._check_receiver(channel)
        if channel.transport.is_async:
            raise ChannelMisuse(f"channel {channel.name!r} is asynchronous: use `await agent.receive_async(...)`")
        countdown = Countdown(timeout)
        with channel.reading(countdown.left()):
            while not channel.inbox:
                self._look_ahead(channel, countdown.left())
            return self._message(channel, apply)

    async def receive_async(self, channel: Channel) -> Any:
        """Return the next message of an asynchronous channel. Raises EOFError, ChannelMisuse, and what it raises."""
        self._check_receiver(channel)
        async with channel.turns.reading:
            while not channel.inbox:
                await self._look_ahead_async(channel)
            return self._message(channel, None)

    def take_markers(self, timeout: float | None = 0) -> bool:
        """Handle the markers that have arrived; return whether no snapshot waits for a marker to this agent.

        With a `timeout` in seconds (None: no limit), it waits for those that are missing. Messages before a marker stay
        in the channel, for `receive`. An agent that receives no more calls this, so that snapshots can be complete.
        """
        countdown = Countdown(timeout)
        for channel in self.incoming:
            if channel.transport.can_poll:
                self._read_what_is_there(channel)
        if timeout != 0:
            for channel in self.incoming:
                self._wait_for_markers(channel, countdown)
        return not any(map(self._is_waited_for, self.incoming))

    async def take_markers_async(self) -> bool:
        """Do the same in a task, for asynchronous channels; wait for the markers that are missing.

        Limit it by `asyncio.timeout`.
        """
        for channel in self.incoming:
            # Another task that reads handles the markers itself.
            if channel.transport.can_poll and not (channel.transport.is_async and channel.turns.reading.locked()):
                self._read_what_is_there(channel)
        for channel in self.incoming:
            try:
                while self._is_waited_for(channel) and not channel.end:
                    async with channel.turns.reading:
                        # Another task may have received it meanwhile.
                        if self._is_waited_for(channel):
                            await self._look_ahead_async(channel)
            except EOFError:
                continue
        return not any(map(self._is_waited_for, self.incoming))

    # ---- the algorithm ----

    def _record(self, collector: SnapshotCollector) -> None:
        """Record the state, and send the markers: what is sent later is behind them. The lock is held."""
        collector.record_state(self.name, copied_state(self._state))
        if self.incoming:
            self._open.append(collector)
        for channel in self.incoming:
            if channel.end:
                collector.note_loss(channel.name, channel.end)
        for channel in self.outgoing:
            channel.outbox.add(collector.marker)

    def _arrived(self, channel: Channel, item: Any) -> None:
        """Handle a marker, or keep a message for the receiver."""
        if not isinstance(item, Marker):
            channel.inbox.append(item)
            return
        channel.transport.marker_taken()
        collector = self._collectors.find(item)
        if collector is None:
            raise ChannelMisuse(
                f"channel {channel.name!r} has the marker of a snapshot {item.snapshot} of other agents"
            )
        with self._lock:
            if not collector.has_state(self.name):
                self._record(collector)
            # What was read before the marker and not received was sent before it.
            collector.record_messages(channel.name, channel.inbox)
            collector.end_recording(channel.name)
            self._open = [each for each in self._open if any(each.is_waiting(one.name) for one in self.incoming)]
        self._flush()

    def _message(self, channel: Channel, apply: Callable[[Any], Any] | None) -> Any:
        """Receive the message that is next."""
        with self._lock:
            message = channel.inbox.popleft()
            for collector in self._open:
                if collector.is_waiting(channel.name):
                    collector.record_messages(channel.name, [message])
            return message if apply is None else apply(message)

    # ---- around it ----

    def _look_ahead(self, channel: Channel, left: float | None) -> None:
        try:
            item = channel.read(left)
        except EOFError as error:
            self._note_end(channel, error)
            raise
        self._arrived(channel, item)

    async def _look_ahead_async(self, channel: Channel) -> None:
        try:
            item = await channel.read_async()
        except EOFError as error:
            self._note_end(channel, error)
            raise
        self._arrived(channel, item)

    def _read_what_is_there(self, channel: Channel) -> None:
        try:
            # Another thread that reads handles the markers itself.
            with channel.reading(0):
                for _ in range(_MOST_AHEAD):
                    self._look_ahead(channel, 0)
        except (TimeoutError, EOFError):
            return

    def _wait_for_markers(self, channel: Channel, countdown: Countdown) -> None:
        try:
            while self._is_waited_for(channel) and not channel.end:
                if channel.transport.is_async:
                    raise ChannelMisuse(f"channel {channel.name!r} is asynchronous: use `await take_markers_async()`")
                with channel.reading(countdown.left()):
                    # Another thread may have received it meanwhile.
                    if self._is_waited_for(channel):
                        self._look_ahead(channel, countdown.left())
        except (TimeoutError, EOFError):
            return

    def _note_end(self, channel: Channel, error: EOFError) -> None:
        with self._lock:
            channel.end = str(error) or "the channel has ended"
            for collector in self._open:
                collector.note_loss(channel.name, channel.end)

    def _flush(self) -> None:
        for channel in self.outgoing:
            channel.outbox.flush()

    def _is_waited_for(self, channel: Channel) -> bool:
        return any(collector.is_waiting(channel.name) for collector in self._open)

    def _check_sender(self, channel: Channel) -> None:
        if channel not in self.outgoing:
            raise ChannelMisuse(f"agent {self.name!r} cannot send over channel {channel.name!r}{_sides(channel)}")

    def _check_receiver(self, channel: Channel) -> None:
        if channel not in self.incoming:
            raise ChannelMisuse(f"agent {self.name!r} cannot receive from channel {channel.name!r}{_sides(channel)}")


def _sides(channel: Channel) -> str:
    return f": {channel.sender!r} sends and {channel.receiver!r} receives"
