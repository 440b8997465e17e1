"""Trials: replay one recorded run with some of another run's inputs, or with another order of its threads."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from replaydbg.bisect.twins import Input, InputKind
from replaydbg.errors import ReplaydbgError
from replaydbg.events.verdict import Verdict
from replaydbg.hunt.capture import captured
from replaydbg.hunt.forked import in_processes
from replaydbg.hunt.mixture import mixture
from replaydbg.hunt.reading import Twins
from replaydbg.hunt.trial_end import TrialEnd, TrialOutcome
from replaydbg.log.edit.mix import Mixer
from replaydbg.log.edit.schedule import OtherTurns
from replaydbg.replay import replay
from replaydbg.replay.lenient import Lenient
from replaydbg.replay.result import ReplayResult

MOST = 400
"""Default maximum number of trials. A search among 1,000 answers of which two matter takes some 60."""

PATIENCE = 8
"""Time limit of a trial, as a multiple of the longer run, plus one second.

Clocks stand still where neither run has an answer: a program that waits for the time would wait for ever.
"""

STUCK = "stuck"
"""The kind of divergence of a replay in which every thread waits for another one."""

_OF_REPLAYS = {
    "unanswered": "the program needs an input that is in neither recording",
    STUCK: "the program's threads deadlock, which they did not in the bad run",
}
"""Reasons for an inconclusive trial, by the kind of its divergence: what is replayed is not an edited program here."""


@dataclass(frozen=True, slots=True)
class How:
    """Options of the trials."""

    jobs: int = 1
    """Number of trials at once."""
    pattern: re.Pattern[bytes] | None = None
    """A run whose output matches it has failed, too."""
    most: int = MOST
    """Maximum number of trials."""
    progress: Callable[[int], None] = lambda trials: None
    """Called now and then with the number of trials so far."""


@dataclass(slots=True)
class Count:
    """State shared by all trials of a search."""

    how: How
    place: Path
    """An empty directory on the same file system: the files that all trials share are linked, not copied."""
    trials: int = 0
    undecided: int = 0
    like: TrialEnd | None = None
    """The end of the bad run, replayed unchanged; None: not yet replayed."""

    @property
    def is_over(self) -> bool:
        """Whether the maximum number of trials is reached."""
        return self.trials >= self.how.most


class Trial(NamedTuple):
    """The differences between a replay and its recording."""

    inputs: Sequence[Input]
    left_out: frozenset[int] = frozenset()
    """The preemptions that are left out."""
    turns: frozenset[int] = frozenset()
    """The switches at which another thread continues."""


class Bench:
    """Trials on the log of one of the two recordings."""

    def __init__(self, count: Count, twins: Twins, *, is_bad_base: bool) -> None:
        """`is_bad_base`: replay the bad run with inputs of the good one; if false, the other way round."""
        self.count, self.twins = count, twins
        shared = Path(tempfile.mkdtemp(dir=count.place))
        base, other = (twins.bad, twins.good) if is_bad_base else (twins.good, twins.bad)
        self.is_bad_base = is_bad_base
        self.mixer = Mixer(base, other, shared)
        self.known: dict[tuple[frozenset[int], frozenset[int], frozenset[int]], TrialEnd] = {}
        end = twins.bad.end
        self.is_deadlock = end is not None and any(each.kind == "deadlock" for each in end.notes)
        """Whether the bad run was ended because every thread waited for another one: then that is its failure."""
        self.preemptions = range(len(twins.bad_side.preemptions)) if is_bad_base else range(0)

    def with_inputs(self, inputs: Sequence[Input]) -> Trial:
        """Return a trial that exchanges these inputs, and leaves out preemptions if the schedule is among them."""
        is_rescheduled = any(each.kind is InputKind.SCHEDULE for each in inputs)
        return Trial(inputs, frozenset(self.preemptions) if is_rescheduled else frozenset())

    def makes_pass(self, sets: Sequence[tuple[Input, ...]]) -> list[Verdict]:
        """Return for each set whether the run passes with it."""
        return self.verdicts([self.with_inputs(each) for each in sets], TrialOutcome.PASSES, TrialOutcome.FAILS)

    def makes_fail(self, sets: Sequence[tuple[Input, ...]]) -> list[Verdict]:
        """Return for each set whether the run fails with it."""
        return self.verdicts([self.with_inputs(each) for each in sets], TrialOutcome.FAILS, TrialOutcome.PASSES)

    def fails_with_these_alone(self, sets: Sequence[tuple[int, ...]]) -> list[Verdict]:
        """Return for each set of preemptions whether the run fails with no others."""
        trials = [Trial((), frozenset(self.preemptions) - set(each)) for each in sets]
        return self.verdicts(trials, TrialOutcome.FAILS, TrialOutcome.PASSES)

    def verdicts(self, trials: Sequence[Trial], bad: TrialOutcome, good: TrialOutcome) -> list[Verdict]:
        """Return BAD for each trial with a result in `bad`, GOOD for one in `good`."""
        verdicts = {bad: Verdict.BAD, good: Verdict.GOOD}
        return [verdicts.get(each.outcome, Verdict.UNDECIDED) for each in self.ended(trials)]

    def ended(self, trials: Sequence[Trial], *, is_again: bool = False) -> list[TrialEnd]:
        """Run trials, as many at once as allowed, and return their results; none is run twice, unless `is_again`."""
        keys = [(frozenset(map(id, each.inputs)), each.left_out, each.turns) for each in trials]
        pairs = dict(zip(keys, trials, strict=True)).items()
        new = [(key, trial) for key, trial in pairs if is_again or key not in self.known]
        jobs = self.count.how.jobs
        for start in range(0, len(new), jobs):
            batch = new[start : start + jobs]
            ended = self._at_once([trial for _, trial in batch])
            self.known.update(zip([key for key, _ in batch], ended, strict=True))
        return [self.known[key] for key in keys]

    def other_turns(self, at: frozenset[int]) -> OtherTurns:
        """Return a change of the schedule: at these switches continue the thread that was first in the good run."""
        keys, rank = self.twins.bad_side.lanes, self.twins.rank
        return OtherTurns(at, lambda lane, marks: rank(keys.get(lane, ()), marks))

    def _at_once(self, trials: Sequence[Trial]) -> list[TrialEnd]:
        count = self.count
        if count.trials + len(trials) > count.how.most:
            count.trials = count.how.most
            return [TrialEnd(TrialOutcome.INCONCLUSIVE, "there were too many trials")] * len(trials)
        places = []
        for inputs, left_out, turns in trials:
            count.trials += 1
            places.append(count.place / f"trial-{count.trials}.rdbg-live")
            mixed = mixture(inputs, is_bad_base=self.is_bad_base)
            self.mixer.write(places[-1], mixed, left_out, self.other_turns(turns) if turns else None)
        count.how.progress(count.trials)
        seconds = max(each.end.seconds for each in (self.twins.good, self.twins.bad) if each.end is not None)
        tasks = [_Task(place, count.how.pattern, self.is_deadlock) for place in places]
        ended = [self._judged(each) for each in in_processes(tasks, timeout=PATIENCE * (1 + seconds))]
        for place in places:
            shutil.rmtree(place)
        count.undecided += sum(each.outcome not in (TrialOutcome.PASSES, TrialOutcome.FAILS) for each in ended)
        return ended

    def _judged(self, report: bytes) -> TrialEnd:
        if not report:
            return TrialEnd(TrialOutcome.INCONCLUSIVE, "it took too long")
        ended, like = TrialEnd.decode(report), self.count.like
        is_other = like is not None and (ended.status, ended.exception) != (like.status, like.exception)
        is_failure = ended.outcome is TrialOutcome.FAILS
        return replace(ended, outcome=TrialOutcome.FAILS_DIFFERENTLY) if is_failure and is_other else ended


@dataclass(frozen=True, slots=True)
class _Task:
    """Replays one log; runs in a process of its own."""

    place: Path
    pattern: re.Pattern[bytes] | None
    is_deadlock: bool

    def __call__(self) -> bytes:
        return self._end().encode()

    def _end(self) -> TrialEnd:
        with captured() as capture:
            try:
                result = replay(
                    self.place, lenient=Lenient(), stdout=capture.stdout.fileno(), stderr=capture.stderr.fileno()
                )
            except (ReplaydbgError, OSError) as error:
                return TrialEnd(TrialOutcome.INCONCLUSIVE, str(error))
            outside = capture.run(result.status)
        is_stuck = result.divergence is not None and result.divergence.kind == STUCK
        if is_stuck and self.is_deadlock:
            return TrialEnd(TrialOutcome.FAILS, "deadlock", 0, "deadlock")
        if result.outcome is None:
            return TrialEnd(TrialOutcome.INCONCLUSIVE, why_inconclusive(result))
        is_found = self.pattern is not None and self.pattern.search(outside.output + outside.errors) is not None
        exception = result.outcome.exception.type if result.outcome.exception is not None else None
        outcome = TrialOutcome.FAILS if result.outcome.is_failure or is_found else TrialOutcome.PASSES
        return TrialEnd(outcome, str(result.outcome), result.outcome.status, exception, result.liberty_counts)


def why_inconclusive(result: ReplayResult) -> str:
    """Return why a trial is inconclusive, as text for a replay in which nothing was edited."""
    diverged = result.divergence
    if diverged is None or diverged.kind not in _OF_REPLAYS:
        return result.cannot_test
    return f"{_OF_REPLAYS[diverged.kind]} ({diverged.observed})"
