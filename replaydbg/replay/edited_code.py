"""Test whether edited code still fails on recorded inputs: replay the recorded code, then the edited code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from replaydbg.events.verdict import Verdict
from replaydbg.log.reader import open_recording
from replaydbg.replay.changed import changed_sources
from replaydbg.replay.draws import clock_shift, has_own_draws, numbers_shift
from replaydbg.replay.ending import Outcome
from replaydbg.replay.launcher import replay
from replaydbg.replay.lenient import Lenient, check_expression
from replaydbg.replay.result import ReplayResult
from replaydbg.replay.tested import Tested, check_plugin, judged, of_test, tested

_CANNOT_TEST = "cannot test: "
"""The beginning of the sentence of an undecided verdict."""


@dataclass(frozen=True, slots=True)
class CodeVerdict:
    """The verdict with its evidence."""

    verdict: Verdict
    sentence: str
    """The verdict as a sentence, with the outcome."""
    recorded: Outcome | None
    """The recorded outcome; None if it was not needed: a check was given."""
    now: Outcome | None
    """How the edited program ends on the recorded inputs; None if the replay is inconclusive."""
    changed: tuple[str, ...]
    """The recorded paths of the sources that have changed."""
    result: ReplayResult
    """The result of the last replay, with its deviations."""
    numbers_shift: str = ""
    """The place from which on random numbers served another purpose than recorded; empty: none, or not compared."""
    clock_shift: str = ""
    """The same for readings of the clock."""

    @property
    def is_other_failure(self) -> bool:
        """Whether the edited program fails, and otherwise than the recorded one failed."""
        is_compared = self.verdict is Verdict.UNDECIDED and self.recorded is not None and self.now is not None
        return is_compared and not self.result.cannot_test and not self.result.ended_early

    @property
    def reason(self) -> str:
        """The sentence, without its beginning that an undecided one has."""
        return self.sentence.removeprefix(_CANNOT_TEST)


@dataclass(frozen=True, slots=True)
class Judge:
    """A test of one recording."""

    path: Path
    """The recording."""
    name: str = ""
    """Its name in commands, for messages."""
    sources: Mapping[str, str] | None = None
    """Directories of the recording, and where they are today."""
    check: str | None = None
    """An expression that is true if the program is good; None: it is bad if it fails as recorded."""
    cpu_seconds: int | None = None
    """CPU time limit of the edited program in seconds; None: no limit."""
    stdout: int | None = None
    """A descriptor for the edited program's output; None: our own."""
    stderr: int | None = None
    """The same for its errors."""
    data: frozenset[str] = frozenset()
    """Absolute paths of the recording below `sources` whose data is read from today's files."""
    is_replayed_unchanged: bool = False
    """Whether to run the code even if none of the recorded sources has changed: there may be a new module."""
    is_rest_recorded: bool = False
    """Whether modules outside of `sources` come from the recording: they need not exist on this machine."""

    def judge(self) -> CodeVerdict:
        """Replay, and return the verdict. Raises what `replay` raises."""
        with open_recording(self.path) as recording:
            test = tested(recording)
            if test is not None and self.check is not None:
                check_expression(self.check)
            # For a test that failed elsewhere: other imports need not exist here, and come from the recording.
            moved_only = self._is_moved_only(test)
            if test is not None and moved_only:
                check_plugin(recording, test)
            changed = changed_sources(recording, self.sources, only_moved=moved_only)
        recorded = None
        if self.check is None:
            before = self._as_recorded(is_shown=not changed)
            why = _why_no_measure(before, test)
            recorded = test.outcome if test is not None else before.outcome
            if why or recorded is None:
                return CodeVerdict(Verdict.UNDECIDED, f"{_CANNOT_TEST}{why}", None, None, changed, before)
            if not changed and not self.is_replayed_unchanged:
                verdict, sentence = _compare(recorded, recorded)
                sentence = f"{sentence} (no source has changed)"
                return CodeVerdict(verdict, sentence, recorded, recorded, changed, before)
        elif self.is_replayed_unchanged:
            before = self._as_recorded(is_shown=False)
        now = self._now(test, self.sources or {}, is_current=not moved_only)
        verdict, sentence = self._of(now, recorded)
        found = CodeVerdict(verdict, sentence, recorded, now.outcome, changed, now)
        if not self.is_replayed_unchanged or before.draws is None or now.draws is None:
            return found
        recorded_draws = before.draws
        if test is not None and (has_own_draws(before.draws) or has_own_draws(now.draws)):
            # The recording continues after the test's end; the recorded code is replayed to there, too.
            recorded_draws = self._now(test, {}, is_current=False, is_edited=False).draws or recorded_draws
        elif test is not None:
            return found
        shifts = numbers_shift(recorded_draws, now.draws), clock_shift(recorded_draws, now.draws)
        return replace(found, numbers_shift=shifts[0], clock_shift=shifts[1])

    def with_other_numbers(
        self, seed: int, judged_before: CodeVerdict, *, is_edited: bool
    ) -> tuple[Verdict, ReplayResult]:
        """Return the verdict of a replay with other random numbers than recorded, the same ones for the same `seed`.

        It runs the edited code, or the recorded code; `judged_before` is the result of `judge`.
        """
        with open_recording(self.path) as recording:
            test = tested(recording)
        if is_edited:
            moved_only = self._is_moved_only(test)
            now = self._now(test, self.sources or {}, is_current=not moved_only, reseed=seed)
        else:
            now = self._now(test, {}, is_current=False, reseed=seed, is_edited=False)
        return self._of(now, judged_before.recorded)[0], now

    def _is_moved_only(self, test: Tested | None) -> bool:
        return self.is_rest_recorded or (test is not None and bool(self.sources))

    def _now(
        self,
        test: Tested | None,
        sources: Mapping[str, str],
        *,
        is_current: bool,
        reseed: int = 0,
        is_edited: bool = True,
    ) -> ReplayResult:
        """Replay leniently: today's code, or with `is_current` false the recorded one, except for `sources`."""
        now = replay(
            self.path,
            name=self.name,
            current_source=is_current,
            lenient=Lenient(
                sources=sources,
                check=self.check if test is None else None,
                asked=test.asked(self.check) if test is not None else "",
                answers_to=test.failed_at if test is not None else 0,
                cpu_seconds=self.cpu_seconds,
                reseed=reseed,
                data=self.data if is_edited else frozenset(),
            ),
            stdout=self.stdout,
            stderr=self.stderr,
        )
        if test is not None:
            outcome, check, why = judged(now)
            now = replace(of_test(now), outcome=outcome, check=check, cannot_test=why, ended_early="")
        return now

    def _as_recorded(self, *, is_shown: bool) -> ReplayResult:
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            return replay(
                self.path,
                name=self.name,
                with_outcome=True,
                stdout=self.stdout if is_shown else null,
                stderr=self.stderr if is_shown else null,
            )
        finally:
            os.close(null)

    def _of(self, now: ReplayResult, recorded: Outcome | None) -> tuple[Verdict, str]:
        if self.check is not None and now.check is not None:
            if now.check.verdict == "raised":
                return Verdict.UNDECIDED, f"{_CANNOT_TEST}{self.check} raised {now.check.error}"
            holds = now.check.verdict == "holds"
            return (Verdict.GOOD if holds else Verdict.BAD), f"{self.check} {'holds' if holds else 'does not hold'}"
        if self.check is not None and now.outcome is not None and not now.ended_early:
            return (
                Verdict.UNDECIDED,
                f"{_CANNOT_TEST}the program ended where nothing can be evaluated: {_shown(now.outcome)}",
            )
        if now.ended_early or now.outcome is None or recorded is None:
            return Verdict.UNDECIDED, f"{_CANNOT_TEST}{now.cannot_test or _ends_early(now)}"
        return _compare(recorded, now.outcome)


