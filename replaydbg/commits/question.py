"""The question put to a history, the result of a look at a commit, and the result of the search: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replaydbg.commits.depends import Dependencies
from replaydbg.events.verdict import Verdict

TIMEOUT = 600.0
"""Default time limit of a build or a run in seconds: long for a program that is run a dozen times, short for one
that hangs over night.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """Which commit between `good` and `bad` made the program fail, and how commits are tested."""

    good: str
    """A revision at which it does not fail."""
    bad: str
    """A revision at which it fails."""
    program: tuple[str, ...] = ()
    """The command line that is recorded at each commit, as `replaydbg record` takes it; empty with `replay`."""
    replay: Path | None = None
    """The recording whose inputs are replayed against the code of each commit."""
    check: str = ""
    """With `replay`: the expression that is true at a good commit; empty: a commit is bad if it ends as recorded."""
    build: str = ""
    """A shell command that must succeed in the worktree before a commit is tested."""
    runs: int = 1
    """Maximum number of runs at one commit, for failures that come and go."""
    confidence: float = 0.95
    """Confidence that a failure would have shown before a commit counts as good."""
    jobs: int = 1
    """Number of commits that are tested at once."""
    timeout: float = TIMEOUT
    """Time limit of one build or run in seconds; 0 for no limit."""
    is_first_parent: bool = False
    """Whether merges count as one step, without the commits that they merge."""
    is_same_failure: bool = False
    """Whether a commit that fails differently from the bad end is inconclusive; if false, it is bad."""
    hash_seed: int = 0
    """PYTHONHASHSEED of every run, so that sets have one order at all commits; 0: each run draws a seed of its own."""
    taken_along: tuple[Path, ...] = ()
    """Files and directories of the checkout that are copied into each worktree."""
    confirming: int = 0
    """With `replay`: number of real runs at the culprit and before it, to confirm the answer; 0: none."""
    is_data_of_commit: bool = False
    """With `replay`: whether files of the repository that are read as data come from the commit, not the recording."""
    is_rest_recorded: bool = False
    """With `replay`: whether modules outside of the repository come from the recording, not from today's disk."""
    recorded_root: Path | None = None
    """With `replay`: the repository's directory at the time of the recording; None: it is searched for."""


@dataclass(frozen=True, slots=True)
class CommitLook:
    """The result at one commit."""

    commit: str
    """Its full name."""
    verdict: Verdict
    """The verdict."""
    why: str
    """The reason, in a few words."""
    seconds: float
    """Duration in seconds."""
    runs: int = 1
    """Number of runs of the program."""
    failed: int = 0
    """Number of failed runs."""
    failure: str = ""
    """How it failed: the exit code and the kind of exception, without details that vary between runs; empty if not."""
    recording: str = ""
    """The path of the recording made there; empty if there is none."""
    liberties: tuple[str, ...] = ()
    """The deviations of a lenient replay there, a line for each."""
    shift: str = ""
    """With a replay: the place from which on random numbers served another purpose than recorded; empty: none."""
    clock_shift: str = ""
    """The same for readings of the clock."""
    is_reused: bool = False
    """Whether it comes from an earlier, interrupted search."""
    depends: Dependencies | None = None
    """Its dependencies outside the commit; None: unknown, and a later search does not use the verdict."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with its log data."""

    name: str
    """Its full name."""
    author: str
    """Name and email address."""
    date: str
    """When it was written, as ISO 8601."""
    subject: str
    """The first line of its message."""

    @property
    def short(self) -> str:
        """The abbreviated name."""
        return self.name[:10]


@dataclass(frozen=True, slots=True)
class CommitSearchResult:
    """The result of a search."""

    question: Question
    """The question, completed with everything that was found out."""
    suspects: tuple[Commit, ...]
    """The first bad commit; or several: the first bad one is among them, but they cannot be distinguished."""
    looks: tuple[CommitLook, ...]
    """Every look, in order of completion."""
    commits: dict[str, Commit]
    """Every commit that was looked at or is a suspect."""
    total: int
    """Number of candidate commits."""
    good: str
    """The good end's full name."""
    bad: str
    """The bad end's full name."""
    notes: tuple[str, ...]
    """Notes for the reader, in sentences."""
    stat: str
    """The files that the culprit changed, as printed by `git show --stat`; empty for a range."""
    bad_recording: str = ""
    """The recording of the first bad commit, as the store names it."""
    good_recording: str = ""
    """The recording of the last good commit, as the store names it."""
    passes_needed: int = 1
    """Number of passing runs after which a commit counted as good."""
    root: Path = Path()
    """The repository."""
    prefix: str = ""
    """The directory in the repository from which the search was started."""
    files: frozenset[str] = frozenset()
    """The tracked files there and those that are taken along, relative to the root."""
    untracked: tuple[Path, ...] = ()
    """With a replay: recorded paths of the files that are in no commit, such as the script."""

    @property
    def culprit(self) -> Commit | None:
        """The first bad commit, if it is unique."""
        return self.suspects[0] if len(self.suspects) == 1 else None
