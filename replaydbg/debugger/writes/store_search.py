"""A search for the last store to a place after a change of its value: lines that began, examined the latest first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from replaydbg.classes import dataclass
from replaydbg.debugger.line_inputs import MOST_EVENTS
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import LastWrite
from replaydbg.debugger.source.place_expressions import names_read
from replaydbg.debugger.source.store_targets import StoreTarget
from replaydbg.debugger.writes.store_passages import SelectedPassage
from replaydbg.debugger.writes.storing_lines import BegunLine, StoringLine, is_with
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import NEXT, RunOrder
from replaydbg.engine.queries import GetHandledExceptions
from replaydbg.engine.reports import EndReport, Frame, Where
from replaydbg.errors import AskFailed

MOST_LOOKED_AT = 200
"""The most passages of lines that may have written which are checked, some 4 ms each."""

MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class EqualWrite:
    """The result of a search for an equal write."""

    why: LastWrite | None
    """The last write, of an equal value; None: there is none."""
    note: str
    """The part that remains unknown; empty: nothing."""


class StoreSearch(ABC):
    """The lines that may have stored to a place, and the examination of those that ran."""

    def __init__(self, view: ReplayView, lines: Mapping[tuple[str, int], StoringLine], *, is_binding: bool) -> None:
        """`lines`: by file and number. `is_binding`: the place is a variable."""
        self._view, self._lines, self._is_binding = view, dict(lines), is_binding
        self._seen = 0
        self._change: LastWrite | None = None
        self._left = MOST_LOOKED_AT
        self._best: tuple[int, BegunLine] | None = None
        self._unsure: dict[str, None] = {}
        self._is_whole = True
        self._running: set[int] = set()

    @abstractmethod
    def _matches(self, worker: EngineProcess, top: Frame, stores: tuple[StoreTarget, ...]) -> list[bool | None]:
        """For each of `stores` of the line that is about to run: whether it writes to the place; None: unknown."""

    # ---- the lines ----

    def _each_at(self, selected: list[SelectedPassage], latest: int = 0) -> Iterator[BegunLine]:
        """Yield the passages at these lines, the latest first, up to the limit of examined passages.

        `latest`: the count of a passage that is examined whatever the limit.
        """
        for each in reversed(selected):
            line = self._lines.get((each.file, each.line))
            if line is None or (line.is_never_sure and str(line) in self._unsure):
                continue  # more of them would add nothing to the answer
            if each.count != latest:
                if not self._left:
                    self._is_whole = False
                    return
                self._left -= 1
            with closing(self._view.travel.at(each.count)) as worker:
                yield from reversed(self._passages_at(worker, worker.look()))

    def _passages_at(self, worker: EngineProcess, where: Where) -> list[BegunLine]:
        """Return the line that is about to run, if it may store to the place."""
        top = where.stack[0] if where.stack else None
        line = self._lines.get((top.file, top.line)) if top is not None else None
        if top is None or line is None or (top.function.endswith(">") and top.function != "<module>"):
            return []
        answer = self._matches(worker, top, line.stores)
        pairs = zip(line.stores, answer, strict=True)
        return [
            BegunLine(where.count, line, top, where.lane, bool(is_meant) and store.is_sure, store)
            for store, is_meant in pairs
            if is_meant is not False
        ]

    # ---- whether it stored ----

    def _takes(self, passage: BegunLine) -> bool:
        """Whether a passage stored after the change; the one that did it last is kept."""
        if not passage.is_sure and str(passage.line) in self._unsure:
            return False
        done = self._done(passage)
        if done is None or (done and not passage.is_sure):
            self._unsure[str(passage.line)] = None
            return False
        if done and (self._best is None or done > self._best[0]):
            self._best = (done, passage)
        return bool(done)

    def _done(self, passage: BegunLine) -> int | None:
        """Return the count of the line before which it had stored; 0: it did not; None: it may have."""
        here = self._view.here.count
        with closing(self._view.travel.at(passage.count)) as worker:
            handled = self._handled(worker)
            where = worker.run(RunOrder(rule=NEXT, lane=passage.lane, until=here), idle=self._view.travel.idle)
            if isinstance(where, EndReport) or where.count <= self._seen - (passage.count >= self._seen):
                return 0
            top = where.stack[0] if where.stack else None
            is_same = top is not None and top.started == passage.top.started and where.lane == passage.lane
            if where.why != "rule" and self._is_on(worker, where, passage):
                self._running.add(passage.count)
                return 0
            if passage.store.body[0]:
                first, last = passage.store.body
                return where.count if is_same and top is not None and first <= top.line <= last else 0
            if not self._has_raised(passage, where.count):
                return where.count
            if is_same and top is not None and is_with(self._view.source_line(top.file, top.line)):
                return None
            now = self._handled(worker) if where.why == "rule" else handled
            if now is None or handled is None:
                return None
            return where.count if now == handled else 0

    def _handled(self, worker: EngineProcess) -> tuple[tuple[str, str], ...] | None:
        """Return the exceptions that are being handled; None: unknown."""
        try:
            return worker.ask(GetHandledExceptions(), idle=self._view.travel.idle)
        except AskFailed:
            return None

    def _is_on(self, worker: EngineProcess, where: Where, passage: BegunLine) -> bool:
        """Whether it still runs."""
        if passage.store.may_wait:
            return True  # a suspended generator has no frame on a stack
        stack = worker.stack(passage.lane)
        return any(each.started == passage.top.started and each.last == passage.count for each in stack)

    def _has_raised(self, passage: BegunLine, until: int) -> bool:
        raised = self._view.index.raised
        at = bisect_left(raised, passage.count, key=lambda each: each.count)
        while at < len(raised) and raised[at].count < until:
            if raised[at].lane == passage.lane:
                return True
            at += 1
        return False

    # ---- the answer ----

    def _write_of(self) -> LastWrite | None:
        if self._best is None or self._change is None:
            return None
        done, passage = self._best
        source = self._view.source_line(passage.line.file, passage.line.number)
        return replace(
            self._change,
            count=passage.count,
            moment=self._view.index.moment(passage.count),
            file=passage.line.file,
            line=passage.line.number,
            function=passage.line.function,
            lane=passage.lane,
            source=source,
            before=self._change.after,
            is_argument=False,
            events=tuple(self._view.index.events_between(passage.count, done))[-MOST_EVENTS:],
            names=names_read(source, self._view.sources.text(passage.line.file)),
            is_binding=self._is_binding,
            is_equal=True,
            changed=self._change,
            content=None,
        )

    def _note(self) -> str:
        named = ", ".join(list(self._unsure)[:MOST_NAMED])
        if self._unsure:
            return f"an equal value may have been written later by {named}" + (
                " and others" if len(self._unsure) > MOST_NAMED else ""
            )
        return "" if self._is_whole else f"more than {MOST_LOOKED_AT} lines may have written an equal value later"
