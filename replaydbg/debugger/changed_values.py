"""The lines that wrote the changed values of a diff, found together and yielded as they are found."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from replaydbg.debugger.long_work import OutOfTime
from replaydbg.debugger.object_history import PathPlace, places_of
from replaydbg.debugger.other_position import OtherPosition
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import LastWrite
from replaydbg.debugger.source.place_expressions import PlaceExpression, parse_place
from replaydbg.debugger.writes.equal_writes import EqualWrites
from replaydbg.debugger.writes.last_write import (
    OwnScans,
    Scans,
    brief_write,
    first_watch,
    place_named,
    watch_at,
    watch_in_module,
)
from replaydbg.debugger.writes.shared_scans import SharedScans, Wanted, fits
from replaydbg.engine.protocol import MOST_WATCHED, Watch
from replaydbg.errors import AskFailed, UsageError

WITHIN = 5.0
"""Seconds after which no further last writes are searched for."""

FIRST_GROUP = 16
"""Number of values in the first group, so that the first answers come soon; later groups are as large as possible."""

Found = tuple[str, LastWrite | None]
"""A path, and the last write of the value there; None: it cannot be determined."""


def last_writes(
    view: ReplayView, paths: Sequence[str], count: int, modules: Sequence[str], seconds: float
) -> Generator[Found]:
    """Yield the last write before the line `count` of the value at each of `paths`, as a diff names them.

    Paths whose turn does not come within `seconds` are left out. Each result has only the place of the write, the same
    one that `why` returns. `modules`: names of modules at which paths may begin. Raises EngineLost and Cancelled.
    """
    until = time.monotonic() + seconds
    with closing(_from(view, paths, count, modules)) as search:
        while time.monotonic() < until:
            # The caller may run other queries between two results; neither this limit nor this text is meant for them.
            view.work.begin("searching for the lines that wrote the changed values")
            try:
                with view.work.limited(until - time.monotonic()):
                    found = next(search, None)
            except OutOfTime:
                return
            if found is None:
                return
            yield found


def _from(view: ReplayView, paths: Sequence[str], count: int, modules: Sequence[str]) -> Generator[Found]:
    with closing(OtherPosition(view, count)) as there:
        yield from _Search(there, modules).all(paths)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A path, and the watch for its value."""

    path: str
    wanted: Wanted
    watch: Watch
    """The watch for the place, whatever object has the value."""
    is_in_frame: bool
    others: list[PathPlace]
    """The other places that the path may mean."""


class _Search:
    """The search for several last writes from one position."""

    def __init__(self, view: OtherPosition, modules: Sequence[str]) -> None:
        self._view, self._modules = view, modules

    def all(self, paths: Sequence[str]) -> Generator[Found]:
        """Yield the results group by group, the latest writes of each group first."""
        group: list[_Asked] = []
        most = FIRST_GROUP
        for path in paths:
            asked = self._asked(path)
            if asked is None:
                yield path, None
                continue
            if len(group) == most or not fits([each.wanted for each in group], asked.wanted):
                yield from self._of_group(group)
                group, most = [], MOST_WATCHED
            group.append(asked)
        yield from self._of_group(group)

    def _of_group(self, group: list[_Asked]) -> Generator[Found]:
        if not group:
            return
        with closing(SharedScans(self._view, [each.wanted for each in group])) as scans:
            is_more = True
            while group:
                is_more = is_more and scans.advance()
                waiting = []
                for each in group:
                    if is_more and not scans.is_settled(each.wanted.watch):
                        waiting.append(each)
                    else:
                        yield each.path, self._written(each, scans)
                group = waiting

    def _asked(self, path: str) -> _Asked | None:
        """Return what to watch for the first place that the path may mean; None: there is no such place."""
        places = list(places_of(self._view, path, self._modules))
        for number, each in enumerate(places):
            try:
                return _Asked(path, *self._watched(each), each.at is not None, places[number + 1 :])
            except (UsageError, AskFailed):
                continue
        return None

    def _watched(self, each: PathPlace) -> tuple[Wanted, Watch]:
        place, watch = self._watch(each)
        first = first_watch(self._view, place, watch)
        is_in_frame = each.at is not None
        rewrites = EqualWrites(self._view, place, first, only_certain=True) if is_in_frame else None
        return Wanted(place, first, rewrites), watch

    def _watch(self, place: PathPlace) -> tuple[PlaceExpression, Watch]:
        if place.at is None:
            parsed = parse_place(place.source)
            return parsed, watch_in_module(place.module, parsed)
        parsed = place_named(self._view, place.source, place.at)
        return parsed, replace(watch_at(self._view, parsed, place.at), stops=False)

    def _written(self, asked: _Asked, scans: Scans) -> LastWrite | None:
        write = self._write_of(asked.wanted, asked.watch, scans, is_in_frame=asked.is_in_frame)
        for each in asked.others:
            if write is not None:
                break
            try:
                wanted, watch = self._watched(each)
            except (UsageError, AskFailed):
                continue
            write = self._write_of(wanted, watch, OwnScans(self._view), is_in_frame=each.at is not None)
        return write

    def _write_of(self, wanted: Wanted, watch: Watch, scans: Scans, *, is_in_frame: bool) -> LastWrite | None:
        place, first = wanted.place, wanted.watch
        try:
            write = brief_write(self._view, place, watch, first, scans, and_rewrites=is_in_frame)
        except (UsageError, AskFailed):
            return None
        return write if write.moment is not None else None
