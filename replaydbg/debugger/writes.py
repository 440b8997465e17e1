"""Who wrote a value: its last change before here, found backwards from checkpoint to checkpoint; and all changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from replaydbg.debugger.paths import PlaceExpression, names_read, parse_place
from replaydbg.debugger.questions import At
from replaydbg.debugger.rewrites import Again, Rewrites
from replaydbg.debugger.taken import MOST_EVENTS
from replaydbg.debugger.values import Change, Why
from replaydbg.engine.messages import Frame, PathStep, Run, Watch, Where
from replaydbg.errors import UsageError

if TYPE_CHECKING:
    from replaydbg.debugger.session import Session
    from replaydbg.engine.worker import Worker

MOST_BIRTHS = 20_000
"""So many changes are passed over to find where an object came to be, some 0.1 ms each."""

# A variable of an outer function: all functions that have it share its cell.
_IN_CELL = (PathStep(attribute="cell_contents"),)


def why(session: Session, expression: str, at: At) -> Why:
    """Return the last write of the value that `expression` names in a frame here.

    Of an attribute or an item it is the last write into that very object, under whatever name. Of a variable it is
    when it was bound, or when the object changed since, whichever came last; where an older object was only given
    another name, `content` says when that changed.
    """
    place = _place(session, expression, at)
    change = _why(session, place, at)
    later = Again(None, "")
    if change.rewrites is not None and change.seen:
        later = change.rewrites.since(change.seen, change.why)
    notes = (session.unseen_content(place, at), later.note)
    return replace(later.why or change.why, note="; ".join(each for each in notes if each))


def why_in_module(session: Session, module: str, expression: str) -> Why:
    """Return the last write of what `expression` names among the variables of a module, by the module's name."""
    place = parse_place(expression)
    watch = Watch(place.name, module=module, steps=place.steps, stops=False)
    return (_into_owner(session, place, watch) if place.steps else _last_write(session, place, watch)).why


@dataclass(frozen=True, slots=True)
class _LastChange:
    """Where a value changed last."""

    why: Why
    seen: int
    """The line at which it was seen; 0: there is none."""
    rewrites: Rewrites | None
    """What may have written an equal value since; None: that was not asked for."""


def _into_owner(session: Session, place: PlaceExpression, watch: Watch, *, and_rewrites: bool = False) -> _LastChange:
    """Return the last write of an attribute or an item into the very object that has it here."""
    owner = session.cursor.locate(replace(watch, steps=place.steps[:-1]))
    if not owner[0]:
        raise UsageError(f"{place.source!r} cannot be followed: it is not there.")
    try:
        last = Watch("", object=owner, steps=place.steps[-1:], stops=False)
        return _last_write(session, place, last, and_rewrites=and_rewrites)
    except _Elsewhere:
        return _last_write(session, place, watch, and_rewrites=and_rewrites)


def _why(session: Session, place: PlaceExpression, at: At) -> _LastChange:
    watch = replace(_watch(session, place, at), stops=False)
    if place.steps:
        return _into_owner(session, place, watch, and_rewrites=True)
    if watch.is_cell:
        cell = session.cursor.locate(watch)
        try:
            of_cell = Watch("", object=cell, steps=_IN_CELL, stops=False)
            return _last_write(session, place, of_cell, and_rewrites=True)
        except _Elsewhere:
            return _last_write(session, place, replace(watch, is_cell=False), and_rewrites=True)
    found = _last_write(session, place, watch, and_rewrites=True)
    value = session.cursor.locate(watch)
    if not value[0] or not session.is_mutable(place, at) or not found.why.is_binding:
        return found
    try:
        content = _last_write(session, place, Watch("", object=value, stops=False)).why
    except _Elsewhere:
        return found
    is_other = content.count and content.count != found.why.count
    return replace(found, why=replace(found.why, content=content if is_other else None))


class _Elsewhere(Exception):
    """An object does not lie in one process of the session where it lies in another one."""


def _last_write(session: Session, place: PlaceExpression, watch: Watch, *, and_rewrites: bool = False) -> _LastChange:
    lies = session.cursor.locate(watch) if watch.object[0] else (0, 0)
    rewrites = Rewrites(session, place, watch) if and_rewrites else None
    order = Run(watch=watch, breaks=rewrites.breaks if rewrites is not None else ())
    with closing(session.travel.scans_back(session.here.count, order)) as scans:
        for scanned in scans:
            # An object is known by its address: that must be the same on both sides of a checkpoint.
            if scanned.ends != lies:
                raise _Elsewhere
            if rewrites is not None:
                rewrites.pass_over(scanned.where)
            if scanned.where.changes.count:
                told = _written(session, place, watch, scanned.where)
                return _LastChange(told, scanned.where.changes.last_seen, rewrites)
            lies = scanned.begins
    return _LastChange(Why(place.source, 0, None, "", 0, "", 0, "", "", "", False, (), ()), 0, rewrites)


def watch_of(session: Session, expression: str, at: At) -> Watch:
    """Return what is looked at to see changes of the value that `expression` names, whatever object it is of."""
    return _watch(session, _place(session, expression, at), at)


