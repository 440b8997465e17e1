"""Find what earlier tests left behind that makes a test fail, and the fewest tests with which it fails in the same way.

Its recording is replayed without other tests, always other ones (delta debugging). The tests that wrote the values that
differ are tried first: usually one replay is enough then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice

from replaydbg.bisect.ddmin import minimal
from replaydbg.debugger import Session
from replaydbg.debugger.session_results import LastWrite
from replaydbg.errors import ReplaydbgError
from replaydbg.events.verdict import Verdict
from replaydbg.heap.comparison.diff_results import Change
from replaydbg.pytest_plugin.examination.agreement import fails, replayed, values_that_differ
from replaydbg.pytest_plugin.examination.hidden_dependencies import values_left_behind
from replaydbg.pytest_plugin.examination.minimize import KeptFailure, SessionLog, SmallerLog, SmallerPart
from replaydbg.pytest_plugin.shared.results import Examination, LeftBehind, shortened
from replaydbg.render import texts

_MOST_REPLAYS = 40
"""Maximum number of sets of tests that are tried for a failure: one test of 500 takes at most eighteen."""
_MOST_VALUES = 50
"""Maximum number of values that differ whose last writes are searched."""
_MOST_SHOWN = 3


def left_behind(kept: KeptFailure, session: Session) -> Iterator[Examination]:
    """Yield what is found; `session`, with all tests before it, is at the test's failure, and is moved."""
    try:
        yield from _Search(kept, session).found()
    except (ReplaydbgError, OSError) as error:
        yield Examination(problem=str(error))


class _TooMany(ReplaydbgError):
    """So many sets of tests were tried."""


class _Search:
    """The search for one test."""

    def __init__(self, kept: KeptFailure, session: Session) -> None:
        self._kept, self._session = kept, session
        self._log = SessionLog(kept.path)
        self._number = self._log.number_of(kept)
        self._target = kept.path.with_name(f"without-{kept.path.name}")
        self._known: dict[tuple[int, ...], Verdict] = {(): Verdict.GOOD}
        """By the numbers of other tests: whether it fails in the same way with these (BAD); with none it does not."""

    def found(self) -> Iterator[Examination]:
        """Yield the values, then the tests, which take longer. Raises OSError, ReplaydbgError."""
        lefts = self._lefts()
        if lefts:
            yield Examination(left_behind=tuple(left for _, left in lefts[:_MOST_SHOWN]))
        always = self._log.needed_by(self._number)
        others = [number for number in range(1, self._number) if number not in always]
        needed = self._fewest(sorted({number for number, _ in lefts} & set(others)), others)
        if needed is None:
            return
        tests = self._log.needed_by(self._number, needed)
        yield Examination(
            left_behind=tuple([left for number, left in lefts if number in needed][:_MOST_SHOWN]),
            reproduced_by=tuple(self._log.items[number - 1].nodeid for number in sorted(tests)),
        )

    # ---- tests ----

    def _fewest(self, writers: Sequence[int], others: Sequence[int]) -> tuple[int, ...] | None:
        """Return the fewest of the other tests that are needed; None: not found in time."""
        with suppress(_TooMany):
            is_enough = bool(writers) and self._verdict(tuple(writers)) is Verdict.BAD
            return minimal(writers if is_enough else others, lambda sets: [self._verdict(each) for each in sets])
        return None

    def _verdict(self, numbers: tuple[int, ...]) -> Verdict:
        """Return whether it fails in the same way with these of the other tests."""
        if numbers not in self._known:
            if len(self._known) == _MOST_REPLAYS:
                raise _TooMany("too many")
            self._known[numbers] = self._tried(numbers)
        return self._known[numbers]

    def _tried(self, numbers: tuple[int, ...]) -> Verdict:
        smaller = self._log.with_only(self._number, numbers)
        whole, failing = smaller.part(self._kept), smaller.part(self._kept, until_failure=True)
        assert whole is not None, "it ends where the recording does"
        with self._written(smaller, whole):
            # A replay that counts no lines is much faster than a session, and nearly all differ in what they do.
            agreement = replayed(self._target, whole.events)
            parts = [each for each in (whole, failing) if each is not None and each.events <= agreement.events]
            if not parts:
                return Verdict.GOOD
            with Session(self._target, keeps_index=False) as session:
                is_same = any(self._is_same(session, each) for each in parts)
        return Verdict.BAD if is_same else Verdict.GOOD

    def _is_same(self, session: Session, part: SmallerPart) -> bool:
        return fails(session, part) and values_that_differ(session, self._kept, part) is None

    @contextmanager
    def _written(self, smaller: SmallerLog, part: SmallerPart) -> Iterator[None]:
        try:
            smaller.write(part, self._kept, self._target)
            yield
        finally:
            self._target.unlink(missing_ok=True)

    # ---- values ----

    def _lefts(self) -> list[tuple[int, LeftBehind]]:
        """Return the values that differ without other tests, each with the number of the test that wrote it."""
        smaller = self._log.with_only(self._number, ())
        part = smaller.part(self._kept)
        assert part is not None, "it ends where the recording does"
        # Without its failure, which would be searched for in vain.
        passed = part._replace(end=part.end | {"test": part.end["test"] | {"failure": None}})
        try:
            with self._written(smaller, passed), Session(self._target, keeps_index=False) as alone:
                changes = values_left_behind(self._session, alone, self._kept.path)
        except ReplaydbgError:
            return []  # it does not come to the test's beginning
        self._session.seek("@test")
        found = (self._left(each) for each in islice(changes, _MOST_VALUES))
        return [each for each in found if each is not None]

    def _left(self, change: Change) -> tuple[int, LeftBehind] | None:
        """Return who wrote a value, if another test did."""
        try:
            last = self._session.run.why(change.path, with_origins=False)
        except ReplaydbgError:
            return None
        last = last.content or last
        number = self._log.number_at(last.moment.event) if last.moment is not None else 0
        if not 0 < number < self._number:
            return None
        return number, self._shown(change, last, self._log.items[number - 1].nodeid)

    def _shown(self, change: Change, last: LastWrite, nodeid: str) -> LeftBehind:
        assert last.moment is not None, last
        return LeftBehind(
            name=change.path,
            value=shortened(change.before),
            alone=shortened(change.after),
            test=nodeid,
            where=texts.place_text(self._session, last.file, last.line, last.function),
            source=shortened(last.source),
            moment=texts.moment_text(last.moment),
        )
