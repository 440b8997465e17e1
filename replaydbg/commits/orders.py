"""Orders to the process that runs in a worktree, and its answers, as JSON files (see `start.py`)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from replaydbg.events.verdict import Verdict

DOES_NOT_START = ("SyntaxError", "IndentationError", "TabError", "ImportError", "ModuleNotFoundError")
"""Failures of a commit whose code does not even start: as with one that does not build, nothing can be tested."""


@dataclass(frozen=True, slots=True)
class RecordOrder:
    """Record a program."""

    program: list[str]
    """Its command line."""
    output: str
    """The path of the recording."""


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """Replay a recording with the worktree's code."""

    replay: str
    """Its path."""
    sources: dict[str, str]
    """Directories of the recording, and where they are in the worktree."""
    check: str
    """An expression that is true if the program is good; empty: it is bad if it fails as recorded."""
    rate: tuple[int, int] | None
    """How often the recorded code fails with other random numbers, and of how many replays; None: not measured."""
    data: list[str]
    """Recorded paths of the files and directories that come from the commit."""
    is_rest_recorded: bool = False
    """Whether modules outside of `sources` come from the recording, not from today's disk."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The answer to a RecordOrder."""

    status: int
    """The exit code; -n: ended by signal n."""
    recording: str
    """The path of the recording."""


@dataclass(frozen=True, slots=True)
class ReplayedCode:
    """The answer to a ReplayOrder."""

    verdict: Verdict
    why: str
    liberties: tuple[str, ...]
    """The deviations, a line for each."""
    replays: int
    """Number of further replays with other random numbers."""
    rate: tuple[int, int] | None
    """As in the order, or as it was measured."""
    numbers_shift: str
    """The place from which on random numbers served another purpose than recorded; empty: none."""
    clock_shift: str
    """The same for readings of the clock."""
    is_other_failure: bool = False
    """Whether it is undecided because the code fails otherwise than recorded, after it has started."""
    looked: tuple[tuple[str, str], ...] | None = None
    """What the replays of the code asked of today's disk, see `ReplayEnding`; None: unknown."""


@dataclass(frozen=True, slots=True)
class OrderFailed:
    """The answer to an order that could not be executed."""

    error: str


Order = RecordOrder | ReplayOrder
Answer = RecordedRun | ReplayedCode | OrderFailed


def write_order(path: Path, order: Order) -> None:
    """Write an order to a file."""
    path.write_text(json.dumps(asdict(order)), encoding="utf-8")


def read_order(path: Path) -> Order:
    """Return the order in a file."""
    facts = json.loads(path.read_text(encoding="utf-8"))
    return ReplayOrder(**facts | {"rate": _pair(facts["rate"])}) if "replay" in facts else RecordOrder(**facts)


def write_answer(path: Path, answer: Answer) -> None:
    """Write an answer to a file."""
    facts = asdict(answer)
    if isinstance(answer, ReplayedCode):
        facts["verdict"] = answer.verdict.value
    path.write_text(json.dumps(facts), encoding="utf-8")


def read_answer(path: Path) -> Answer:
    """Return the answer in a file."""
    facts = json.loads(path.read_text(encoding="utf-8"))
    if "error" in facts:
        return OrderFailed(**facts)
    if "recording" in facts:
        return RecordedRun(**facts)
    facts |= {
        "verdict": Verdict(facts["verdict"]),
        "liberties": tuple(facts["liberties"]),
        "rate": _pair(facts["rate"]),
        "looked": tuple(map(tuple, facts["looked"])) if facts["looked"] is not None else None,
    }
    return ReplayedCode(**facts)


def _pair(numbers: list[int] | None) -> tuple[int, int] | None:
    return (numbers[0], numbers[1]) if numbers is not None else None
