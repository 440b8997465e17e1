"""The verdict about one recording at one commit, and what it depends on: plain values."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from replaydbg.commits.depends import Dependency
from replaydbg.events.verdict import Verdict


class CodeState(Enum):
    """What a commit's code does with the inputs of a recording."""

    FAILS = "fails"
    """It fails as recorded; of a recording that passed: it fails."""
    PASSES = "passes"
    """It does not fail."""
    DIFFERS = "fails differently"
    """It fails, but not as recorded."""
    UNKNOWN = "inconclusive"
    """It cannot be tested with this recording, for the reason given."""

    @property
    def is_failure(self) -> bool:
        """Whether the code fails."""
        return self in (CodeState.FAILS, CodeState.DIFFERS)


def state_of_verdict(verdict: Verdict, *, is_other_failure: bool) -> CodeState:
    """Return the state for the verdict of a replay."""
    if is_other_failure:
        return CodeState.DIFFERS
    return {Verdict.GOOD: CodeState.PASSES, Verdict.BAD: CodeState.FAILS, Verdict.UNDECIDED: CodeState.UNKNOWN}[verdict]


@dataclass(frozen=True, slots=True)
class CodeReads:
    """What a verdict depends on besides its recording: the questions that the replays asked of today's files."""

    inside: tuple[tuple[str, str], ...]
    """Of the commit: `stat`, `listdir`, `read` or `data`, and the path from the repository's root (empty: the root)."""
    outside: tuple[Dependency, ...]
    """Of the machine: modules that are not part of the repository."""
    is_whole: bool = False
    """Whether it depends on the whole tree of the commit: the questions are unknown, or a build may read anything."""

    @property
    def name(self) -> str:
        """A name that equal values share."""
        text = repr((self.inside, [tuple(each) for each in self.outside], self.is_whole))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Case:
    """A recording whose behaviour is followed over the commits."""

    name: str
    """How commands name it."""
    path: Path
    """Its file."""
    what: str = ""
    """How it failed when it was recorded, in a few words."""
    command: str = ""
    """The program and its arguments."""
    problem: str = ""
    """Why it cannot be tested at any commit; empty: it can."""


@dataclass(frozen=True, slots=True)
class CommitVerdict:
    """The verdict about one recording at one commit."""

    state: CodeState
    why: str
    """The reason, in a few words."""
    seconds: float = 0.0
    """How long the replays took; 0: there were none."""
    found: str = "run"
    """How it was found: `run`; `known` from an earlier night; `equal` code at another commit; `none`: not at all."""
