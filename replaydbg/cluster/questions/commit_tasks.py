"""Tasks about commits: how a program behaves at a commit, on the inputs of a recording or run anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from replaydbg.cluster.questions.commit_facts import look_from, question_facts
from replaydbg.cluster.questions.sent_checkout import SentCheckout
from replaydbg.cluster.tasks import ContentSink, JsonObject, RecordingTask, TaskPool, TaskResult
from replaydbg.commits.question import TIMEOUT, CommitLook, Question
from replaydbg.commits.recorded_paths import find_root
from replaydbg.commits.repository import Repository
from replaydbg.commits.surroundings import Surroundings
from replaydbg.commits.worktree_commands import GivenUp
from replaydbg.events.verdict import Verdict

_STEP = 0.05
"""Seconds between two checks whether a look is still wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class AtCommit:
    """How does the program behave at a commit? The answer has the fields of a CommitLook."""

    checkout: SentCheckout
    commit: str
    """Its full name."""
    passes: int = 1
    """Number of runs without a failure that make the commit good."""
    is_measured: bool = False
    """Whether to make all runs, and count the failures."""
    expected: str = ""
    """The failure that is searched for; another one counts as inconclusive. Empty: every failure counts."""
    end: str = ""
    """The failure of the bad end; see Looker."""
    rate: tuple[int, int] | None = None
    """How often the recorded code fails with other random numbers, and of how many replays; None: not measured."""

    @property
    def kind(self) -> str:
        """The name of its handler."""
        return "commit"

    def order(self, recording: Path | None, sink: ContentSink) -> JsonObject:
        """Return the fields of the order. Raises ReplaydbgError, GitFailed and OSError."""
        return self.checkout.order(sink) | {
            "recording": sink.recording(recording) if recording is not None else None,
            "commit": self.commit,
            "passes": self.passes,
            "is_measured": self.is_measured,
            "expected": self.expected,
            "end": self.end,
            "rate": self.rate,
        }


class ClusterLooker:
    """Looks at commits by the tasks of a pool: a CommitLooker."""

    def __init__(
        self, pool: TaskPool, question: Question, around: Surroundings, recordings: Path, commits: Sequence[str]
    ) -> None:
        """Keep recordings in the directory `recordings`; `commits` are all that it may look at."""
        self._pool, self._question, self._recordings = pool, question, recordings
        self._checkout = SentCheckout(question_facts(question), around, question.taken_along, tuple(commits))
        self.expected = self.end = ""
        self.has_met_ours = False
        self._rate: tuple[int, int] | None = None

    def look(self, commit: str, *, passes: int, cancel: threading.Event, is_measured: bool = False) -> CommitLook:
        """Return the result at `commit`, see CommitLooker; inconclusive where the task cannot be run."""
        asked = AtCommit(self._checkout, commit, passes, is_measured, self.expected, self.end, self._rate)
        future = self._pool.submit(RecordingTask(self._question.replay, asked))
        while not wait([future], _STEP).done:
            if cancel.is_set():
                self._pool.give_up(future)
                raise GivenUp
        result = future.result()
        if not result.facts:
            return CommitLook(commit, Verdict.UNDECIDED, result.why, result.seconds, runs=0)
        self._rate = tuple(result.facts["rate"]) if result.facts["rate"] else self._rate
        self.has_met_ours = self.has_met_ours or result.facts["has_met_ours"]
        kept = self._keep(commit, result)
        return look_from(dict(result.facts), is_replay=self._question.replay is not None, recording=kept)

    def _keep(self, commit: str, result: TaskResult) -> str:
        data = result.facts["made"]
        if data is None:
            return ""
        self._recordings.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._recordings / f"{commit}-{result.verdict.value}.rdbg"
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
        return str(path)


class CommitTasks:
    """Makes tasks that replay recordings with the code of commits of one repository.

    Modules outside of the repository come from the recording, so the result is the same on each machine.
    """

    def __init__(self, directory: Path, commits: Sequence[str], *, build: str = "", timeout: float = TIMEOUT) -> None:
        """Use the repository of `directory`; `commits` are the full names of all commits that tasks will name.

        `build` is a shell command that must succeed in the worktree first, `timeout` the limit in seconds of one build
        or replay. Raises UsageError if it is no repository.
        """
        self._repository = Repository(directory)
        self._commits = tuple(commits)
        self._question = Question("", "", build=build, timeout=timeout, is_rest_recorded=True)
        self._checkouts: dict[tuple[Path, str, bool], SentCheckout] = {}

    @cached_property
    def _around(self) -> Surroundings:
        ends = {self._commits[0], self._commits[-1]}
        return Surroundings(self._repository.root, self._repository.prefix, self._repository.files(*ends))

    def root_of(self, recording: Path) -> Path:
        """Return the repository's directory as the recorded program saw it.

        Raises UsageError if it ran no file of the last commit.
        """
        return find_root(recording, self._repository, self._commits[-1])

    def task(
        self,
        recording: Path,
        commit: str,
        *,
        check: str = "",
        recorded_root: Path | None = None,
        is_data_of_commit: bool = False,
    ) -> RecordingTask:
        """Return the task for a recording and a commit, see `Question` for the options. Raises as `root_of`."""
        root = recorded_root if recorded_root is not None else self.root_of(recording)
        key = (root, check, is_data_of_commit)
        if key not in self._checkouts:
            question = replace(self._question, check=check, recorded_root=root, is_data_of_commit=is_data_of_commit)
            self._checkouts[key] = SentCheckout(question_facts(question), self._around, (), self._commits)
        return RecordingTask(recording, AtCommit(self._checkouts[key], commit))
