"""The tasks of a scheduler's pool: those that wait here, in the order of their recordings, and those on their way."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replaydbg.cluster.tasks import JsonObject, RecordingTask, TaskResult

PER_SLOT, MORE = 4, 8
"""Tasks that are with the scheduler at once: so many for each slot of its workers, and so many more.

Enough that workers never wait for the next one, and that an adaptive cluster grows. Not all of them: if a worker is
killed, dask counts that against each task that waits for it, and gives up those that were counted four times.
"""


@dataclass(slots=True, eq=False)
class RecordingGroup:
    """The tasks of one recording: the first one shows which worker has the recording, the others follow it."""

    number: int
    """In the order in which recordings were named."""
    holder: str = ""
    """The address of the worker that has it; empty: none yet."""
    leader: SentTask | None = None
    waiting: list[SentTask] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class SentTask:
    """A task on its way."""

    task: RecordingTask
    order: JsonObject
    needs: JsonObject
    group: RecordingGroup
    future: Future[TaskResult] = field(default_factory=Future)
    dask: Any = None
    """The dask future; None: it waits here."""
    only: tuple[str, ...] = ()
    """The only workers that are fit for it; empty: all are, as far as is known."""
    losses: int = 0
    asks: int = 0
    is_out: bool = False
    """Whether the scheduler has it, or it is between two of its rounds."""


class TaskQueue:
    """Decides which task is sent next. Not for use by several threads: its owner has a lock."""

    def __init__(self) -> None:
        self.slots = 0
        """Number of tasks that the workers run at once."""
        self._groups: dict[Path | None, RecordingGroup] = {}
        self._ready: list[tuple[int, int, int, SentTask]] = []
        self._count = itertools.count()
        self._out = 0

    def group_of(self, recording: Path | None) -> RecordingGroup:
        """Return the group of a recording; tasks without one have a group that no task leads."""
        return self._groups.setdefault(recording, RecordingGroup(len(self._groups)))

    def add(self, sent: SentTask) -> None:
        """Take a new task."""
        group = sent.group
        if group.leader is not None:
            group.waiting.append(sent)
            return
        if sent.task.recording is not None and not group.holder:
            group.leader = sent
        self._push(sent)

    def follow(self, group: RecordingGroup) -> None:
        """Let the tasks go that waited for the first one of their recording."""
        group.leader = None
        waiting, group.waiting = group.waiting, []
        for each in waiting:
            self._push(each)

    def remove(self, sent: SentTask) -> None:
        """Forget a task that has ended, or was given up."""
        if sent.is_out:
            sent.is_out = False
            self._out -= 1
        if sent in sent.group.waiting:
            sent.group.waiting.remove(sent)
        if sent.group.leader is sent:
            self.follow(sent.group)

    def due(self) -> Iterator[SentTask]:
        """Yield the tasks that are to be sent now; those that were removed meanwhile are among them."""
        while self._ready and self._out < PER_SLOT * max(self.slots, 1) + MORE:
            sent = heapq.heappop(self._ready)[-1]
            if not sent.future.done():
                sent.is_out = True
                self._out += 1
                yield sent

    def _push(self, sent: SentTask) -> None:
        heapq.heappush(self._ready, (sent.task.rank, sent.group.number, next(self._count), sent))
