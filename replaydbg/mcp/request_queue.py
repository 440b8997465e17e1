"""Questions in the order in which they came, and those of them that were cancelled."""

from __future__ import annotations

import threading
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.mcp.messages import AgentRequest, RequestId


class QuestionQueue:
    """Questions that wait, in order. One thread puts them in, another takes them out."""

    def __init__(self) -> None:
        self._waiting: deque[AgentRequest] = deque()
        self._changed = threading.Condition()
        self._running: AgentRequest | None = None
        self._is_over = False

    def put(self, request: AgentRequest) -> bool:
        """Add a question; return whether none with its id is being answered."""
        with self._changed:
            if any(each.id == request.id for each in self._open()):
                return False
            self._waiting.append(request)
            self._changed.notify()
            return True

    def take(self) -> AgentRequest | None:
        """Wait for the next question, which runs from now on; None: no more will come."""
        with self._changed:
            self._running = None
            while not self._waiting and not self._is_over:
                self._changed.wait()
            self._running = self._waiting.popleft() if self._waiting and not self._is_over else None
            return self._running

    @property
    def running(self) -> AgentRequest | None:
        """The question that is being answered."""
        with self._changed:
            return self._running

    def cancel(self, number: RequestId) -> None:
        """Cancel the question with an id, if there is one."""
        with self._changed:
            for each in self._open():
                if each.id == number and type(each.id) is type(number):
                    each.is_cancelled = True

    def end(self) -> None:
        """Cancel all questions: nobody waits for them any longer."""
        with self._changed:
            self._is_over = True
            for each in self._open():
                each.is_cancelled = True
            self._changed.notify()

    def _open(self) -> list[AgentRequest]:
        return [*([self._running] if self._running is not None else []), *self._waiting]