def _why_no_measure(before: ReplayResult, test: Tested | None) -> str:
    if before.divergence is not None:
        return f"the recording itself does not replay: {before.divergence.as_reason()}"
    if test is not None:
        return "" if test.outcome is not None else "the process ended in the test, or the test was skipped"
    return _ends_early(before) if before.ended_early else ""


def _ends_early(result: ReplayResult) -> str:
    return f"the recording ends before the program did: {result.ended_early or 'its end was not reached'}"


def _compare(recorded: Outcome, now: Outcome) -> tuple[Verdict, str]:
    if not now.is_failure:
        if recorded.is_failure:
            return Verdict.GOOD, f"no longer fails: {_shown(now)} (recorded: {_shown(recorded)})"
        return Verdict.GOOD, f"passes, as recorded: {_shown(now)}"
    if not recorded.is_failure:
        return Verdict.BAD, f"fails now: {_shown(now)} (recorded: {_shown(recorded)})"
    if now.is_like(recorded):
        return Verdict.BAD, f"still fails: {_shown(now)}"
    return Verdict.UNDECIDED, f"{_CANNOT_TEST}fails differently: {_shown(now)} (recorded: {_shown(recorded)})"


def _shown(outcome: Outcome) -> str:
    """Return its text with its place relative to the working directory, if it is below that."""
    text = str(outcome)
    place = outcome.exception.place if outcome.exception is not None else None
    if place is not None and place.file.startswith(str(Path.cwd()) + os.sep):
        text = text.replace(place.file, os.path.relpath(place.file))
    return text
