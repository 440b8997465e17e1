"""What the program had in its memory, at one moment or at several of them."""

from __future__ import annotations

import itertools
import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from replaydbg.debugger.index import Index
from replaydbg.debugger.questions import Questions
from replaydbg.debugger.values import Here, Moment
from replaydbg.engine.messages import Break, Run
from replaydbg.engine.travel import Travel
from replaydbg.engine.worker import Worker
from replaydbg.errors import NoSuchMoment
from replaydbg.heap.limits import Limits, Which
from replaydbg.heap.snapshot import Snapshot, Taken
from replaydbg.heap.stored import load_stored, snapshots_of
from replaydbg.log.reader import open_recording
from replaydbg.replay.clock import Hits

_series = itertools.count(1)
_ASKING = ("/replaydbg/__init__.py", "/replaydbg/pytest_plugin/recorded.py")
"""Where the functions are by which a program asks for a snapshot."""


class Heaps(Questions):
    """Snapshots of the heap, taken by throw-away copies of the processes that stand at the moments."""

    here: Here
    travel: Travel
    path: Path
    index: Index

    @abstractmethod
    def count_of(self, moment: str | int | Moment) -> int:
        """Return the count of lines at `moment`. Raises NoSuchMoment."""

    @cached_property
    def snapshots(self) -> tuple[Taken, ...]:
        """When the snapshots were taken that the recording holds: the moment of one is `@#` and its number."""
        return snapshots_of(self.path)

    def marks_of_snapshots(self, moment: str) -> dict[str, int]:
        """Return the counts of lines at the snapshots, by `#` and name or number, if `moment` may be one of them."""
        if "@#" not in moment:
            return {}
        at = {each.number: self.index.count(Moment(min(each.event, self.index.events), 1)) for each in self.snapshots}
        at |= self._calls
        # Of one name it is the first one; a number that is a name, too, is the number.
        named = {f"#{each.name}": at[each.number] for each in reversed(self.snapshots) if each.name}
        return named | {f"#{number}": count for number, count in at.items()}

    @cached_property
    def _calls(self) -> dict[int, int]:
        """The counts of lines at the snapshots that the program asked for, by number: there was a call for each.

        Of the others the recording knows only after which event they were taken.
        """
        asked = [each for each in self.snapshots if each.reason == "named"]
        files = {each.file for each in self.index.hits if _is_asking(each)}
        if not files or not asked:
            return {}
        worker = self.travel.at(1)
        breaks = tuple(Break(file=each, function="snapshot") for each in sorted(files))
        order = Run(until=self.index.total, breaks=breaks)
        found: dict[int, int] = {}
        try:
            while asked and not isinstance(where := worker.run(order, idle=self.travel.idle), dict):
                if where.why != "break":
                    break
                if where.event == asked[0].event:  # else it is one that failed
                    found[asked.pop(0).number] = where.count
        finally:
            worker.kill()
        return found

    def stored_heap(self, number: int) -> Snapshot:
        """Return the snapshot of that number that was taken while the program was recorded.

        Raises NoSuchMoment if there is none, Corrupt if it cannot be read.
        """
        with open_recording(self.path) as recording:
            try:
                return load_stored(recording, number)
            except KeyError:
                raise NoSuchMoment(f"@#{number}", f"the recording has {len(self.snapshots)} snapshots") from None

    def heap(
        self, moment: str | int | Moment | None = None, *, which: Which = "mine", limits: Limits | None = None
    ) -> Snapshot:
        """Return the objects that the program could reach at `moment`, or here. Raises NoSuchMoment, EngineLost."""
        if moment is None or (self.count_of(moment) == self.here.count and not self.here.is_changed):
            return self.cursor.heap(limits or Limits(), which)
        return self.heaps([moment], which=which, limits=limits)[0]

    def heaps(
        self, moments: Sequence[str | int | Moment], *, which: Which = "mine", limits: Limits | None = None
    ) -> list[Snapshot]:
        """Return a snapshot for each of `moments`, in which one can tell whether an object is still the same one.

        One run of the program passes them all. Raises NoSuchMoment, EngineLost.
        """
        counts = [self.count_of(moment) for moment in moments]
        self.begin("looking at the heap")
        run = f"{os.getpid()}-{next(_series)}"
        taken: dict[int, Snapshot] = {}
        worker: Worker | None = None
        try:
            for number, count in enumerate(sorted(set(counts)), 1):
                if worker is None:
                    worker = self.travel.at(count)
                else:
                    self.travel.arrived(worker, count)
                taken[count] = worker.heap(limits or Limits(), which, number=number, run=run)
                worker.keep_track(number + 1)
        finally:
            if worker is not None:
                worker.kill()
        return [_named(taken[count], moment) for count, moment in zip(counts, moments, strict=True)]


def _is_asking(hits: Hits) -> bool:
    return hits.function.rpartition(".")[2] == "snapshot" and hits.file.endswith(_ASKING)


def _named(snapshot: Snapshot, moment: str | int | Moment) -> Snapshot:
    return replace(snapshot, taken=replace(snapshot.taken, name=str(moment)))
