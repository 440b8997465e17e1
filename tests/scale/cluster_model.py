"""A model of tasks on many workers: what they wait for, and which part is busy all the time first.

It has one scheduler, which spends a fixed time on each task, one after the other; one link from the store, which all
workers share; and workers with a cache each, which take tasks of a recording that they have before others. A worker can
be lost in the middle of a task, which is begun anew.
"""

from __future__ import annotations

import heapq
import random
from collections import OrderedDict, deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be done, and with what."""

    recordings: int
    tasks_each: int
    """Tasks of each recording, such as commits."""
    workers: int
    task_seconds: float
    """The mean time that a task computes; it is distributed exponentially."""
    recording_bytes: float
    """What a worker fetches of a recording that it does not have."""
    scheduler_seconds: float
    """The time that the scheduler spends on a task."""
    link_bytes: float
    """Bytes a second of all workers together."""
    worker_link_bytes: float
    """Bytes a second of one worker."""
    cache_recordings: int
    """How many recordings a worker keeps."""
    lost_every: float = 0.0
    """Seconds after which a worker is lost, on average over all workers; 0: none is."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    seconds: float
    """Until the last task is done."""
    efficiency: float
    """The time that tasks computed once, of the time that all workers had."""
    scheduler: float
    """The share of the time in which the scheduler was busy."""
    link: float
    """The share of the time in which the link was."""
    fetched: int
    """Recordings that were fetched, one for each time."""
    repeated: int
    """Tasks that were begun anew."""

    @property
    def limit(self) -> str:
        """What is busy most."""
        shares = {"workers": self.efficiency, "scheduler": self.scheduler, "link": self.link}
        return max(shares, key=lambda each: shares[each])


def simulate(load: Load, seed: int = 0) -> Outcome:
    """Return what comes of a load."""
    return _Simulation(load, random.Random(seed)).run()


class _Simulation:
    def __init__(self, load: Load, chance: random.Random) -> None:
        self._load, self._chance = load, chance
        self._left = deque((recording, load.tasks_each) for recording in range(load.recordings))
        self._mine: list[list[int]] = [[-1, 0] for _ in range(load.workers)]
        """Of each worker the recording that it is at, and how many tasks of it are left."""
        self._caches: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(load.workers)]
        self._scheduler_free = self._link_free = 0.0
        self._scheduler_busy = self._link_busy = self._computed = 0.0
        self._fetched = self._repeated = 0
        self._rate = 1 / (load.lost_every * load.workers) if load.lost_every else 0.0
        """How often a worker is lost, each second."""

    def run(self) -> Outcome:
        # What happens next: a worker is free, or it was lost at a task, which begins anew. In the order of time,
        # because scheduler and link serve who comes first.
        events: list[tuple[float, int, int, float]] = [(0.0, worker, -1, 0.0) for worker in range(self._load.workers)]
        heapq.heapify(events)
        end, left = 0.0, self._load.recordings * self._load.tasks_each
        while events:
            now, worker, recording, seconds = heapq.heappop(events)
            end = max(end, now)
            if recording < 0:
                if not left:
                    continue
                left -= 1
                recording = self._next(worker)
                seconds = self._chance.expovariate(1 / self._load.task_seconds) if self._load.task_seconds else 0.0
            start = self._fetch(worker, recording, self._schedule(now))
            lost = self._chance.expovariate(self._rate) if self._rate else seconds
            if lost < seconds:
                self._repeated += 1
                self._caches[worker].clear()  # another one takes its place
                heapq.heappush(events, (start + lost, worker, recording, seconds))
            else:
                self._computed += seconds
                heapq.heappush(events, (start + seconds, worker, -1, 0.0))
        return Outcome(
            end,
            self._computed / (end * self._load.workers) if end else 1.0,
            self._scheduler_busy / end if end else 0.0,
            self._link_busy / end if end else 0.0,
            self._fetched,
            self._repeated,
        )

    def _next(self, worker: int) -> int:
        """Return the recording of the worker's next task: its own, a new one, or one that another has much of."""
        mine = self._mine[worker]
        if not mine[1]:
            if self._left:
                mine[0], mine[1] = self._left.popleft()
            else:
                other = max(self._mine, key=lambda each: each[1])
                given = (other[1] + 1) // 2
                mine[0], mine[1] = other[0], given
                other[1] -= given
        mine[1] -= 1
        return mine[0]

    def _schedule(self, now: float) -> float:
        cost = self._load.scheduler_seconds
        self._scheduler_free = max(now, self._scheduler_free) + cost
        self._scheduler_busy += cost
        return self._scheduler_free

    def _fetch(self, worker: int, recording: int, now: float) -> float:
        cache = self._caches[worker]
        if recording in cache:
            cache.move_to_end(recording)
            return now
        cache[recording] = None
        if len(cache) > self._load.cache_recordings:
            cache.popitem(last=False)
        self._fetched += 1
        cost = self._load.recording_bytes / self._load.link_bytes
        self._link_free = max(now, self._link_free) + cost
        self._link_busy += cost
        return max(self._link_free, now + self._load.recording_bytes / self._load.worker_link_bytes)
