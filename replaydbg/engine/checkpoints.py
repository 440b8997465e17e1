"""The checkpoints along a run, and which of them to keep."""

from __future__ import annotations

import threading
from collections import deque

from sortedcontainers import SortedDict

from replaydbg.engine.engine_process import EngineProcess

NEAR = 24
"""The number of checkpoints close before the cursor that are kept in addition to the evenly spaced ones."""


class Checkpoints:
    """Checkpoints by their count of lines. The first one is never dropped.

    The first pass may add some in a thread of its own while others are used. Who uses one holds the lock until it has
    been cloned: it may be dropped at any time.
    """

    def __init__(self, most: int) -> None:
        """Keep at most `most` evenly spaced checkpoints."""
        self.most = most
        self.lock = threading.RLock()
        self._at: SortedDict[int, EngineProcess] = SortedDict()
        self._near: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._at)

    def add(self, checkpoint: EngineProcess) -> bool:
        """Keep `checkpoint`; return whether there are too many now."""
        with self.lock:
            self._replace(checkpoint)
            return len(self._at) - len(self._near) > self.most

    def thin(self) -> list[int]:
        """Drop every other one; return their process ids."""
        with self.lock:
            counts = [count for count in self._at if count not in self._near]
            # The first stays, and the last: it is where most sessions begin.
            dropped = [self._at.pop(count) for count in counts[1:-1:2]]
            for each in dropped:
                each.close()
            return [each.pid for each in dropped]

    def add_near(self, checkpoint: EngineProcess) -> None:
        """Keep `checkpoint` for a while: it is close to a moment that was visited."""
        with self.lock:
            if checkpoint.count in self._at:
                checkpoint.close()
                return
            self._replace(checkpoint)
            self._near.append(checkpoint.count)
            if len(self._near) > NEAR:
                self._drop_oldest_near()

    def thin_near(self) -> None:
        """Drop half of those that are close to moments that were visited."""
        with self.lock:
            for _ in range(len(self._near) // 2):
                self._drop_oldest_near()

    def before(self, count: int) -> EngineProcess | None:
        """Return the last checkpoint at `count` or before it; None: there is none."""
        with self.lock:
            place = self._at.bisect_right(count)
            return self._at.peekitem(place - 1)[1] if place else None

    def earlier(self, count: int) -> list[int]:
        """Return the counts of the checkpoints before `count`, the last one first."""
        with self.lock:
            return list(self._at.irange(maximum=count - 1, reverse=True))

    def counts(self) -> tuple[int, ...]:
        """Return the counts of all."""
        with self.lock:
            return tuple(self._at)

    def processes(self) -> list[int]:
        """Return the process ids of all, the first one first."""
        with self.lock:
            return [each.pid for each in self._at.values()]

    def standing(self) -> list[EngineProcess]:
        """Return all of them, the first one first."""
        with self.lock:
            return list(self._at.values())

    def drop(self, checkpoint: EngineProcess) -> None:
        """Forget one that has ended."""
        with self.lock:
            if self._at.get(checkpoint.count) is checkpoint:
                del self._at[checkpoint.count]
            checkpoint.close()

    def close(self) -> None:
        """Let all end."""
        with self.lock:
            for checkpoint in self._at.values():
                checkpoint.close()
            self._at.clear()
            self._near.clear()

    def _drop_oldest_near(self) -> None:
        oldest = self._near.popleft()
        if oldest in self._at:
            self._at.pop(oldest).close()

    def _replace(self, checkpoint: EngineProcess) -> None:
        other = self._at.pop(checkpoint.count, None)
        if other is not None:
            other.close()
        self._at[checkpoint.count] = checkpoint
