"""The last write of a value before the current position, found backward from checkpoint to checkpoint."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Protocol

from replaydbg.classes import dataclass
from replaydbg.debugger.frame_queries import At
from replaydbg.debugger.line_inputs import MOST_EVENTS
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import LastWrite, Origin, PartChange
from replaydbg.debugger.source.place_expressions import PlaceExpression, names_read, parse_place
from replaydbg.debugger.writes.deep_changes import changed_parts, deeper_change_note
from replaydbg.debugger.writes.equal_writes import EqualWrites
from replaydbg.debugger.writes.moved_items import moved_item
from replaydbg.debugger.writes.store_search import EqualWrite
from replaydbg.debugger.writes.unknown_names import hint_of
from replaydbg.debugger.writes.value_origins import origins_of
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import PathStep, RunOrder, Watch
from replaydbg.engine.reports import EndReport, Frame, Where
from replaydbg.engine.scan import Scanned, whereabouts
from replaydbg.errors import UsageError

# A variable of an outer function: all functions that have it share its cell.
IN_CELL = (PathStep(attribute="cell_contents"),)


def why(view: ReplayView, expression: str, at: At, *, with_origins: bool = True) -> LastWrite:
    """Return the last write of the value that `expression` names in a frame here.

    For an attribute or item it is the last write into the same object, under whatever name. For a variable it is the
    binding, or the last change of the object since, whichever is later; if an older object was only given another
    name, or is an attribute of the class, `content` has its last change. `with_origins`: also search for what the value
    was made of.
    """
    place = place_named(view, expression, at)
    change = _why(view, place, at)
    later = EqualWrite(None, "")
    if change.rewrites is not None and change.seen:
        later = change.rewrites.since(change.seen, change.why)
    watch = watch_at(view, place, at)
    inside = deeper_change_note(view, place, watch, change.seen, view.here.count) if change.seen else ""
    notes = (inside or view.ask.opaque_content_note(place, at), later.note)
    answer = later.why or change.why
    note = "; ".join(each for each in notes if each)
    if not with_origins or answer.moved is not None:
        return replace(answer, note=note)
    origins = origins_of(view, place, answer, watch.started, 0 if later.why is not None else change.seen)
    return replace(answer, note=note, origins=origins.found, unknown=origins.unknown)


def why_in_module(view: ReplayView, module: str, expression: str) -> LastWrite:
    """Return the last write of what `expression` names among the variables of a module, by the module's name."""
    place = parse_place(expression)
    return _change(view, place, watch_in_module(module, place), OwnScans(view), and_rewrites=False).why


def brief_write(
    view: ReplayView, place: PlaceExpression, watch: Watch, first: Watch, scans: Scans, *, and_rewrites: bool
) -> LastWrite:
    """Return which line wrote a value last, as `why` does, without the values before and after it.

    `watch` is the watch for the place here, and `first` what is watched first for it; `and_rewrites`: also find writes
    of an equal value.
    """
    change = _change_of(view, place, watch, first, scans, and_rewrites=and_rewrites, is_brief=True)
    later = EqualWrite(None, "")
    if change.rewrites is not None and change.seen:
        later = change.rewrites.since(change.seen, change.why)
    return later.why or change.why


def watch_in_module(module: str, place: PlaceExpression) -> Watch:
    """Return the watch for a place that begins with a variable of a module."""
    return Watch(place.name, module=module, steps=place.steps, stops=False)


def first_watch(view: ReplayView, place: PlaceExpression, watch: Watch) -> Watch:
    """Return what is watched first for a place: the object that has the value here, if one has it.

    Raises UsageError if the place does not exist.
    """
    if place.steps:
        owner = view.cursor.locate(replace(watch, steps=place.steps[:-1]))
        if not owner[0]:
            raise UsageError(f"{place.source!r} cannot be tracked: it does not exist.")
        return Watch("", object=owner, steps=place.steps[-1:], stops=False)
    if watch.is_cell:
        return Watch("", object=view.cursor.locate(watch), steps=IN_CELL, stops=False)
    return watch


class Scans(Protocol):
    """Runs over the stretches before here, backwards, while a value is watched."""

    def back(
        self, place: PlaceExpression, watch: Watch, *, and_rewrites: bool
    ) -> tuple[EqualWrites | None, Generator[Scanned]]:
        """Return the results by stretch, the latest first, and the search for equal writes, if one is wanted."""

    def lies(self, watch: Watch) -> tuple[int, int]:
        """Return the addresses of the watched object here: see `scan.whereabouts`."""


class OwnScans:
    """Scans for one value alone."""

    def __init__(self, view: ReplayView) -> None:
        self._view = view

    def back(
        self, place: PlaceExpression, watch: Watch, *, and_rewrites: bool
    ) -> tuple[EqualWrites | None, Generator[Scanned]]:
        """See Scans."""
        rewrites = EqualWrites(self._view, place, watch) if and_rewrites else None
        order = RunOrder(watch=watch, breaks=rewrites.breaks if rewrites is not None else ())
        return rewrites, self._view.travel.scans_back(self._view.here.count, order)

    def lies(self, watch: Watch) -> tuple[int, int]:
        """See Scans."""
        with closing(self._view.travel.at(self._view.here.count)) as worker:
            (found,) = whereabouts(worker, [watch])
        return found


