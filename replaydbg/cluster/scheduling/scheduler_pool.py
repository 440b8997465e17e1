"""Run tasks on the workers of a dask scheduler.

The scheduler does what it is good at: it queues, balances, repeats what a killed worker had, and shows an adaptive
cluster how much there is to do. What it cannot know is decided here: where a recording is already, what a worker lacks,
and which workers are not fit for a task.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from replaydbg.cluster.scheduling.content import ContentChanged, ContentSupply
from replaydbg.cluster.scheduling.fitness import WorkerNeeds, requirement_here
from replaydbg.cluster.scheduling.scheduler_link import SchedulerLink
from replaydbg.cluster.scheduling.task_queue import SentTask, TaskQueue
from replaydbg.cluster.tasks import JsonObject, RecordingTask, TaskResult, discard, settle
from replaydbg.errors import SchedulerLost, clause

MOST_LOSSES = 12
"""How often a task is begun again after the scheduler gave it up.

dask does so after four workers died while they had it, also if it only waited there.
"""
MOST_ASKS = 12
"""How often a worker may ask for pieces of one task; it needs two rounds, or more if its cache is small."""
GRACE = 5.0
"""Seconds without a connection to the scheduler after which the tasks are given up."""
_STEP = 0.5
"""Seconds between two looks at the scheduler and its workers."""
_KNOWN = 5.0
"""Seconds for which it is known which workers are fit."""
_PUSH = 8 << 20
"""Bytes that are sent to a worker at once."""
_RECORDINGS = 1 << 20
"""More recordings than a command has: a rank counts more than all of them."""
_HANDS = 8
"""Number of results that are fetched, and of workers that are supplied, at once."""


class SchedulerPool:
    """A TaskPool on the workers of a scheduler."""

    def __init__(self, address: str, notice: Callable[[str], None] = lambda text: None) -> None:
        """Connect to the scheduler; `notice` is called with sentences for the user, from another thread.

        Raises UsageError if dask.distributed is missing or the address is invalid, SchedulerLost.
        """
        self._link = SchedulerLink(address)
        self._notice = notice
        self._directory = tempfile.TemporaryDirectory(prefix="replaydbg-cluster-")
        self._supply = ContentSupply(Path(self._directory.name))
        self._lock = threading.RLock()
        self._sent: dict[Future[TaskResult], SentTask] = {}
        self._queue = TaskQueue()
        self._fit: dict[str, tuple[float, dict[str, str]]] = {}
        self._unwanted: list[Any] = []
        self._orphans: list[SentTask] = []
        self._threads: dict[str, int] = {}
        self._lost: SchedulerLost | None = None
        self._hands = ThreadPoolExecutor(_HANDS, thread_name_prefix="replaydbg-cluster")
        self._is_closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="replaydbg-scheduler")
        self._watcher.start()

    @property
    def slots(self) -> int:
        """Number of tasks that the workers run at once at present; 1 if there are none yet."""
        with suppress(Exception):
            self._threads = self._link.threads()
        return max(1, sum(self._threads.values()))

    def submit(self, task: RecordingTask) -> Future[TaskResult]:
        """Send a task, or let it wait for the first one of its recording; see TaskPool."""
        order = task.question.order(task.recording, self._supply)
        needs = requirement_here() if task.recording is None else self._supply.requirement(task.recording)
        with self._lock:
            if self._lost is not None:
                raise self._lost
            sent = SentTask(task, order, _facts(needs), self._queue.group_of(task.recording))
            self._sent[sent.future] = sent
            self._queue.add(sent)
            self._send_due()
        return sent.future

    def give_up(self, future: Future[TaskResult]) -> None:
        """End a task; see TaskPool."""
        with self._lock:
            discard(future)  # first: it may wait to be sent
            sent = self._sent.get(future)
            if sent is not None:
                if sent.dask is not None:
                    self._unwanted.append(sent.dask)
                self._forget(sent)

    def close(self) -> None:
        """End all tasks, and disconnect."""
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        for future in list(self._sent):
            self.give_up(future)
        self._watcher.join()
        self._cancel_unwanted()
        self._link.close()
        self._hands.shutdown(wait=False, cancel_futures=True)
        self._directory.cleanup()

    # ---- on the way there ----

    def _send(self, sent: SentTask) -> None:
        """Hand a task to the scheduler: near its recording, and to fit workers only, where these are known."""
        sent.only = sent.only or self._known_fit(sent.needs)
        preferred: tuple[str, ...] = (sent.group.holder,) if sent.group.holder and not sent.only else sent.only
        if self._lost is not None or self._is_closed.is_set():
            return
        try:
            sent.dask = self._link.submit(
                {"kind": sent.task.question.kind, "order": sent.order, "needs": sent.needs},
                key=f"replaydbg_{sent.task.question.kind}-{uuid.uuid4().hex}",
                workers=preferred,
                is_strict=bool(sent.only),
                priority=-(sent.task.rank * _RECORDINGS + sent.group.number),
            )
        except Exception:  # noqa: BLE001 - the connection broke just now, in one of many ways; the watcher sees it
            self._orphans.append(sent)
            return
        # In another thread than dask's single one for all callbacks: fetching a result takes a while.
        sent.dask.add_done_callback(lambda dask: self._hands.submit(self._ended, sent, dask))

    def _send_due(self) -> None:
        """Send what the scheduler can take; the lock is held."""
        for sent in self._queue.due():
            self._send(sent)

    def _forget(self, sent: SentTask) -> None:
        self._sent.pop(sent.future, None)
        sent.dask = None
        self._queue.remove(sent)
        if not self._is_closed.is_set():
            self._send_due()

    # ---- on the way back ----

    def _ended(self, sent: SentTask, dask: Any) -> None:
        """Take the end of a dask task: a result, a wish, or a failure."""
        try:
            if sent.dask is not dask or sent.future not in self._sent:
                return  # it was given up, or sent again
            if dask.status == "finished":
                self._take(sent, dask.result())
            elif dask.status == "error":
                self._failed(sent, dask.exception())
            else:
                with self._lock:
                    self._orphans.append(sent)
        except Exception as error:  # noqa: BLE001 - the result was lost with its worker, or with the scheduler
            with self._lock:
                if sent.dask is dask:
                    self._again(sent, f"its result could not be fetched ({type(error).__name__}: {error})")

    def _take(self, sent: SentTask, reply: JsonObject) -> None:
        worker = reply["worker"]
        if "unfit" in reply:
            self._elsewhere(sent)
        elif "given_up" in reply:
            self._again(sent, "its worker gave it up")
        elif "missing" in reply:
            self._supply_to(worker, sent, reply["missing"])
        else:
            result = TaskResult(sent.task, reply["facts"], reply["why"], worker, reply["seconds"])
            self._finish(sent, result)

    def _finish(self, sent: SentTask, result: TaskResult) -> None:
        with self._lock:
            if result.worker:
                sent.group.holder = sent.group.holder if sent.group.holder in self._threads else result.worker
            self._forget(sent)
        settle(sent.future, result)

    def _impossible(self, sent: SentTask, why: str, worker: str = "") -> None:
        self._finish(sent, TaskResult(sent.task, {}, clause(why), worker))

    def _again(self, sent: SentTask, why: str) -> None:
        """Send a task once more, unless that was done too often."""
        sent.losses += 1
        if sent.losses > MOST_LOSSES:
            self._impossible(sent, f"it was begun {MOST_LOSSES} times without an end: {why}")
            return
        with self._lock:
            if sent.future in self._sent:
                self._send(sent)

    def _failed(self, sent: SentTask, error: BaseException) -> None:
        if isinstance(error, ImportError) or type(error).__name__ == "KilledWorker":
            if isinstance(error, ImportError):
                self._elsewhere(sent)  # replaydbg is not installed there
            else:
                self._again(sent, "each of its workers was lost")
            return
        self._impossible(sent, f"a worker raised {type(error).__name__}: {error}")

    # ---- what workers lack ----

    def _supply_to(self, worker: str, sent: SentTask, names: list[str]) -> None:
        sent.asks += 1
        if sent.asks > MOST_ASKS:
            self._impossible(sent, f"the cache of {worker} is too small: what it had received was gone again", worker)
            return
        try:
            why = self._push(worker, names)
        except ContentChanged as changed:
            self._impossible(sent, str(changed))
            return
        if why:
            self._impossible(sent, f"{worker}: {why}", worker)
            return
        with self._lock:
            if sent.future not in self._sent:
                return
            if not sent.group.holder or sent.group.holder not in self._threads:
                sent.group.holder = worker
            self._send(sent)
            if sent.group.leader is sent and sent.asks > 1:
                # All of its pieces are there now.
                self._queue.follow(sent.group)
                self._send_due()

    def _push(self, worker: str, names: list[str]) -> str:
        """Send pieces to a worker; return why it cannot take them. One that is gone is noticed by the scheduler."""
        batch: dict[str, bytes] = {}
        size = 0
        for name in [*names, ""]:
            if batch and (not name or size + self._supply.size(name) > _PUSH):
                why = self._link.give(worker, batch)
                if why:
                    return why
                batch, size = {}, 0
            if name:
                batch[name] = self._supply.read(name)
                size += len(batch[name])
        return ""

    # ---- which workers are fit ----

    def _elsewhere(self, sent: SentTask) -> None:
        """Send a task to the workers that are fit for it, if there are any."""
        reasons = self._reasons(sent.needs)
        fit = tuple(address for address, why in reasons.items() if not why)
        if not fit:
            why = [f"{address}: {why}" for address, why in reasons.items()] or ["it has none"]
            more = f" (and {len(why) - 1} more)" if len(why) > 1 else ""
            self._impossible(sent, f"no worker of the cluster is fit for it; {why[0]}{more}")
            return
        with self._lock:
            if sent.future in self._sent:
                sent.only = fit
                self._send(sent)

    def _reasons(self, needs: JsonObject) -> dict[str, str]:
        """Return for each worker why it is not fit; empty: it is."""
        key = json.dumps(needs, sort_keys=True)
        asked = self._fit.get(key)
        if asked is None or time.monotonic() - asked[0] > _KNOWN:
            found = self._link.fitness(needs)
            reasons = {each: why if isinstance(why, str) else _no_module(why) for each, why in found.items()}
            asked = self._fit[key] = (time.monotonic(), reasons)
        return asked[1]

    def _known_fit(self, needs: JsonObject) -> tuple[str, ...]:
        """Return the fit workers, if it is known that others are not; empty: all are, as far as is known."""
        asked = self._fit.get(json.dumps(needs, sort_keys=True)) if self._fit else None
        if asked is None or not any(asked[1].values()):
            return ()
        return tuple(each for each, why in asked[1].items() if not why and each in self._threads)

    # ---- the scheduler and its workers ----

    def _watch(self) -> None:
        up = time.monotonic()
        is_told = False
        while not self._is_closed.wait(_STEP):
            if self._link.is_up:
                up = time.monotonic()
                with suppress(Exception):
                    self._threads = self._link.threads()
                    self._send_orphans()
                    with self._lock:
                        self._queue.slots = sum(self._threads.values())
                        self._send_due()
                    if not self._threads and self._sent and not is_told:
                        is_told = True
                        self._notice("the scheduler has no workers yet; the tasks wait for them")
            elif time.monotonic() - up > GRACE:
                self._lose()
                return
            self._cancel_unwanted()

    def _send_orphans(self) -> None:
        """Send again what was lost with a connection, and what waits for workers that are gone."""
        with self._lock:
            orphans, self._orphans = self._orphans, []
            for sent in list(self._sent.values()):
                if sent.only and sent.dask is not None and not set(sent.only) & set(self._threads):
                    self._unwanted.append(sent.dask)
                    orphans.append(sent)
                    sent.only = ()
        for sent in orphans:
            self._again(sent, "the connection to the scheduler was lost")

    def _cancel_unwanted(self) -> None:
        with self._lock:
            unwanted, self._unwanted = self._unwanted, []
        if unwanted and self._link.is_up:
            self._link.cancel(unwanted)

    def _lose(self) -> None:
        lost = SchedulerLost(self._link.address, "no longer answers; the results so far are kept")
        with self._lock:
            self._lost = lost
            sent = list(self._sent)
            self._sent.clear()
        for future in sent:
            settle(future, lost)


def _facts(needs: WorkerNeeds) -> JsonObject:
    return needs.facts()


def _no_module(error: object) -> str:
    return "it has no replaydbg" if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
