"""History of one object of a snapshot: since when it exists, and who wrote it last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from replaydbg.classes import dataclass
from replaydbg.debugger.frame_queries import At
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session import Session
from replaydbg.debugger.session_results import Frame, LastWrite, Moment
from replaydbg.debugger.writes.last_write import why_in_module
from replaydbg.errors import AskFailed, UsageError
from replaydbg.heap.limits import Which
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.walks.graph_walks import UNREACHED
from replaydbg.heap.walks.object_matching import match

PROBES = 8
"""Snapshots of one round of the search for where an object came to be. Each round divides what is left by them; twice
as many would save one round of eight, and double the work of the others."""

_IN_FRAME = re.compile(r"(?P<path>.*) in thread (?P<lane>\d+)[^:]*: (?P<function>.*)\(\) line (?P<line>\d+)\Z", re.S)


class CodePlace(NamedTuple):
    """A line."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Created:
    """Since when an object is there."""

    count: int
    """The line that was about to run when it was seen first."""
    moment: Moment
    made: int
    """The line before, which made it; 0: it existed at the first moment that was checked."""
    place: CodePlace | None
    """That line; None: no Python code ran."""
    returned_to: CodePlace | None = None
    """The line of the caller that may have made it just as well, after the call of which that line was the last."""


def holdings(session: Session, moments: Sequence[str | int | Moment], *, which: Which = "mine") -> list[Holding]:
    """Return the heap at each of `moments`, labelled with event and step. Raises NoSuchMoment, EngineLost."""
    found = []
    for moment, snapshot in zip(moments, session.heap.at_each(moments, which=which), strict=True):
        at = session.index.moment(session.count_of(moment))
        name = str(moment) if str(moment).startswith("@") else ""
        taken = replace(snapshot.taken, event=at.event, step=at.step, name=name)
        found.append(Holding(replace(snapshot, taken=taken)))
    return found


def spread(session: Session, number: int) -> list[int]:
    """Return the counts of `number` lines, evenly spread over the program's own run, its end the last."""
    first, last = session.first_own, session.index.end
    return sorted({first + (last - first) * step // number for step in range(1, number + 1)})


def created(session: Session, address: int, count: int, *, which: Which = "mine") -> Created | None:
    """Return since when the object at `address` in the snapshot of `count` can be reached without a break.

    None if it does not exist. Raises EngineLost and Cancelled.
    """
    first, last = session.first_own, count
    if first >= last:
        return None
    is_there = False
    while last - first > 1:
        counts = sorted({first + (last - first) * step // PROBES for step in range(PROBES + 1)} | {count})
        present = _present(session, counts, address, which)
        if not present[-1]:
            return None
        is_there = present[0]
        if is_there:
            break
        # The last gap is what counts: an object may be out of reach for a while.
        place = max(place for place, seen in enumerate(present[:-1]) if not seen)
        first, last = counts[place], counts[place + 1]
    seen = first if is_there else last
    return line_before(session, seen, 0 if is_there else first)


def _present(session: Session, counts: Sequence[int], address: int, which: Which) -> list[bool]:
    """Return at which moments the object at `address` in the last snapshot can be reached."""
    snapshots = session.heap.at_each(counts, which=which)
    after = snapshots[-1]
    node = after.find(address)
    if node is None:
        return [False] * len(counts)
    kernel = Holding(after).kernel
    matchings = (match(each, after, kernel, by_identity=True) for each in snapshots[:-1])
    return [*(each.to_before[node] != UNREACHED for each in matchings), True]


def line_before(session: Session, seen: int, made: int) -> Created:
    """Return the line that made what is seen at the count `seen` and did not exist before the line `made`.

    `made` may be 0: it existed at the first moment that was checked.
    """
    moment = session.index.moment(seen)
    stack = _stack_at(session, seen)
    if made and len(stack) > 1 and stack[0].started == seen and stack[1].last:
        # It came with a call: the caller's line made it, though other lines ran since that began.
        return Created(seen, moment, stack[1].last, _place_of(stack[1]))
    before = _stack_at(session, made) if made else stack
    if not before:
        return Created(seen, moment, made, None)
    has_returned = bool(made and stack) and before[0].started not in [each.started for each in stack]
    caller = _stack_at(session, stack[0].before) if has_returned and stack[0].before else ()
    return Created(seen, moment, made, _place_of(before[0]), _place_of(caller[0]) if caller else None)


def _place_of(frame: Frame) -> CodePlace:
    return CodePlace(frame.file, frame.line, frame.function)


def _stack_at(session: Session, count: int) -> tuple[Frame, ...]:
    worker = session.travel.at(count)
    try:
        return worker.look().stack
    finally:
        worker.kill()


@dataclass(frozen=True, slots=True)
class PathPlace:
    """A place that a path of a diff may mean: an expression in a frame, or in the variables of a module."""

    source: str
    at: At | None
    """The frame; None: the expression is about the module."""
    module: str = ""


def last_written(session: Session, path: str, modules: Iterable[str] = ()) -> LastWrite | None:
    """Return the last write of the value at `path`, as a diff names it; None: unknown.

    `modules`: the names of those that paths may begin at.
    """
    for each in places_of(session, path, modules):
        try:
            if each.at is None:
                session.work.begin(f"searching for the last write of {each.module}.{each.source}")
                write = why_in_module(session, each.module, each.source)
            else:
                write = session.run.why(each.source, each.at.frame, lane=each.at.lane)
        except (UsageError, AskFailed):
            # Not found so, or it cannot be followed: computed, or in an object written in C.
            continue
        if write.moment is not None:
            return write
    return None


def places_of(view: ReplayView, path: str, modules: Iterable[str]) -> Iterator[PathPlace]:
    """Yield the places that `path` may mean, the most likely first."""
    found = _place(view, path)
    if found is not None:
        yield PathPlace(*found)
    for module in sorted(modules, key=len, reverse=True):
        if path.startswith(f"{module}."):
            yield PathPlace(path.removeprefix(f"{module}."), None, module)


def _place(view: ReplayView, path: str) -> tuple[str, At] | None:
    """Return the expression and the frame that a path refers to."""
    match_ = _IN_FRAME.match(path)
    lane = int(match_["lane"]) if match_ else 0
    running = view.here.lane
    stack = view.ask.stack(lane)
    for number, frame in reversed(list(enumerate(stack))):
        name = frame.function.rpartition(".")[2]
        if match_ is None:
            is_meant = name == "<module>"
        else:
            is_meant = match_["function"] in (name, frame.function) and int(match_["line"]) == frame.line
        if is_meant:
            return match_["path"] if match_ else path, At(number, None if lane == running else lane)
    return None