@dataclass(frozen=True, slots=True)
class _LastChange:
    """The last change of a value."""

    why: LastWrite
    seen: int
    """The line at which it was seen; 0: there is none."""
    rewrites: EqualWrites | None
    """The search for later writes of an equal value; None: it was not requested."""


def _change(view: ReplayView, place: PlaceExpression, watch: Watch, scans: Scans, *, and_rewrites: bool) -> _LastChange:
    """Return the last change of a value; of an attribute or an item in the very object that has it here."""
    return _change_of(view, place, watch, first_watch(view, place, watch), scans, and_rewrites=and_rewrites)


def _change_of(
    view: ReplayView,
    place: PlaceExpression,
    watch: Watch,
    first: Watch,
    scans: Scans,
    *,
    and_rewrites: bool,
    is_brief: bool = False,
) -> _LastChange:
    try:
        return _last_write(view, place, first, scans, and_rewrites=and_rewrites, is_brief=is_brief)
    except AddressMismatch:
        other = replace(watch, is_cell=False)
        return _last_write(view, place, other, scans, and_rewrites=and_rewrites, is_brief=is_brief)


def _why(view: ReplayView, place: PlaceExpression, at: At) -> _LastChange:
    watch = replace(watch_at(view, place, at), stops=False)
    found = _change(view, place, watch, OwnScans(view), and_rewrites=True)
    # An attribute that was not there before may have been given an older object, or be the class's.
    is_new_name = not found.why.before if place.steps else found.why.is_binding and not watch.is_cell
    value = view.cursor.locate(watch) if is_new_name else (0, 0)
    if not value[0] or not view.ask.is_mutable(place, at):
        return found
    try:
        content = _last_write(view, place, Watch("", object=value, stops=False), OwnScans(view)).why
    except AddressMismatch:
        return found
    is_other = content.count and content.count != found.why.count
    return replace(found, why=replace(found.why, content=content if is_other else None))


class AddressMismatch(Exception):
    """The watched object has different addresses in two clones."""


def _last_write(
    view: ReplayView,
    place: PlaceExpression,
    watch: Watch,
    scans: Scans,
    *,
    and_rewrites: bool = False,
    is_brief: bool = False,
) -> _LastChange:
    if view.here.moment.point and (now := _written_by_this_line(view, place, watch)) is not None:
        return _LastChange(now, 0, None)
    lies = scans.lies(watch)
    # Inside a line it may be younger than the line.
    if watch.object[0] and not lies[0] and not view.here.moment.point:
        raise AddressMismatch
    rewrites, stretches = scans.back(place, watch, and_rewrites=and_rewrites)
    with closing(stretches):
        for scanned in stretches:
            # An object is known by its address: that must be the same on both sides of a checkpoint.
            if scanned.ends != (lies,):
                raise AddressMismatch
            if rewrites is not None:
                rewrites.pass_over(scanned.where)
            if scanned.where.changes.count:
                answer = _written(view, place, watch, scanned.where, is_brief=is_brief)
                return _LastChange(answer, scanned.where.changes.last_seen, rewrites)
            (lies,) = scanned.begins
    if watch.steps and not view.cursor.locate(watch)[0]:
        raise _never_existed(place)
    return _LastChange(LastWrite(place.source, 0, None, "", 0, "", 0, "", "", "", False, (), ()), 0, rewrites)


def _never_existed(place: PlaceExpression) -> UsageError:
    if place.steps[-1].entry is not None:
        reason = "the dictionary does not have this key now"
    else:
        reason = "it does not exist, and never did"
    return UsageError(f"{place.source!r} cannot be tracked: {reason}.")


def _written_by_this_line(view: ReplayView, place: PlaceExpression, watch: Watch) -> LastWrite | None:
    """Return the write by the line that the position is inside; None: it had not written yet."""
    count, point = view.here.count, view.here.moment.point
    with closing(view.travel.at(count)) as writer, closing(writer.clone()) as runner:
        where = runner.run(RunOrder(until=count, point=point, watch=watch), idle=view.travel.idle)
        if isinstance(where, EndReport) or not where.changes.count:
            return None
        top = where.stack[0]
        before, after = text_at(view, writer, watch), text_at(view, runner, watch)
        is_binding = not watch.object[0] and writer.locate(watch) != runner.locate(watch)
        parts = changed_parts(view, writer, runner, watch, before, after)
    written = where.changes.last_written
    return _answer(
        view,
        place,
        top,
        written,
        lane=where.lane,
        before=before,
        after=after,
        events=tuple(each for each in view.index.events_between(written, count + 1) if each <= where.event),
        is_binding=is_binding,
        parts=parts,
    )