def history(session: Session, expression: str, at: At, most: int) -> Iterator[Change]:
    """Yield the changes of the value over the whole run.

    Of an attribute or an item that a function's variable leads to, it is that of the very object: the variable is there
    for one call only. So it is of a variable that functions share, which lies in a cell of its own.
    """
    place = _place(session, expression, at)
    watch = _watch(session, place, at)
    since = max(watch.started - 1, 1)
    is_shared = watch.is_cell
    owning, watch = replace(watch, steps=place.steps[:-1]), replace(watch, is_cell=False)
    if is_shared or (place.steps and not watch.module):
        owner = session.cursor.locate(owning)
        very_one = Watch("", object=owner, steps=place.steps[-1:] or _IN_CELL)
        born = _birth(session, very_one) if owner[0] else 0
        if born:
            watch, since = very_one, born
    worker = session.travel.at(since)
    try:
        for number in range(most):
            where = worker.run(Run(until=session.index.total, watch=watch), idle=session.travel.idle)
            if isinstance(where, dict) or not where.changes.count:
                return
            if watch.object[0] and number and where.changes.born and where.count > session.here.count:
                return  # another one, in the place of the one that is meant
            change = _change(session, worker, watch, where)
            is_gone = watch.object[0] and worker.locate(replace(watch, steps=())) != watch.object
            if is_shared and is_gone and not change.text:
                return  # the functions that have it have ended
            # The object itself comes before what it has.
            if number or change.text or not watch.object[0]:
                yield change
    finally:
        worker.kill()


def _birth(session: Session, watch: Watch) -> int:
    """Return the count of the line before which the object that `watch` begins at is not there yet; 0: not known."""
    worker = session.travel.at(1)
    since = 1
    try:
        for _ in range(MOST_BIRTHS):
            where = worker.run(Run(until=session.here.count, watch=watch), idle=session.travel.idle)
            if isinstance(where, dict):
                return 0
            if not where.changes.count:
                lies = worker.locate(replace(watch, steps=()))
                return since if lies == watch.object else 0
            if where.changes.born:
                since = max(where.count - 1, 1)
        return 0
    finally:
        worker.kill()


def _place(session: Session, expression: str, at: At) -> PlaceExpression:
    """Return what an expression names in a frame here; the items of it are those that their indices mean here."""
    return parse_place(expression, lambda index: session.text_of(index, at))


def _watch(session: Session, place: PlaceExpression, at: At) -> Watch:
    told = session.ask_about(at, "place", name=place.name)
    kind, detail = told
    if kind == "lost":
        raise UsageError(f"{place.source!r} cannot be followed: {detail}.")
    if place.steps:
        session.check_steps(place, at)
    if kind == "global":
        return Watch(place.name, module=detail, steps=place.steps)
    stack = session.stack(at.lane)
    if at.frame >= len(stack):
        raise UsageError(f"There is no frame {at.frame} here.")
    here = stack[at.frame]
    is_cell = bool(detail) and not place.steps
    return Watch(place.name, started=here.started, first_line=here.first_line, steps=place.steps, is_cell=is_cell)


def _written(session: Session, place: PlaceExpression, watch: Watch, where: Where) -> Why:
    changes = where.changes
    close = session.travel.look_closely(changes.last_seen, replace(watch, stops=True, looks_at_returns=True))
    written = close.changes.first_written if close.changes.count else changes.last_written
    # What is there at a function's first line came with the call.
    is_argument = bool(not watch.module and not watch.object[0] and changes.last_seen == watch.started)
    writer = session.travel.at(written)
    reader = session.travel.at(changes.last_seen)
    try:
        stood = writer.look()
        line = _frame_that_ran(stood, is_argument)
        # Before an object was made, there may have been another one in its place.
        before = "" if is_argument or changes.born else _text_at(session, writer, watch)
        after = _text_at(session, reader, watch)
        if not before and not after and watch.steps:
            raise UsageError(f"{place.source!r} cannot be followed: it is not there, and never was.")
        is_binding = is_argument or (not watch.object[0] and writer.locate(watch) != reader.locate(watch))
    finally:
        writer.kill()
        reader.kill()
    source = session.source_line(line.file, line.line)
    if is_argument and line.last:
        written = line.last
    return Why(
        expression=place.source,
        count=written,
        moment=session.index.moment(written),
        file=line.file,
        line=line.line,
        function=line.function,
        lane=stood.lane,
        source=source,
        before=before,
        after=after,
        is_argument=is_argument,
        events=tuple(session.index.events_between(written, changes.last_seen))[-MOST_EVENTS:],
        names=names_read(source),
        is_binding=is_binding,
    )


def _frame_that_ran(stood: Where, is_argument: bool) -> Frame:
    callers = [each for each in stood.stack[1:] if each.last]
    return callers[0] if is_argument and callers else stood.stack[0]


def _change(session: Session, worker: Worker, watch: Watch, where: Where) -> Change:
    changes = where.changes
    close = session.travel.look_closely(changes.first_seen, replace(watch, looks_at_returns=True))
    written = close.changes.first_written if close.changes.count else changes.first_written
    # Another lane may be the first to see it.
    stood = session.look_at(written)
    line = stood.stack[0]
    return Change(
        count=written,
        moment=session.index.moment(written),
        file=line.file,
        line=line.line,
        function=line.function,
        lane=stood.lane,
        text=_text_at(session, worker, watch),
    )


def _text_at(session: Session, worker: Worker, watch: Watch) -> str:
    """Return the value as text; empty: it is not there."""
    found = worker.locate(watch)
    return session.object_text(worker, found) if found[0] else ""
