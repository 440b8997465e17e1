"""Actions that an agent does at once, so that no thread records its state in the middle of them."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from replaydbg.distributed.agents.channel import Channel
    from replaydbg.distributed.agents.outbox import Entry


class Atomic:
    """The lock of an agent, as a context. It can be entered again by the thread that is in it.

    What is sent in it counts as sent at once, and is passed on when the lock is free again: a channel without room
    would stop the agent's other threads, and so those that make room.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._sent: list[tuple[Channel, Entry]] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        sent: list[tuple[Channel, Entry]] = []
        self._depth -= 1
        if not self._depth:
            sent, self._sent = self._sent, sent
        self._lock.release()
        _pass_on(sent)

    def send(self, channel: Channel, message: object) -> None:
        """Let a message count as sent, and pass it on when the outermost context ends."""
        with self:
            self._sent.append((channel, channel.outbox.add(message)))


def _pass_on(sent: list[tuple[Channel, Entry]]) -> None:
    """Pass messages on, all of them as if each had been sent alone; then raise the first error."""
    failed: list[BaseException] = []
    for channel, entry in sent:
        try:
            channel.outbox.pass_on(entry)
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)
    if failed:
        raise failed[0]
