"""Bisection of a run: a search over the checkpoints, then over the lines between two of them.

Throw-away copies probe the checkpoints, several at once. Between two checkpoints one process runs and evaluates the
predicate at each line (replaydbg/native/engine/judge.c), which takes a microsecond per line and no copy of a process;
fresh copies confirm what it finds. If the predicate is too slow for that, lines are bisected, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Self

from replaydbg.bisect.search import Answer, Found, search
from replaydbg.debugger.bisection.bisect_results import Bisected, Probe, VerdictChange
from replaydbg.debugger.bisection.happenings import resolved, times
from replaydbg.debugger.bisection.healing import Healing
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.verdict_answers import in_time, is_disturbed
from replaydbg.debugger.bisection.violations import at_place
from replaydbg.debugger.line_inputs import where_raised
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Moment
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import RunOrder
from replaydbg.engine.reports import Changes, EndReport
from replaydbg.engine.scan import Scan
from replaydbg.errors import EngineLost, UsageError
from replaydbg.events.verdict import Verdict
from replaydbg.launch.processors import processors

WIDTH = processors()
"""The number of probes made at once."""

LONGEST_SCAN = 2.0
"""Seconds of its processor's time for asking at each line between two checkpoints; then lines are bisected."""

PASSING = 2000
"""Lines. What is bad at a checkpoint and good again so soon was met in the middle of something: it counts as good."""

MOST_LISTED = 1000

MOST_UNDECIDED = 60
"""Looks at lines. Before its module is there, a name is undecided at hundreds of thousands of them."""

CHANGES = "The predicate has side effects in the program."

_NOTHING = Found(Answer.NEVER, -1, -1, (), {}, 0, ())


