"""The queue of background tasks: each is advanced while no request waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

from textual.message import Message

from replaydbg.errors import Cancelled, ReplaydbgError

MOST_TRIES = 20
"""Number of restarts of a background task that was cancelled for a request of the user."""

Steps = Generator[Message | None]


@dataclass(slots=True)
class _BackgroundTask:
    begin: Callable[[], Steps]
    steps: Steps
    tries: int
    """Number of restarts."""


class BackgroundQueue:
    """Generators that yield None after a little work, or a result."""

    def __init__(self) -> None:
        self._tasks: deque[_BackgroundTask] = deque()

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def add(self, begin: Callable[[], Steps], *, tries: int = 0) -> None:
        """Add a task, which `begin` starts, and starts again."""
        self._tasks.append(_BackgroundTask(begin, begin(), tries))

    def has(self, begin: Callable[[], Steps]) -> bool:
        """Whether there is such a task already."""
        return any(each.begin == begin for each in self._tasks)

    def clear(self) -> None:
        """Give up all tasks."""
        self._tasks.clear()

    def run_step(self) -> Message | None:
        """Run a small part of the first task; return its result. A cancelled task is restarted later."""
        task = self._tasks[0]
        try:
            return next(task.steps)
        except StopIteration:
            self._tasks.popleft()
        except Cancelled:
            self._tasks.popleft()
            if task.tries < MOST_TRIES:
                self.add(task.begin, tries=task.tries + 1)
        except (ReplaydbgError, OSError):
            self._tasks.popleft()  # unreadable data is reported to direct queries only
        return None
