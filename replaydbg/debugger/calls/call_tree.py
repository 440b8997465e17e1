"""The calls of functions in a stretch of the run, as a tree: calls of one function in a row are one entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from replaydbg.classes import dataclass
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.engine.protocol import FINISH, MOST_CALLS, RunOrder
from replaydbg.engine.reports import CalledCode, Calls, EndReport, FunctionCall, Where


@dataclass(frozen=True, slots=True)
class CallEntry:
    """Calls of one function, one behind the other, by the same caller or by one entry of callers."""

    code: CalledCode
    lane: int
    goes_on: bool
    """Whether it is a generator or a coroutine that had waited, and goes on."""
    count: int
    """How many calls; that one goes on counts as well."""
    begun: int
    """The count of lines at the first one's first line."""
    ended: int
    """The same at the last one's end; 0: it has not ended."""
    entries: tuple[CallEntry, ...]
    """The calls in them."""


@dataclass(frozen=True, slots=True)
class CallTree:
    """The calls of a stretch of the run."""

    entries: tuple[CallEntry, ...]
    calls: int
    """How many calls there are in all."""
    is_cut: bool
    """Whether there were more, or deeper ones."""


def call_tree(view: ReplayView, first: int, last: int, own: OwnCode | None) -> CallTree:
    """Return the calls that begin between the lines `first` and `last` of the run, or until the function returns.

    `last` = 0: until the function returns whose line is about to run at `first`. Raises EngineLost.
    """
    calls = calls_between(view, first, last or _end_of_function(view, first), own)
    return CallTree(_merged(calls.each), len(calls.each), calls.is_cut)


def calls_between(view: ReplayView, first: int, last: int, own: OwnCode | None) -> Calls:
    """Return each call that begins between the lines `first` and `last`; with `own`, of own code. Raises EngineLost."""
    patterns = own.patterns if own is not None else None
    where = _run(view, first, RunOrder(until=last, own=patterns, most_calls=MOST_CALLS))
    return where.calls if where is not None else Calls()


def _end_of_function(view: ReplayView, first: int) -> int:
    lane = view.look_at(first).lane
    where = _run(view, first, RunOrder(until=view.index.total, rule=FINISH, lane=lane))
    return where.count if where is not None else view.index.total


def _run(view: ReplayView, first: int, order: RunOrder) -> Where | None:
    worker = view.travel.at(first)
    try:
        where = worker.run(order, idle=view.travel.idle)
    finally:
        worker.kill()
    return None if isinstance(where, EndReport) else where


def _merged(calls: Sequence[FunctionCall]) -> tuple[CallEntry, ...]:
    """Return the tree without recursion: calls can be nested as deeply as the program's stack is."""
    below: dict[int, list[int]] = {}
    for number, call in enumerate(calls, 1):
        below.setdefault(call.parent, []).append(number)
    made: dict[tuple[int, ...], tuple[CallEntry, ...]] = {}
    pending: list[tuple[tuple[int, ...], bool]] = [((0,), False)]
    groups: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    while pending:
        parents, is_known = pending.pop()
        if is_known:
            made[parents] = tuple(_entry(calls, group, made[group]) for group in groups.pop(parents))
            continue
        groups[parents] = list(_in_a_row(calls, (each for parent in parents for each in below.get(parent, ()))))
        pending.append((parents, True))
        pending += [(group, False) for group in groups[parents]]
    return made[(0,)]


def _in_a_row(calls: Sequence[FunctionCall], numbers: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Yield the calls of one function and thread that follow one another, by their numbers."""
    row: list[int] = []
    for number in numbers:
        call = calls[number - 1]
        if row and (calls[row[0] - 1].code, calls[row[0] - 1].lane) != (call.code, call.lane):
            yield tuple(row)
            row = []
        row.append(number)
    if row:
        yield tuple(row)


def _entry(calls: Sequence[FunctionCall], group: tuple[int, ...], entries: tuple[CallEntry, ...]) -> CallEntry:
    first, last = calls[group[0] - 1], calls[group[-1] - 1]
    return CallEntry(first.code, first.lane, first.goes_on, len(group), first.begun, last.ended, entries)
