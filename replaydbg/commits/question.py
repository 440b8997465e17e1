"""What is asked of a history, what a look at a commit says, and what was found: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replaydbg.bisect.verdict import Verdict
from replaydbg.commits.depends import Dependencies

TIMEOUT = 600.0
"""Seconds that a build or a run may take unless said otherwise: long for a program that is run a dozen times, short for
one that hangs over night."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which commit between `good` and `bad` made the program fail, and how that is told."""

    good: str
    """A revision at which it does not fail."""
    bad: str
    """A revision at which it fails."""
    program: tuple[str, ...] = ()
    """What is recorded at each commit, as `replaydbg record` takes it; empty with `replay`."""
    replay: Path | None = None
    """The recording whose inputs are replayed against the code of each commit."""
    check: str = ""
    """With `replay`: the expression that holds where it is good; empty: it is bad if it ends as recorded."""
    build: str = ""
    """A shell command that must succeed in the worktree before anything can be told."""
    runs: int = 1
    """How often it is run at most, for failures that come and go."""
    confidence: float = 0.95
    """With how much confidence a failure would have shown before a commit counts as good."""
    jobs: int = 1
    """How many commits are looked at at once."""
    timeout: float = TIMEOUT
    """Seconds that one build or run may take; 0 for no limit."""
    is_first_parent: bool = False
    """Whether merges count as one step, without the commits that they bring."""
    is_same_failure: bool = False
    """Whether a commit that fails otherwise than the bad end does says nothing; otherwise it is bad."""
    hash_seed: int = 0
    """PYTHONHASHSEED of every run, so that sets have one order at all commits; 0: each run draws its own."""
    taken_along: tuple[Path, ...] = ()
    """Files and directories of the checkout that are copied into each worktree."""
    confirming: int = 0
    """With `replay`: how often the program itself runs at the culprit and before it, to confirm the answer; 0: not."""
    is_data_of_commit: bool = False
    """With `replay`: whether files of the repository that are read as data come from the commit, not the recording."""
    recorded_root: Path | None = None
    """With `replay`: where the repository lay when it was recorded; None: that is found out."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was found at one commit."""

    commit: str
    """Its full name."""
    verdict: Verdict
    """What it says."""
    why: str
    """The reason, in a few words."""
    seconds: float
    """How long it took."""
    runs: int = 1
    """How often the program ran."""
    failed: int = 0
    """How often it failed."""
    failure: str = ""
    """How it failed: the exit code and the kind of exception, without what differs from run to run; empty if not."""
    recording: str = ""
    """The path of what was recorded there; empty for nothing."""
    liberties: tuple[str, ...] = ()
    """What a lenient replay allowed itself there, a line for each."""
    shift: str = ""
    """With a replay: from where on random numbers went to another purpose than recorded; empty: nowhere."""
    clock_shift: str = ""
    """The same of readings of the clock."""
    is_reused: bool = False
    """Whether it is from an earlier, interrupted search."""
    depends: Dependencies | None = None
    """What it depends on outside the commit; None: that is not known, and the verdict is not used in a later search."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as people know it."""

    name: str
    """Its full name."""
    author: str
    """Name and address."""
    date: str
    """When it was written, as ISO 8601."""
    subject: str
    """The first line of its message."""

    @property
    def short(self) -> str:
        """The beginning of its name."""
        return self.name[:10]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to."""

    question: Question
    """What was asked, with all that was found out for it."""
    suspects: tuple[Commit, ...]
    """One: the first bad commit. More: it is one of these, and they cannot be told apart."""
    looks: tuple[Look, ...]
    """Every look, in the order of their ends."""
    commits: dict[str, Commit]
    """Every commit that was looked at or is suspect."""
    total: int
    """How many commits were candidates."""
    good: str
    """The good end's full name."""
    bad: str
    """The bad end's full name."""
    notes: tuple[str, ...]
    """What a reader must know, in sentences."""
    stat: str
    """Which files the culprit changed, as `git show --stat` tells; empty for a range."""
    bad_recording: str = ""
    """The recording of the first bad commit, as the store names it."""
    good_recording: str = ""
    """The recording of the last good commit, as the store names it."""
    passes_needed: int = 1
    """After how many passing runs a commit counted as good."""
    root: Path = Path()
    """The repository."""
    prefix: str = ""
    """The directory in it from which the question was asked."""
    files: frozenset[str] = frozenset()
    """Those that git has there, and those that are taken along, from the root."""
    untracked: tuple[Path, ...] = ()
    """With a replay: where the recorded files lay that are in no commit, such as the script."""

    @property
    def culprit(self) -> Commit | None:
        """The first bad commit, if it is known."""
        return self.suspects[0] if len(self.suspects) == 1 else None
