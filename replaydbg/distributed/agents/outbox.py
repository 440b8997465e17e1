"""The items that an agent has sent over one channel and that are not in the transport yet, in order.

An item counts as sent when it is added here, which the agent's lock guards. So a marker is behind every message that
the recorded state knows of, and before all others, although no lock is held while a transport waits for room: a lock
would stop the agent's other threads, and thereby those that would make room.
"""

from __future__ import annotations

import threading
from collections import deque

from replaydbg.classes import dataclass
from replaydbg.distributed.agents.marker import Marker
from replaydbg.distributed.agents.snapshot_collector import WITHDRAWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from replaydbg.distributed.agents.transports import AsyncTransport, Transport


@dataclass(slots=True, eq=False)
class Entry:
    """One item; entries are compared by identity, since messages can be equal."""

    item: Any

    @property
    def is_marker(self) -> bool:
        """Whether nobody waits for it to be sent."""
        return isinstance(self.item, Marker)


class Outbox:
    """Passes the items of one channel on in the order in which they were added.

    `note_loss` is called with a marker that could not be sent, or that is behind a message that was not sent, and the
    reason.
    """

    def __init__(self, transport: Transport, note_loss: Callable[[Marker, str], None]) -> None:
        self._transport, self._note_loss = transport, note_loss
        self._entries: deque[Entry] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._is_busy = False

    def add(self, item: Any) -> Entry:
        """Let an item count as sent. The caller holds the agent's lock."""
        entry = Entry(item)
        with self._changed:
            self._entries.append(entry)
        return entry

    def pass_on(self, entry: Entry) -> None:
        """Send a message when it is its turn, after the markers before it. What sending raises, the caller gets."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_turn_of(entry))
            self._is_busy = True
        try:
            while (first := self._entries[0]) is not entry:
                self._send_marker(first, self._transport.send)
            self._transport.send(entry.item)
        except BaseException:
            self._withdrawn(entry)
            raise
        finally:
            self._end_turn(entry)
        self.flush()

    async def pass_on_async(self, entry: Entry, transport: AsyncTransport) -> None:
        """Do the same in a task, whose turn it is: tasks wait for theirs by a lock that is fair."""
        self._is_busy = True
        try:
            while (first := self._entries[0]) is not entry:
                # A marker waits for room like the message behind it.
                await transport.send_async(first.item)
                self._entries.popleft()
            await transport.send_async(entry.item)
        except BaseException:
            self._withdrawn(entry)
            raise
        finally:
            self._end_turn(entry)
        self.flush()

    def drop(self, entry: Entry) -> None:
        """Forget a message whose task was cancelled before its turn."""
        with self._changed:
            is_waiting = entry in self._entries
        if is_waiting:
            self._withdrawn(entry)
            with self._changed:
                self._entries.remove(entry)

    def flush(self) -> None:
        """Send the markers that come next, as long as there is room for them."""
        while True:
            with self._changed:
                if self._is_busy or not self._entries or not self._entries[0].is_marker:
                    return
                self._is_busy = True
                first = self._entries[0]
            try:
                sent = self._send_marker(first, self._transport.try_send)
            finally:
                with self._changed:
                    self._is_busy = False
                    self._changed.notify_all()
            if not sent:
                return

    def _withdrawn(self, entry: Entry) -> None:
        """A message was not sent that the states know of which were recorded since: their snapshots say so."""
        with self._changed:
            entries = list(self._entries)
        for later in entries[entries.index(entry) :]:
            if later.is_marker:
                self._note_loss(later.item, WITHDRAWN)

    def _is_turn_of(self, entry: Entry) -> bool:
        return not self._is_busy and next(each for each in self._entries if not each.is_marker) is entry

    def _end_turn(self, entry: Entry) -> None:
        with self._changed:
            self._entries.remove(entry)
            self._is_busy = False
            self._changed.notify_all()

    def _send_marker(self, first: Entry, send: Callable[[Any], bool | None]) -> bool:
        """Send a marker; return whether it has left the outbox. Nothing is raised: the program did not ask for it."""
        try:
            if send(first.item) is False:
                return False
        except Exception as error:  # noqa: BLE001 - whatever the program's transport raises
            self._note_loss(first.item, f"its marker could not be sent: {type(error).__name__}: {error}")
        with self._changed:
            self._entries.popleft()
        return True
