"""The requests of an editor in the order in which they came, and those of them that were cancelled."""

from __future__ import annotations

import threading
from collections import deque

from replaydbg.classes import dataclass
from replaydbg.dap.wire.framing import DamagedMessage
from replaydbg.dap.wire.request_arguments import RequestArguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@dataclass(slots=True, eq=False)
class EditorRequest:
    """A request."""

    seq: int
    """Its number, by which it is answered."""
    command: str
    arguments: RequestArguments
    is_cancelled: bool = False
    """Whether it shall end as soon as possible, or not begin."""
    is_answered: bool = False
    """Whether its response was sent."""

    @property
    def progress_id(self) -> str:
        """The name of its progress."""
        return f"request-{self.seq}"


class RequestQueue:
    """Requests that wait, in order. One thread puts them in, another takes them out."""

    def __init__(self) -> None:
        self._waiting: deque[EditorRequest | DamagedMessage | None] = deque()
        self._changed = threading.Condition()
        self._running: EditorRequest | None = None
        self._has_stopped = False

    def put(self, request: EditorRequest | DamagedMessage | None) -> None:
        """Add a request, or what is no message; None: no more will come."""
        with self._changed:
            self._waiting.append(request)
            self._changed.notify()

    def take(self) -> EditorRequest | DamagedMessage | None:
        """Wait for the next one, which runs from now on."""
        with self._changed:
            self._running, self._has_stopped = None, False
            while not self._waiting:
                self._changed.wait()
            found = self._waiting.popleft()
            self._running = found if isinstance(found, EditorRequest) else None
            return found

    @property
    def running(self) -> EditorRequest | None:
        """The request that runs."""
        with self._changed:
            return self._running

    def settle(self) -> None:
        """Take note that the running request is about to report its stop: what comes then is not meant for it."""
        with self._changed:
            self._has_stopped = True

    def has(self, wanted: Callable[[EditorRequest], bool]) -> bool:
        """Whether a request that runs or waits is wanted."""
        with self._changed:
            running = None if self._has_stopped else self._running
            return any(isinstance(each, EditorRequest) and wanted(each) for each in (running, *self._waiting))

    def cancel(self, wanted: Callable[[EditorRequest], bool]) -> None:
        """Cancel each request, running or waiting, that is wanted."""
        with self._changed:
            for each in (self._running, *self._waiting):
                if isinstance(each, EditorRequest) and wanted(each):
                    each.is_cancelled = True


def request_in(message: dict[str, Any]) -> EditorRequest | str:
    """Return the request that a message is, or what is wrong with it; an empty text: it is to be ignored."""
    seq, command = message.get("seq"), message.get("command")
    if message.get("type") in ("response", "event"):
        return ""  # this server asks its client for nothing
    if message.get("type") != "request":
        return f"A message needs the type 'request' (got {message.get('type')!r:.80})."
    if not isinstance(seq, int) or isinstance(seq, bool):
        return f"A request needs a number 'seq' (got {seq!r:.80})."
    if not isinstance(command, str):
        return f"A request needs a string 'command' (got {command!r:.80})."
    arguments = message.get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        return f"The arguments of a request must be an object (got {arguments!r:.80})."
    return EditorRequest(seq, command, RequestArguments(arguments or {}, command))
