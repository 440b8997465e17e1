"""The interface of pools that run tasks: a recording and a question each, answered as they come.

A task is pure: it depends on what its question and its recording contain, and on nothing else, so it can be repeated
anywhere. `LocalPool` runs tasks on this machine, `SchedulerPool` on the workers of a dask scheduler.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from replaydbg.events.verdict import Verdict

JsonObject = dict[str, Any]
"""An order or an answer: what JSON can express."""


class ContentSink(Protocol):
    """Takes the files that a question needs, and returns the words by which its order names them."""

    def recording(self, path: Path) -> JsonObject:
        """Return the reference to a recording, with the blocks that it shares. Raises ReplaydbgError, OSError."""

    def file(self, path: Path) -> JsonObject:
        """Return the reference to a file. Raises OSError."""

    def tree(self, root: Path, names: Iterable[str]) -> JsonObject:
        """Return the reference to a directory with these files of `root`. Raises OSError."""

    def data(self, name: str, data: bytes) -> JsonObject:
        """Return the reference to a file with this content."""

    def repository(self, root: Path, commits: Sequence[str]) -> JsonObject:
        """Return the reference to a git repository that has these commits. Raises GitFailed, OSError."""


class TaskQuestion(Protocol):
    """A question, mostly about a recording; a frozen value."""

    @property
    def kind(self) -> str:
        """The name of the handler that answers it, see `handlers`."""

    def order(self, recording: Path | None, sink: ContentSink) -> JsonObject:
        """Return the fields of the order to the handler; files are references that `sink` returns."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordingTask:
    """A recording and a question."""

    recording: Path | None
    """The recording; tasks of the same one are run near each other. None: the question needs none."""
    question: TaskQuestion
    rank: int = 0
    """Of tasks that wait for workers, those of lower ranks begin first; of one rank, in the order of recordings."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The answer to a task."""

    task: RecordingTask
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The answer, as the question's handler returns it; empty: there is none."""
    why: str = ""
    """Why there is no answer, as the end of a sentence; empty: there is one. It says nothing about the program."""
    worker: str = ""
    """The address of the worker that answered; empty: this machine."""
    seconds: float = 0.0
    """Duration of the task there, in seconds."""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the answer; UNDECIDED without an answer."""
        return Verdict(self.facts["verdict"]) if "verdict" in self.facts else Verdict.UNDECIDED

    @property
    def reason(self) -> str:
        """The reason of the verdict, or why there is none."""
        return str(self.facts.get("why", "")) if self.facts else self.why


class TaskPool(Protocol):
    """Runs tasks; used from any thread. Close it, or open it by `open_pool`."""

    @property
    def slots(self) -> int:
        """Number of tasks that run at once at present; at least 1."""

    def submit(self, task: RecordingTask) -> Future[TaskResult]:
        """Begin a task, or let it wait. Raises what the question's `order` raises: its files cannot be read.

        The future has a TaskResult, also where the task could not be run; it raises SchedulerLost if there is no
        scheduler any more, and CancelledError after `give_up`.
        """

    def give_up(self, future: Future[TaskResult]) -> None:
        """End a task whose result is no longer wanted, with the processes that it started."""

    def close(self) -> None:
        """End all tasks, and release what the pool has; again is harmless."""


def results(pool: TaskPool, tasks: Iterable[RecordingTask]) -> Iterator[TaskResult]:
    """Yield the results of tasks as they come; those that are left when the iteration ends are given up.

    Put tasks of one recording next to each other: a worker keeps what it has. Raises what `submit` and its future do.
    """
    running: list[Future[TaskResult]] = []
    try:
        for task in tasks:
            running.append(pool.submit(task))
        for future in as_completed(running):
            yield future.result()
    finally:
        for future in running:
            if not future.done():
                pool.give_up(future)


def settle(future: Future[TaskResult], result: TaskResult | BaseException) -> None:
    """Set the result of a future, or its exception, unless it was given up meanwhile."""
    with suppress(InvalidStateError):
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)


_discarding = threading.Lock()


def discard(future: Future[TaskResult]) -> None:
    """Mark a future as given up: who waits for it gets CancelledError."""
    with _discarding:
        if not future.cancelled() and future.cancel():
            future.set_running_or_notify_cancel()


__all__ = [
    "CancelledError",
    "ContentSink",
    "JsonObject",
    "RecordingTask",
    "TaskPool",
    "TaskQuestion",
    "TaskResult",
    "discard",
    "results",
    "settle",
]
