"""The question of one run of `replaydbg ci`, and its answer: plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from replaydbg.commits.question import TIMEOUT, Commit
from replaydbg.regressions.code_verdicts import Case, CodeState, CommitVerdict
from replaydbg.regressions.turning_points import TurningPointOfCode


@dataclass(frozen=True, slots=True)
class TrialSettings:
    """How a recording is tested at a commit."""

    build: str = ""
    """A shell command that must succeed in the worktree before recordings are replayed there."""
    taken_along: tuple[Path, ...] = ()
    """Files and directories of the checkout that are copied into each worktree."""
    is_data_of_commit: bool = False
    """Whether files of the repository that are read as data come from the commit, not the recording."""
    is_rest_recorded: bool = False
    """Whether modules outside of the repository come from the recording, not from today's disk."""
    timeout: float = TIMEOUT
    """Time limit of one build, or of one recording at one commit, in seconds; 0 for no limit."""


@dataclass(frozen=True, slots=True)
class NightQuestion:
    """Which recordings are followed over which commits, and how these are tested."""

    cases: tuple[Case, ...]
    """The recordings."""
    first: str
    """The revision with which the range begins; it is tested, too."""
    last: str
    """The revision with which it ends."""
    trials: TrialSettings = TrialSettings()
    """How a recording is tested at a commit."""
    is_first_parent: bool = False
    """Whether merges count as one step, without the commits that they merge."""
    recorded_root: Path | None = None
    """The repository's directory at the time of the recordings; None: it is searched for."""
    jobs: int = 1
    """Number of recordings that are replayed at once on this machine; each has a worktree of its own."""


@dataclass(frozen=True, slots=True)
class CaseHistory:
    """What became of one recording over the commits."""

    case: Case
    verdicts: Mapping[str, CommitVerdict]
    """The verdict at each commit, by its full name; empty if it cannot be tested at any."""
    points: tuple[TurningPointOfCode, ...]
    """Where the verdict changes, oldest first."""
    now: CodeState
    """The state at the last commit."""
    is_regression: bool
    """Whether it passed once, and fails at the last commit that could be tested."""
    passed_at: str = ""
    """The commit at which it passed in an earlier run, if only that shows the regression; empty: none."""

    @property
    def passes_now(self) -> bool:
        """Whether it passes at the last commit."""
        return self.now is CodeState.PASSES


@dataclass(frozen=True, slots=True)
class NightReport:
    """The result of a run."""

    question: NightQuestion
    commits: tuple[Commit, ...]
    """All commits that were looked at, oldest first; `bases` are among them."""
    bases: frozenset[str]
    """The full names of those before the range: they are tested to know the state before it."""
    parents: Mapping[str, tuple[str, ...]]
    """The parents of each commit of the range, by full names."""
    histories: tuple[CaseHistory, ...]
    """One for each recording, in the order of the question."""
    counts: Mapping[str, int]
    """Number of verdicts by `CommitVerdict.found`."""
    seconds: float
    """The duration of the run."""
    notes: tuple[str, ...]
    """Sentences for the reader."""
    root: Path = Path()
    """The repository."""

    @property
    def has_regressions(self) -> bool:
        """Whether a recording that passed once fails now."""
        return any(each.is_regression for each in self.histories)

    @property
    def is_conclusive(self) -> bool:
        """Whether any recording could be tested at any commit."""
        states = (verdict.state for each in self.histories for verdict in each.verdicts.values())
        return any(state is not CodeState.UNKNOWN for state in states)


@dataclass(frozen=True, slots=True)
class NightProgress:
    """How far a run is."""

    done: int
    """Number of verdicts that are known."""
    total: int
    """Number of verdicts that are needed."""
    running: tuple[str, ...]
    """The names of the recordings that are being replayed."""


NightWatcher = Callable[[NightProgress], None]
"""Shows the progress; called in the thread of the run."""