class Bisection(Healing):
    """A search in a session for the first line after which a predicate is bad."""

    def __init__(
        self,
        view: ReplayView,
        predicate: Predicate,
        *,
        first: int,
        last: int,
        width: int = WIDTH,
        report: Callable[[Probe], None] | None = None,
    ) -> None:
        """Search between two counts of lines. `report` receives each probe as it is made."""
        super().__init__(view, predicate, report)
        self.note = ""
        """A note about all changes, known when they have been found; may be empty."""
        self._first, self._last, self._width = first, last, width
        inner = [count for count in view.travel.timeline.counts() if first < count < last]
        self._places = [first, *inner, last] if first < last else [last]

    def _search(self, predicate: Predicate, first: int, last: int) -> Self:
        return type(self)(self._view, predicate, first=first, last=last, width=self._width)

    def run(self) -> Bisected:
        """Return what was found. Raises Cancelled and EngineLost."""
        if self._predicate.is_of_history:
            return self._of_history()
        if self._predicate.frame or self._predicate.only_at is not None:
            # Calls and passages come and go: a history of them changes more than once, and at most checkpoints there is
            # none.
            return self.lasting()
        found = search(
            len(self._places),
            lambda places: self._probe_lasting([self._places[at] for at in places]),
            width=self._width,
        )
        self._looks = [replace(each, is_check=at >= found.searched) for at, each in enumerate(self._looks)]
        result = self._result(found)
        if found.answer is not Answer.FOUND:
            return result
        low = self._places[found.last_good] if found.last_good >= 0 else self._places[0]
        return self._between(result, low, self._places[found.first_bad])

    def scan(self) -> Bisected:
        """Ask at every line, in order, until it is bad: nothing is assumed of the history.

        Where asking disturbs the program what is found is a line after which it is bad, and perhaps not the first.
        """
        if self._predicate.is_of_history:
            return self._of_history()
        if self._ask(self._first)[0] is Verdict.BAD:
            return replace(self._result(_NOTHING), answer=Answer.ALWAYS)
        unseen = False
        for begin, end, changes in self._changes_between_places():
            if changes is not None and changes.count and self._is_confirmed(changes.first_seen):
                result = self._at_each_line(Answer.FOUND, is_whole=not unseen)
                return self._with_healing(result, changes.first_seen, is_first=True)
            is_bad = self._ask(end)[0] is Verdict.BAD
            unseen = unseen or changes is None or changes.count > 0 or is_bad
            if is_bad:
                return self._by_copies(self._at_each_line(Answer.FOUND, is_whole=False), begin, end, self._probe)
        if unseen:
            return replace(self._at_each_line(Answer.UNKNOWN, is_whole=False), last_reason=self._ask(self._last)[1])
        return replace(self._at_each_line(Answer.NEVER, is_whole=True), last_reason=self._why_never())

    def _at_each_line(self, answer: Answer, *, is_whole: bool) -> Bisected:
        """Return the result of a search at each line; if some lines could not be checked, the first is unknown."""
        result = replace(self._result(_NOTHING), answer=answer, is_exact=is_whole, has_unseen=not is_whole)
        if is_whole:
            return result
        before = ": it may have been true before." if answer is Answer.FOUND else "."
        return replace(result, note=f"{CHANGES} Some lines could not be checked{before}")

    @property
    def begins_bad(self) -> bool:
        """Whether it is bad where the search begins."""
        return not self._predicate.is_of_history and self._ask(self._first)[0] is Verdict.BAD

    @property
    def end(self) -> Moment:
        """Where the search ends."""
        return self._view.index.moment(self._last)

    def why_undecided(self) -> str:
        """Return why it has no value at the end of the search, or, in a function, at every line; empty: it has one.

        Where it was never true, this tells a false expression from one that names nothing. Raises Cancelled.
        """
        if self._predicate.is_of_history or self._predicate.only_at is not None:
            return ""  # elsewhere than at its place it has no value anyway
        return self._why_never()

    def verdict_changes(self, most: int = MOST_LISTED) -> Iterator[VerdictChange]:
        """Yield every line after which it became bad, or good again, from the first one on; undecided is neither.

        Raises UsageError if evaluating the predicate changes the program: then per-line results are unreliable.
        """
        view = self._view
        if self._predicate.is_of_history:
            known = times(self._predicate, view, self._first, self._last, most=most)
            self.note = known.note
            yield from (
                self._verdict_change(each.count, is_bad=True) for each in known.found if each.count >= self._first
            )
            return
        is_bad = self._ask(self._first)[0] is Verdict.BAD
        worker = view.travel.at(self._first)
        after = 0
        try:
            for _ in range(most):
                order = RunOrder(until=self._last, watch=self._judged(stops=True))
                where = worker.run(order, idle=in_time(self._view, self._first, self._last))
                has_changed = not isinstance(where, EndReport) and where.changes.count > 0
                is_bad = is_bad is not has_changed
                if isinstance(where, EndReport) or not self._is_so(where, is_bad=is_bad):
                    raise UsageError(f"{CHANGES} When it is true cannot be found out line by line.")
                if not has_changed:
                    return
                after = self._line_after(where.changes, after, is_bad=is_bad)
                yield self._verdict_change(after, is_bad=is_bad)
        finally:
            worker.kill()

    def _line_after(self, changes: Changes, before: int, *, is_bad: bool) -> int:
        """Return the line after which it changed, later than the line `before` after which it had changed before.

        Where a call has ended, the line that made it has begun before all that happened in it: then it is the last one.
        """
        seen = changes.first_seen
        if self._predicate.only_at is not None:
            return seen
        turns = (self._turn(seen, is_bad=is_bad), changes.first_written)
        return next((each for each in turns if each > before), seen - 1)

    # ---- probes ----

    def _probe_lasting(self, counts: Sequence[int]) -> list[Verdict]:
        """Probe, and count what is good again soon as good."""
        verdicts = self._probe(counts)
        for at, look in enumerate(self._looks[-len(counts) :], len(self._looks) - len(counts)):
            if look.verdict is Verdict.BAD and self._passes(look):
                self._looks[at] = replace(look, verdict=Verdict.GOOD, reason="bad for only a few lines")
                verdicts[at - len(self._looks)] = Verdict.GOOD
        return verdicts

    def _passes(self, look: Probe) -> bool:
        """Whether it is good again soon: an invariant over two values is broken while they are changed."""
        if look.count >= self._last or look.seconds > LONGEST_SCAN / 20:
            return False
        order = RunOrder(until=min(look.count + PASSING, self._last), watch=self._judged(stops=True))
        worker = self._view.travel.at(look.count)
        try:
            # What is bad for a few lines is so for a short time: a predicate that needs longer for them is slow.
            where = worker.run(order, idle=self._unless_slow(worker, LONGEST_SCAN / 5))
            return not isinstance(where, EndReport) and where.changes.count > 0 and self._is_so(where, is_bad=False)
        except (_TooSlow, EngineLost):
            return False
        finally:
            worker.kill()

    def _why_never(self) -> str:
        """Return why it is undecided at the end, or, in a function, at every line; empty: it was good."""
        verdict, reason = self._ask(self._last)
        frame = self._predicate.frame
        if not frame or verdict is Verdict.GOOD:
            return reason
        if self._ask(self._first)[0] is Verdict.GOOD or self._first_line("decided"):
            return ""
        count = self._first_line("names")
        return self._ask(count)[1] if count else f"{frame}() never runs there"

    def _first_line(self, finds: str) -> int:
        """Return the first line of all at which there are an answer, or `names`; 0: none."""
        stretches = self._changes_between_places(finds)
        return next((each.first_seen for _, _, each in stretches if each is not None and each.count), 0)

    # ---- lines ----

    def _between(self, result: Bisected, low: int, high: int) -> Bisected:
        """Find the line between a moment that is not bad and one that is."""
        changes, note = self._scanned(low, high)
        if changes is not None and changes.count and self._is_confirmed(changes.last_seen, high):
            found = replace(result, culprit=self._culprit(changes.last_seen), is_exact=True)
            return self._with_passing(found, changes.count, changes.first_written)
        result = replace(result, note=note if changes is None else CHANGES)
        return self._by_copies(result, low, high, self._probe_lasting)

    def _by_copies(
        self, result: Bisected, low: int, high: int, probe: Callable[[Sequence[int]], list[Verdict]]
    ) -> Bisected:
        """Bisect the lines with `probe`: not all of them are checked."""
        before = len(self._looks)
        found = search(
            high - low + 1,
            lambda places: probe([low + at for at in places]),
            width=self._width,
            most_undecided=MOST_UNDECIDED,
        )
        checked = before + found.searched
        self._looks = [replace(each, is_check=each.is_check or at >= checked) for at, each in enumerate(self._looks)]
        unfit = (*result.unfit, *(self._view.index.moment(low + at) for at in found.unfit))
        culprit = self._culprit(low + found.first_bad)
        return replace(result, culprit=culprit, looks=tuple(self._looks), unfit=unfit)

    def _scanned(self, low: int, high: int) -> tuple[Changes | None, str]:
        """Evaluate at each line; None: that took too long or failed, with the reason if it is of interest."""
        decided = [each.seconds for each in self._looks if each.verdict is not Verdict.UNDECIDED]
        # A slow probe may have waited for a processor: if the predicate itself is quick, little time is enough.
        longest = LONGEST_SCAN if min(decided, default=0.0) <= LONGEST_SCAN / 20 else LONGEST_SCAN / 5
        worker = self._view.travel.at(low)
        try:
            with closing(Scan(worker, high, RunOrder(watch=self._judged()))) as scan:
                where = scan.finish(self._unless_slow(worker, longest)).where
        except _TooSlow:
            return None, ""
        except EngineLost:
            return None, CHANGES
        return (None, CHANGES) if is_disturbed(self._view, where) else (where.changes, "")

    def _unless_slow(self, worker: EngineProcess, longest: float) -> Callable[[], None]:
        """Return an `idle` that raises _TooSlow when the worker has computed for `longest` seconds from now."""
        began, cpu = time.monotonic(), worker.cpu_seconds()

        def idle() -> None:
            self._view.work.idle()
            # Other processes may keep it from running for a while.
            is_slow = worker.cpu_seconds() - cpu > longest
            if is_slow or time.monotonic() - began > 5 * LONGEST_SCAN:
                raise _TooSlow

        return idle

    def _changes_between_places(self, finds: str = "") -> Iterator[tuple[int, int, Changes | None]]:
        """Run over the stretches between checkpoints, several at once, and yield the changes in each, in order.

        None: asking has changed the program there.
        """
        stretches = iter(list(zip(self._places, self._places[1:], strict=False)))
        running: list[tuple[int, int, Scan]] = []
        try:
            while True:
                while len(running) < self._width and (stretch := next(stretches, None)) is not None:
                    begin, end = stretch
                    order = RunOrder(watch=self._judged(finds=finds))
                    running.append((begin, end, Scan(self._view.travel.at(begin), end, order)))
                if not running:
                    return
                begin, end, scan = running.pop(0)
                with closing(scan):
                    yield begin, end, self._finished(begin, end, scan)
        finally:
            for _, _, scan in running:
                scan.close()

    def _finished(self, begin: int, end: int, scan: Scan) -> Changes | None:
        try:
            where = scan.finish(in_time(self._view, begin, end)).where
        except EngineLost:
            return None
        return None if is_disturbed(self._view, where) else where.changes

    # ---- results ----

    def _result(self, found: Found) -> Bisected:
        moments = [self._view.index.moment(count) for count in self._places]
        last = next((each for each in self._looks if each.count == self._last), None)
        return Bisected(
            predicate=self._predicate.text,
            answer=found.answer,
            first=moments[0],
            last=moments[-1],
            last_reason=last.reason if last is not None and last.verdict is Verdict.UNDECIDED else "",
            culprit=None,
            last_good=moments[found.last_good] if found.last_good >= 0 else None,
            first_bad=moments[found.first_bad] if found.first_bad >= 0 else None,
            looks=tuple(self._looks),
            places=len(moments),
            unfit=tuple(moments[at] for at in found.unfit),
            passing=0,
            first_passing=None,
            is_exact=False,
            in_module=not self._predicate.frame,
        )

    def _nothing(self) -> Bisected:
        return self._result(_NOTHING)

    def _of_history(self) -> Bisected:
        """Return the first event that matches, from the index."""
        known = times(self._predicate, self._view, self._first, self._last, most=1)
        result = replace(self._result(_NOTHING), is_exact=True)
        if not known.found:
            return replace(result, note=known.note)
        happened = known.found[0]
        if happened.count < self._first:
            return replace(result, answer=Answer.ALWAYS)
        raised = where_raised(self._view, happened.raised) if happened.raised is not None else None
        seen = min((raised.count if raised is not None else happened.last) + 1, self._view.index.total)
        culprit = self._line(happened.count, seen, Verdict.GOOD, "", (), raised)
        return replace(result, answer=Answer.FOUND, culprit=culprit, first_bad=culprit.seen_moment, note=known.note)


class _TooSlow(Exception):
    """Asking at each line takes too long."""


def begin_bisection(
    view: ReplayView,
    predicate: Predicate,
    first: str | int | Moment | None = None,
    last: str | int | Moment | None = None,
    report: Callable[[Probe], None] | None = None,
    only_at: str = "",
) -> Bisection:
    """Return a search between two moments; without them, from the first line to the failure, or behind the last line.

    `only_at` is the one place at which it is evaluated: FILE:LINE, FUNCTION or FILE:FUNCTION.

    Raises UsageError, NoSuchMoment.
    """
    failure = view.failure
    end = failure.count if failure is not None else min(view.index.end + 1, view.index.total)
    begin = view.count_of(first) if first is not None else 1
    end = view.count_of(last) if last is not None else end
    if begin >= end:
        raise UsageError(f"Empty range: {first or '@start'} is not before {last or '@end'}.")
    predicate = resolved(predicate, view)
    if only_at:
        predicate = at_place(predicate, view, only_at)
    view.work.begin(f"searching for the line after which {predicate.text}")
    return Bisection(view, predicate, first=begin, last=end, report=report)
