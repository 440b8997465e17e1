"""Snapshots of the program's memory at one moment or several."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Moment
from replaydbg.engine.engine_process import EngineProcess, PendingSnapshot
from replaydbg.engine.protocol import Break, RunOrder
from replaydbg.engine.reports import EndReport
from replaydbg.errors import NoSuchMoment
from replaydbg.heap.limits import Limits, Which
from replaydbg.heap.snapshot import Snapshot, Taken
from replaydbg.heap.storage.recorded_snapshots import load_stored, snapshots_of
from replaydbg.log.reader import open_recording
from replaydbg.replay.clock import Hits

AT_ONCE = 2
"""Number of snapshots that are taken at the same time: each needs memory of its own."""

_series = itertools.count(1)
_ASKING = {
    "_take_snapshot": ("/replaydbg/__init__.py",),
    "snapshot": ("/replaydbg/pytest_plugin/child/recorded.py", "/replaydbg/pytest_plugin/recorded.py"),
}
"""The functions by which a program requests a snapshot, and their files; the last one in earlier recordings."""
_ASKED_FOR = ("named", "consistent", "inconsistent")
"""The reasons of snapshots that were requested by one of them."""


class HeapQueries:
    """Snapshots of the heap, taken by throw-away copies of the processes at the moments in question."""

    def __init__(self, view: ReplayView, path: Path) -> None:
        self._view, self._path = view, path

    @cached_property
    def taken(self) -> tuple[Taken, ...]:
        """When the snapshots were taken that the recording holds: the moment of one is `@#` and its number."""
        return snapshots_of(self._path)

    def counts_of_snapshots(self, moment: str) -> dict[str, int]:
        """Return the counts of lines at the snapshots, by `#` and name or number, if `moment` may be one of them."""
        if "@#" not in moment:
            return {}
        at = {
            each.number: self._view.index.count(Moment(min(each.event, self._view.index.events), 1))
            for each in self.taken
        }
        at |= self._calls
        # Of one name it is the first one; a number that is a name, too, is the number.
        named = {f"#{each.name}": at[each.number] for each in reversed(self.taken) if each.name}
        return named | {f"#{number}": count for number, count in at.items()}

    @cached_property
    def _calls(self) -> dict[int, int]:
        """The counts of lines at the snapshots that the program asked for, by number: there was a call for each.

        Of the others the recording knows only after which event they were taken.
        """
        asked = [each for each in self.taken if each.reason in _ASKED_FOR]
        functions = {(each.file, _name(each)) for each in self._view.index.hits if _is_asking(each)}
        if not functions or not asked:
            return {}
        worker = self._view.travel.at(1)
        breaks = tuple(Break(file=file, function=function) for file, function in sorted(functions))
        order = RunOrder(until=self._view.index.total, breaks=breaks)
        found: dict[int, int] = {}
        try:
            while asked and not isinstance(where := worker.run(order, idle=self._view.travel.idle), EndReport):
                if where.why != "break":
                    break
                if where.event == asked[0].event:  # else it is one that failed
                    found[asked.pop(0).number] = where.count
        finally:
            worker.kill()
        return found

    def stored(self, number: int) -> Snapshot:
        """Return the snapshot of that number that was taken while the program was recorded.

        Raises NoSuchMoment if there is none, Corrupt if it cannot be read.
        """
        with open_recording(self._path) as recording:
            try:
                return load_stored(recording, number)
            except KeyError:
                raise NoSuchMoment(f"@#{number}", f"the recording has {len(self.taken)} snapshots") from None

    def at(
        self, moment: str | int | Moment | None = None, *, which: Which = "mine", limits: Limits | None = None
    ) -> Snapshot:
        """Return the objects that the program could reach at `moment`, or here. Raises NoSuchMoment, EngineLost."""
        if moment is None or (self._view.count_of(moment) == self._view.here.count and not self._view.here.is_changed):
            with closing(self._view.cursor.begin_heap(limits or Limits(), which)) as pending:
                return pending.snapshot(self._view.travel.idle)
        return self.at_each([moment], which=which, limits=limits)[0]

    def at_each(
        self, moments: Sequence[str | int | Moment], *, which: Which = "mine", limits: Limits | None = None
    ) -> list[Snapshot]:
        """Return a snapshot for each of `moments`, in which the identity of objects can be compared.

        One run of the program passes them all. Raises NoSuchMoment, EngineLost.
        """
        counts = [self._view.count_of(moment) for moment in moments]
        self._view.work.begin("taking a heap snapshot")
        run = f"{os.getpid()}-{next(_series)}"
        taken: dict[int, Snapshot] = {}
        pending: deque[tuple[int, PendingSnapshot]] = deque()

        def take_first() -> None:
            count, first = pending[0]
            taken[count] = first.snapshot(self._view.travel.idle)
            pending.popleft()
            first.close()

        worker: EngineProcess | None = None
        try:
            for number, count in enumerate(sorted(set(counts)), 1):
                if worker is None:
                    worker = self._view.travel.at(count)
                else:
                    self._view.travel.arrived(worker, count)
                # Its copy walks the heap while the program runs on to the next position.
                pending.append((count, worker.begin_heap(limits or Limits(), which, number=number, run=run)))
                worker.keep_track(number + 1)
                if len(pending) >= AT_ONCE:
                    take_first()
            while pending:
                take_first()
        finally:
            for _, each in pending:
                each.close()
            if worker is not None:
                worker.kill()
        return [_named(taken[count], moment) for count, moment in zip(counts, moments, strict=True)]


def _is_asking(hits: Hits) -> bool:
    return hits.file.endswith(_ASKING.get(_name(hits), ()))


def _name(hits: Hits) -> str:
    return hits.function.rpartition(".")[2]


def _named(snapshot: Snapshot, moment: str | int | Moment) -> Snapshot:
    return replace(snapshot, taken=replace(snapshot.taken, name=str(moment)))
