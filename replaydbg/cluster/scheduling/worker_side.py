"""What runs inside a worker of a dask cluster: it answers one order, or says what it lacks.

A worker gets the names of functions of this module, with JSON: no code, and nothing of the program, is pickled. So a
worker whose Python differs can still call them, and says that it is not fit; one without replaydbg raises an error.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import json
import os
import shutil
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

from replaydbg.cluster.questions.handlers import answer
from replaydbg.cluster.scheduling.content_cache import ContentCache, PiecesMissing
from replaydbg.cluster.scheduling.fitness import why_unfit
from replaydbg.cluster.scheduling.kept_repositories import KeptRepositories
from replaydbg.cluster.tasks import JsonObject
from replaydbg.commits.worktree_commands import GivenUp
from replaydbg.commits.worktrees import Worktrees
from replaydbg.config import load_settings
from replaydbg.errors import ReplaydbgError, clause
from replaydbg.store.piece_cache import CacheFull

_WORK = "work"
"""The directory in the cache's with one directory for each living worker."""
_STEP = 0.25
"""Seconds between two checks whether tasks were given up."""


def run_task(text: str) -> JsonObject:
    """Answer an order in JSON; return `facts` and `why`, or which pieces are `missing`, or why this is `unfit`."""
    reply = _reply(**json.loads(text))
    return reply | {"worker": _address()}


async def receive(pieces: dict[str, bytes]) -> str:
    """Put pieces into the cache; return why that is not possible, empty if it is."""
    # In a thread: the worker's loop must not wait for the disk.
    return await asyncio.to_thread(_put, pieces)


def _put(pieces: dict[str, bytes]) -> str:
    try:
        _here().cache.put(pieces)
    except (CacheFull, ReplaydbgError, OSError) as error:
        return clause(str(error))
    return ""


def fitness(text: str) -> str:
    """Return why this worker cannot run tasks with the needs in this JSON; empty: it can."""
    return why_unfit(json.loads(text))


def _reply(kind: str, order: JsonObject, needs: JsonObject) -> JsonObject:
    why = why_unfit(needs)
    if why:
        return {"unfit": why}
    began = time.monotonic()
    try:
        with _Use(_here(), order) as place, _Watched() as cancel:
            facts, why = answer(kind, order, place, cancel)
    except PiecesMissing as missing:
        return {"missing": missing.names}
    except GivenUp:
        return {"given_up": True}
    except (CacheFull, ReplaydbgError, OSError) as error:
        return {"facts": {}, "why": clause(str(error)), "seconds": time.monotonic() - began}
    return {"facts": facts, "why": why, "seconds": time.monotonic() - began}


class _WorkerPlace:
    """The cache and the working directory of this process."""

    def __init__(self) -> None:
        settings = load_settings()
        self.cache = ContentCache(settings.worker_cache, settings.worker_cache_size)
        work = settings.worker_cache / _WORK
        work.mkdir(mode=0o700, exist_ok=True)
        _remove_abandoned(work)
        self.directory = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=work))
        self._lock = os.open(self.directory, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.repositories = KeptRepositories(self.directory / "repositories")
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)


@cache
def _here() -> _WorkerPlace:
    with _making:
        return _WorkerPlace()


_making = threading.RLock()


def _remove_abandoned(work: Path) -> None:
    """Remove the directories of workers that were killed."""
    for each in work.iterdir():
        with suppress(OSError):
            fd = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(each, ignore_errors=True)
            finally:
                os.close(fd)


class _Use:
    """A Workplace for one task: its contents stay in the cache until it ends."""

    def __init__(self, here: _WorkerPlace, order: JsonObject) -> None:
        self._here, self._order = here, order
        self._stack = ExitStack()
        self._paths: dict[str, Path] = {}
        self.directory = here.directory

    def __enter__(self) -> _Use:
        missing: list[str] = []
        try:
            for name in _references(self._order):
                try:
                    self._paths[name] = self._stack.enter_context(self._here.cache.content(name))
                except PiecesMissing as more:
                    missing += more.names
            if missing:
                raise PiecesMissing(missing)
            scratch = tempfile.TemporaryDirectory(dir=self._here.directory, ignore_cleanup_errors=True)
            self.directory = Path(self._stack.enter_context(scratch))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def path(self, reference: JsonObject) -> Path:
        return self._paths[reference["content"]] / str(reference["main"])

    def worktrees(self, reference: JsonObject) -> Worktrees:
        name = reference["content"]
        return self._stack.enter_context(self._here.repositories.worktrees(name, self._paths[name]))


def _references(order: Any) -> list[str]:
    """Return the names of all contents to which an order refers."""
    if isinstance(order, dict):
        if set(order) == {"content", "main"}:
            return [order["content"]]
        order = list(order.values())
    found = [name for each in order for name in _references(each)] if isinstance(order, list) else []
    return list(dict.fromkeys(found))


# ---- tasks that are given up ----


class _Watched:
    """An event that is set when the scheduler no longer wants the task of this thread.

    A thread cannot be stopped from outside. So one thread of the worker looks at the states of the running tasks: that
    of a task whose future was cancelled, or whose client is gone, is no longer `executing`.
    """

    def __enter__(self) -> threading.Event:
        self._event = threading.Event()
        self._key = _key()
        _watch(self._key, self._event)
        return self._event

    def __exit__(self, *exc_info: object) -> None:
        with _watching:
            _watched.pop(self._key, None)


_watching = threading.Lock()
_watched: dict[Any, threading.Event] = {}
_watchers: list[threading.Thread] = []


def _watch(key: Any, event: threading.Event) -> None:
    with _watching:
        _watched[key] = event
        if not _watchers:
            _watchers.append(threading.Thread(target=_look, args=(_worker(),), daemon=True, name="replaydbg-watch"))
            _watchers[0].start()


def _look(worker: Any) -> None:
    while True:
        time.sleep(_STEP)
        with _watching:
            running = dict(_watched)
        for key, event in running.items():
            task = worker.state.tasks.get(key)
            if task is None or task.state not in ("executing", "long-running"):
                event.set()


def _worker() -> Any:
    from distributed import get_worker  # only workers have it

    return get_worker()


def _key() -> Any:
    return _worker().get_current_task()


def _address() -> str:
    return str(_worker().address)
