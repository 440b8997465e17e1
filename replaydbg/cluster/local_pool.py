"""Run tasks on this machine, several at once; each starts processes of its own."""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from replaydbg.cluster.questions.handlers import answer
from replaydbg.cluster.tasks import JsonObject, RecordingTask, TaskResult, discard, settle
from replaydbg.cluster.workplace import LocalWorkplace
from replaydbg.commits.surroundings import place_in
from replaydbg.commits.worktree_commands import GivenUp


class LocalPool:
    """A TaskPool of this machine."""

    def __init__(self, jobs: int) -> None:
        """Run `jobs` tasks at once; at least 1."""
        self.slots = jobs
        self._place = LocalWorkplace()
        self._sink = _Paths(self._place.directory)
        # Threads: each of them waits for a process most of the time.
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="replaydbg-task")
        self._cancels: dict[Future[TaskResult], threading.Event] = {}
        self._is_closed = False

    def submit(self, task: RecordingTask) -> Future[TaskResult]:
        """Begin a task as soon as one of the slots is free; see TaskPool."""
        order = task.question.order(task.recording, self._sink)
        future: Future[TaskResult] = Future()
        cancel = self._cancels[future] = threading.Event()
        self._threads.submit(self._run, task, order, future, cancel)
        return future

    def _run(self, task: RecordingTask, order: JsonObject, future: Future[TaskResult], cancel: threading.Event) -> None:
        began = time.monotonic()
        try:
            if not cancel.is_set():
                facts, why = answer(task.question.kind, order, self._place, cancel)
                settle(future, TaskResult(task, facts, why, seconds=time.monotonic() - began))
        except GivenUp:
            discard(future)
        except BaseException as error:  # noqa: BLE001 - who waits for the future has to see it
            settle(future, error)
        finally:
            self._cancels.pop(future, None)

    def give_up(self, future: Future[TaskResult]) -> None:
        """End a task, with its processes."""
        cancel = self._cancels.get(future)
        if cancel is not None:
            cancel.set()
        discard(future)

    def close(self) -> None:
        """End all tasks, and remove their worktrees."""
        if self._is_closed:
            return
        self._is_closed = True
        for future in list(self._cancels):
            self.give_up(future)
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._place.close()


class _Paths:
    """A ContentSink whose references are paths of this machine."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = itertools.count()
        self._data: dict[bytes, str] = {}
        self._trees: dict[tuple[Path, tuple[str, ...]], str] = {}

    def recording(self, path: Path) -> JsonObject:
        return {"path": str(path.absolute())}

    def file(self, path: Path) -> JsonObject:
        return {"path": str(path.absolute())}

    def tree(self, root: Path, names: Iterable[str]) -> JsonObject:
        """Copy the files, once: they may be edited while tasks wait."""
        key = root, tuple(names)
        if key not in self._trees:
            target = self._new()
            for name in key[1]:
                shutil.copy2(root / name, place_in(target, Path(name)), follow_symlinks=False)
            self._trees[key] = str(target)
        return {"path": self._trees[key]}

    def data(self, name: str, data: bytes) -> JsonObject:
        if data not in self._data:
            target = self._new() / name
            target.write_bytes(data)
            self._data[data] = str(target)
        return {"path": self._data[data]}

    def repository(self, root: Path, commits: Sequence[str]) -> JsonObject:
        return {"path": str(root)}

    def _new(self) -> Path:
        directory = self._directory / f"content-{next(self._number)}"
        directory.mkdir()
        return directory
