"""Tasks that test a recording at a commit: the trials of `ci` on the workers of a pool."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from replaydbg.cluster.machine_state import state_between_machines
from replaydbg.cluster.questions.sent_checkout import SentCheckout
from replaydbg.cluster.tasks import ContentSink, JsonObject, RecordingTask, TaskPool, TaskResult
from replaydbg.commits.depends import Dependency
from replaydbg.commits.surroundings import Surroundings
from replaydbg.errors import ReplaydbgError, SchedulerLost, clause
from replaydbg.regressions.code_verdicts import CodeReads, CodeState, CommitVerdict
from replaydbg.regressions.night import TrialSettings
from replaydbg.regressions.trial_slot import CommitTrial, TrialResult, has_changed


@dataclass(frozen=True, slots=True, eq=False)
class OneTrial:
    """The question whether the code of a commit fails with the inputs of a recording."""

    checkout: SentCheckout
    trial: CommitTrial
    rate: tuple[int, int] | None
    """How often the recorded code fails with other random numbers, and of how many replays; None: not measured."""

    @property
    def kind(self) -> str:
        """The name of its handler."""
        return "trial"

    def order(self, recording: Path | None, sink: ContentSink) -> JsonObject:
        """Return the fields of the order. Raises ReplaydbgError, GitFailed and OSError."""
        assert recording is not None, self
        return self.checkout.order(sink) | {
            "recording": sink.recording(recording),
            "root": str(self.trial.root),
            "commit": self.trial.commit,
            "rate": self.rate,
        }


class ClusterTrials:
    """Runs trials as tasks of a pool: a TrialRunner."""

    def __init__(
        self, pool: TaskPool, most: int, how: TrialSettings, around: Surroundings, commits: tuple[str, ...]
    ) -> None:
        """Have at most `most` trials in the pool at once; 0: a few more than it runs, so an adaptive cluster grows."""
        self._pool, self._most = pool, most
        facts = asdict(how) | {"taken_along": [str(path) for path in how.taken_along]}
        self._checkout = SentCheckout(facts, around, how.taken_along, commits)
        # The newest first, whatever the recording: else those of a few recordings would always overtake the others.
        self._ranks = {commit: rank for rank, commit in enumerate(reversed(commits))}
        self._running: dict[Future[TaskResult], CommitTrial] = {}
        self._rates: dict[Path, tuple[int, int]] = {}
        self._began_ns = time.time_ns()

    @property
    def has_room(self) -> bool:
        """Whether another trial can begin, or wait for a worker."""
        return len(self._running) < (self._most or max(2 * self._pool.slots, 8))

    @property
    def commits(self) -> Collection[str]:
        """None: trials at the newest commits come first, so a worker that has one checked out gets others there."""
        return ()

    @property
    def running(self) -> Collection[CommitTrial]:
        """The trials that run, or wait for a worker."""
        return self._running.values()

    def submit(self, trial: CommitTrial) -> None:
        """Send a trial. Raises SchedulerLost, GitFailed."""
        asked = OneTrial(self._checkout, trial, self._rates.get(trial.recording))
        task = RecordingTask(trial.recording, asked, self._ranks[trial.commit])
        try:
            future = self._pool.submit(task)
        except SchedulerLost:
            raise
        except (ReplaydbgError, OSError) as error:
            future = Future()
            future.set_result(TaskResult(task, why=clause(str(error))))
        self._running[future] = trial

    def wait(self) -> list[tuple[CommitTrial, TrialResult]]:
        """Wait until a trial has ended, and return those that have. Raises SchedulerLost."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        return [(self._running.pop(future), self._result(future.result())) for future in done]

    def _result(self, result: TaskResult) -> TrialResult:
        if not result.facts:
            return TrialResult(CommitVerdict(CodeState.UNKNOWN, clause(result.why), round(result.seconds, 3)))
        facts = result.facts
        if facts["rate"] is not None and result.task.recording is not None:
            self._rates[result.task.recording] = (facts["rate"][0], facts["rate"][1])
        verdict = CommitVerdict(CodeState(facts["state"]), facts["why"], facts["seconds"])
        return TrialResult(verdict, self._reads(facts["reads"]) if facts["reads"] is not None else None)

    def _reads(self, facts: Mapping[str, Any]) -> CodeReads | None:
        """Return what a verdict depends on; None if it depends on files of the worker that are different here."""
        outside = []
        for aspect, path, there in facts["outside"]:
            dependency = Dependency(aspect, path)
            if state_between_machines(dependency) != there or has_changed(dependency, self._began_ns):
                return None
            outside.append(dependency)
        inside = tuple((question, path) for question, path in facts["inside"])
        return CodeReads(inside, tuple(outside), facts["is_whole"])

    def close(self) -> None:
        """End all trials."""
        for future in list(self._running):
            self._pool.give_up(future)
        self._running.clear()