def _answer(
    view: ReplayView,
    place: PlaceExpression,
    line: Frame,
    written: int,
    *,
    lane: int,
    before: str,
    after: str,
    events: Sequence[int],
    is_argument: bool = False,
    is_binding: bool,
    parts: tuple[PartChange, ...],
) -> LastWrite:
    """Return the answer for a write by `line`, which began as line `written` of the run."""
    source = view.source_line(line.file, line.line)
    return LastWrite(
        expression=place.source,
        count=written,
        moment=view.index.moment(written),
        file=line.file,
        line=line.line,
        function=line.function,
        lane=lane,
        source=source,
        before=before,
        after=after,
        is_argument=is_argument,
        events=tuple(events)[-MOST_EVENTS:],
        names=names_read(source, view.sources.text(line.file)),
        is_binding=is_binding,
        parts=parts,
    )


def watch_of(view: ReplayView, expression: str, at: At) -> Watch:
    """Return the watch for the value that `expression` names, whatever object has it."""
    return watch_at(view, place_named(view, expression, at), at)


def place_named(view: ReplayView, expression: str, at: At) -> PlaceExpression:
    """Return what an expression names in a frame here; the items of it are those that their indices mean here."""
    place = parse_place(expression, view.ask.indices(at))
    home = view.ask.home_of(place, at) if place.steps else None
    if home is not None and home.kind == "module":
        place = place.in_module(home.step)
    return place.joined(view.ask.rows(place, at)) if place.has_items_of_items else place


def watch_at(view: ReplayView, place: PlaceExpression, at: At) -> Watch:
    """Return the watch for a place, whatever object has it. Raises UsageError."""
    if place.module:
        if place.steps:
            view.ask.check_steps(place, at)
        return Watch(place.name, module=place.module, steps=place.steps)
    home = view.ask.home_of(place, at)
    if home.kind == "absent":
        hint = hint_of(view, place.name, at)
        raise UsageError(f"{place.source!r} cannot be tracked: no variable {place.name} here{hint}.")
    if home.kind == "lost":
        raise UsageError(f"{place.source!r} cannot be tracked: {home.detail}.")
    if place.steps:
        view.ask.check_steps(place, at)
    if home.kind == "global":
        return Watch(place.name, module=home.detail, steps=place.steps)
    stack = view.ask.stack(at.lane)
    if at.frame >= len(stack):
        raise UsageError(f"No frame {at.frame} here.")
    here = stack[at.frame]
    is_cell = home.is_cell and not place.steps
    return Watch(place.name, started=here.started, first_line=here.first_line, steps=place.steps, is_cell=is_cell)


def _written(
    view: ReplayView, place: PlaceExpression, watch: Watch, where: Where, *, is_brief: bool = False
) -> LastWrite:
    changes = where.changes
    close = view.travel.look_closely(changes.last_seen, replace(watch, stops=True, looks_at_returns=True))
    written = close.changes.first_written if close.changes.count else changes.last_written
    # A value that exists at a function's first line came with the call.
    is_argument = bool(not watch.module and not watch.object[0] and changes.last_seen == watch.started)
    writer = view.travel.at(written)
    reader = view.travel.at(changes.last_seen)
    try:
        stood = writer.look()
        line = _frame_that_ran(stood, watch, is_argument)
        # Before an object was made, there may have been another one in its place.
        is_new = is_argument or bool(changes.born)
        before, after, is_binding = "", "", False
        parts: tuple[PartChange, ...] = ()
        if is_brief:
            existed = bool(watch.steps) and any(
                each.locate(watch)[0] for each in ((reader,) if is_new else (reader, writer))
            )
        else:
            before = "" if is_new else text_at(view, writer, watch)
            after = text_at(view, reader, watch)
            existed = bool(before or after)
            parts = changed_parts(view, writer, reader, watch, before, after)
            is_binding = is_argument or (not watch.object[0] and writer.locate(watch) != reader.locate(watch))
        if not existed and watch.steps:
            raise _never_existed(place)
        moved = None if is_brief or is_new else moved_item(view, place, watch, writer, reader)
    finally:
        writer.kill()
        reader.kill()
    if is_argument and line.last:
        written = line.last
    answer = _answer(
        view,
        place,
        line,
        written,
        lane=stood.lane,
        before=before,
        after=after,
        events=view.index.events_between(written, changes.last_seen),
        is_argument=is_argument,
        is_binding=is_binding,
        parts=parts,
    )
    came_from = (Origin(moved.source, "place", True),) if moved is not None and moved.source else ()
    return replace(answer, moved=moved, origins=came_from)


def _frame_that_ran(stood: Where, watch: Watch, is_argument: bool) -> Frame:
    """Return the frame of the line that wrote; it passed an argument to the function whose variable is watched.

    That function has begun already if the variable itself is watched, and not yet if an attribute or item of it is.
    """
    top = stood.stack[0]
    is_inside = (top.started, top.first_line) == (watch.started, watch.first_line)
    callers = [each for each in stood.stack[1:] if each.last]
    return callers[0] if is_argument and is_inside and callers else top


def text_at(view: ReplayView, worker: EngineProcess, watch: Watch) -> str:
    """Return the value as text; empty: it does not exist."""
    (found,) = worker.locate_each([watch])
    item = watch.steps[-1].item if found.is_part else None
    return view.ask.object_text(worker, found.object, item) if found.object[0] else ""
