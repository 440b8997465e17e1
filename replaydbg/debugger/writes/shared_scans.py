"""Scans for the last writes of several values: each stretch of the run is run once for all of them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.source.place_expressions import PlaceExpression
from replaydbg.debugger.writes.equal_writes import EqualWrites
from replaydbg.debugger.writes.last_write import OwnScans
from replaydbg.debugger.writes.store_passages import StoredPlace, StorePassages
from replaydbg.engine.protocol import MOST_BREAKS, MOST_WATCHED, RunOrder, Watch, Watches
from replaydbg.engine.scan import Scanned, whereabouts


@dataclass(frozen=True, slots=True)
class Wanted:
    """A value whose last write is looked for."""

    place: PlaceExpression
    watch: Watch
    """The first watch for it: see `last_write.first_watch`."""
    rewrites: EqualWrites | None
    """The search for writes of an equal value; None: there is none."""


def fits(group: Sequence[Wanted], another: Wanted) -> bool:
    """Whether one run can watch the values of a group and another one."""
    lines = {line for each in (*group, another) if each.rewrites is not None for line in each.rewrites.breaks}
    return len(group) < MOST_WATCHED and len(lines) <= MOST_BREAKS


class SharedScans:
    """Scans for the values of one group. Close it."""

    def __init__(self, view: ReplayView, group: Sequence[Wanted]) -> None:
        self._view, self._group = view, group
        here = view.here.count
        breaks = (each.rewrites.breaks if each.rewrites is not None else () for each in group)
        self._breaks = tuple(dict.fromkeys(each for own in breaks for each in own))
        self._select(here)
        self._pending = dict.fromkeys(each.watch for each in group)
        self._known: list[list[Scanned]] = [[] for _ in group]
        with closing(view.travel.at(here)) as worker:
            self._lies = dict(zip(self._pending, whereabouts(worker, tuple(self._pending)), strict=True))
        self._lie_here = self._lies.copy()
        self._scans = view.travel.scans_back(here, self._order)

    def close(self) -> None:
        """Stop the scans."""
        self._scans.close()
        self._passages.close()

    def is_settled(self, watch: Watch) -> bool:
        """Whether `back` needs no further stretch for this watch."""
        return watch not in self._pending

    def advance(self) -> bool:
        """Run over one more stretch; return whether there was one. Raises EngineLost, Cancelled."""
        scanned = next(self._scans, None) if self._pending else None
        if scanned is None:
            return False
        by_break = dict(zip(self._breaks, scanned.where.passages, strict=True))
        changes = dict(zip(scanned.watches, scanned.where.all_changes, strict=True))
        pending, lies = self._pending.copy(), dict[Watch, tuple[int, int]]()
        for known, each in zip(self._known, self._group, strict=True):
            if each.watch not in pending or each.watch not in changes:
                continue
            number = scanned.watches.index(each.watch)
            own = each.rewrites.breaks if each.rewrites is not None else ()
            passages = tuple(by_break[line] for line in own)
            where = replace(scanned.where, changes=changes[each.watch], passages=passages)
            begins, ends = scanned.begins[number], scanned.ends[number]
            known.append(Scanned(where, (each.watch,), (begins,), (ends,)))
            # It needs no further stretch once it has changed, or has another address on the other side of a checkpoint.
            if where.changes.count or ends != self._lies[each.watch]:
                self._pending.pop(each.watch, None)
            lies[each.watch] = begins
        self._lies |= lies
        return True

    def back(
        self, place: PlaceExpression, watch: Watch, *, and_rewrites: bool
    ) -> tuple[EqualWrites | None, Generator[Scanned]]:
        """See `last_write.Scans`."""
        for known, each in zip(self._known, self._group, strict=True):
            if (each.place, each.watch, each.rewrites is not None) == (place, watch, and_rewrites):
                return each.rewrites, self._stretches(watch, known)
        return OwnScans(self._view).back(place, watch, and_rewrites=and_rewrites)

    def lies(self, watch: Watch) -> tuple[int, int]:
        """See `last_write.Scans`."""
        return self._lie_here[watch] if watch in self._lie_here else OwnScans(self._view).lies(watch)

    def _stretches(self, watch: Watch, known: list[Scanned]) -> Generator[Scanned]:
        at = 0
        while at < len(known) or (watch in self._pending and self.advance()):
            if at < len(known):
                yield known[at]
                at += 1

    def _order(self) -> RunOrder:
        pending = tuple(self._pending)
        return RunOrder(watch=Watches(pending) if pending else None, breaks=self._breaks)

    def _select(self, here: int) -> None:
        """Share one run over each stretch that selects the passages which may store to any of the places."""
        places: list[StoredPlace] = []
        selected: list[EqualWrites] = []
        for each in self._group:
            place = each.rewrites.stored_place if each.rewrites is not None else None
            if place is not None and each.rewrites is not None:
                places.append(place)
                selected.append(each.rewrites)
        self._passages = StorePassages(self._view, places, (here, *self._view.travel.timeline.earlier(here)))
        for number, rewrites in enumerate(selected):
            rewrites.select_by(self._passages, number)
