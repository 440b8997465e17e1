"""The calls of functions over the run as bars, for a flame graph over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from replaydbg.classes import dataclass
from replaydbg.debugger import Session
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.debugger.source.source_files import is_library
from replaydbg.engine.reports import CalledCode, FunctionCall
from replaydbg.pages.facts.page_facts import CallBar, CallChart, CalledFunction, CallStrip
from replaydbg.render import texts

MOST_LINES = 5_000_000
"""Lines of a run up to which calls are collected: it has to be run again as a whole."""
BINS = 500
"""Stretches of the run that can be told apart on a page."""
MOST_DEPTH = 30
MOST_STRIPS = 6
MOST_BARS = 400
MOST_FUNCTIONS = 12


@dataclass(slots=True)
class _Joined:
    """Calls that are drawn as one bar: one, or several short ones in a row."""

    begun: int
    ended: int
    calls: list[FunctionCall]


def call_chart(session: Session, first: int, last: int, names: Mapping[int, str]) -> CallChart | None:
    """Return the calls that began between two lines of the run, by their counts.

    `names`: of threads, by their numbers. None: there are none, or the run has too many lines. Raises EngineLost.
    """
    if not 0 < last - first <= MOST_LINES:
        return None
    found = session.run.each_call(first, last)
    if found.is_cut:
        found = session.run.each_call(first, last, own=OwnCode())
    if not found.each:
        return None
    chart = _Chart(session, first, last)
    threads = len({each.lane for each in found.each})
    note = ""
    if found.is_cut:
        note = f"There are more than {len(found.each):,} calls of your own code: later ones are not on this page."
    return CallChart(
        first,
        last,
        tuple(chart.strips(found.each, names)),
        max(threads - MOST_STRIPS, 0),
        tuple(chart.functions(found.each)),
        len(found.each),
        note,
    )


class _Chart:
    def __init__(self, session: Session, first: int, last: int) -> None:
        self._session, self._first, self._last = session, first, last

    def _extent(self, call: FunctionCall) -> tuple[int, int]:
        return call.begun, max(min(call.ended or self._last, self._last), call.begun)

    def strips(self, calls: Sequence[FunctionCall], names: Mapping[int, str]) -> Iterator[CallStrip]:
        """Yield the threads in the order in which they began to call, each with its bars."""
        levels = _levels(calls)
        deepest: dict[int, int] = {}
        for lane, depth in levels:
            deepest[lane] = max(deepest.get(lane, 0), depth + 1)
        lanes = list(deepest)[:MOST_STRIPS]
        shown = {at: level for at, level in levels.items() if at[0] in lanes and at[1] < MOST_DEPTH}
        gap = max((self._last - self._first) // BINS, 1)
        # Each level has one bar in the end, and there are not so many levels.
        joined = self._all_joined(shown, gap)
        while sum(map(len, joined.values())) > MOST_BARS:
            gap *= 2
            joined = self._all_joined(shown, gap)
        for lane in lanes:
            bars = [self._bar(at[1], each) for at, level in joined.items() if at[0] == lane for each in level]
            yield CallStrip(names.get(lane, f"thread {lane}"), tuple(bars), deepest[lane])

    def _all_joined(
        self, levels: Mapping[tuple[int, int], list[FunctionCall]], gap: int
    ) -> dict[tuple[int, int], list[_Joined]]:
        return {at: self._joined(level, gap) for at, level in levels.items()}

    def _joined(self, calls: Iterable[FunctionCall], gap: int) -> list[_Joined]:
        found: list[_Joined] = []
        is_short = False
        for call in calls:
            begun, ended = self._extent(call)
            was_short, is_short = is_short, ended - begun < gap
            if found and was_short and is_short and begun - found[-1].ended < gap:
                found[-1].ended = max(found[-1].ended, ended)
                found[-1].calls.append(call)
            else:
                found.append(_Joined(begun, ended, [call]))
        return found

    def _bar(self, depth: int, joined: _Joined) -> CallBar:
        codes = {each.code for each in joined.calls}
        code = joined.calls[0].code
        several = f" \N{MULTIPLICATION SIGN} {len(joined.calls):,}" if len(joined.calls) > 1 else ""
        name = f"{code.function}{several}" if len(codes) == 1 else f"{len(joined.calls):,} calls"
        moment = texts.moment_text(self._session.index.moment(joined.begun))
        lines = max(joined.ended - joined.begun, 1)
        place = f" {self._place(code)}" if len(codes) == 1 else ""
        title = f"{name}{place} at {moment}, {lines:,} line{'s' if lines != 1 else ''}"
        return CallBar(depth, joined.begun, joined.ended, name, title, all(is_library(each.file) for each in codes))

    def _place(self, code: CalledCode) -> str:
        return f"{texts.file_text(self._session, code.file)}:{code.line}"

    def functions(self, calls: Sequence[FunctionCall]) -> Iterator[CalledFunction]:
        """Yield the functions that were on the stack for most lines; a call within one of the same counts once."""
        lines: dict[CalledCode, int] = {}
        numbers: dict[CalledCode, int] = {}
        ends: dict[tuple[int, CalledCode], int] = {}
        for call in calls:
            begun, ended = self._extent(call)
            counted = max(begun, ends.get((call.lane, call.code), 0))
            lines[call.code] = lines.get(call.code, 0) + max(ended - counted, 0)
            numbers[call.code] = numbers.get(call.code, 0) + (not call.goes_on)
            ends[call.lane, call.code] = max(counted, ended)
        for code in sorted(lines, key=lambda each: -lines[each])[:MOST_FUNCTIONS]:
            yield CalledFunction(code.function, self._place(code), numbers[code], lines[code])


def _levels(calls: Sequence[FunctionCall]) -> dict[tuple[int, int], list[FunctionCall]]:
    """Return the calls by thread and depth, in their order."""
    depths: list[int] = []
    found: dict[tuple[int, int], list[FunctionCall]] = {}
    for call in calls:
        depths.append(depths[call.parent - 1] + 1 if call.parent else 0)
        found.setdefault((call.lane, depths[-1]), []).append(call)
    return found
