"""The end of a trial: a replay with some of another run's inputs, or with another order of its threads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum


class TrialOutcome(Enum):
    """The outcome of a trial."""

    PASSES = "passes"
    """Like the good run."""
    FAILS = "fails"
    """Like the bad run."""
    FAILS_DIFFERENTLY = "fails differently"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """How a trial ended."""

    outcome: TrialOutcome
    why: str
    """The program's end, or the reason why the trial is inconclusive."""
    status: int | None = None
    """The exit status; None: the program ended by an exception, or the trial is inconclusive."""
    exception: str | None = None
    """The type of the exception that ended the program, or `deadlock`."""
    liberties: dict[str, int] = field(default_factory=dict)
    """Number of deviations of each kind."""

    def encode(self) -> bytes:
        """Return it for another process."""
        return json.dumps(asdict(self) | {"outcome": self.outcome.value}).encode()

    @classmethod
    def decode(cls, data: bytes) -> TrialEnd:
        """Return what `encode` wrote."""
        facts = json.loads(data)
        return cls(**facts | {"outcome": TrialOutcome(facts["outcome"])})

    def __str__(self) -> str:
        """Return it in one line."""
        is_inconclusive = self.outcome is TrialOutcome.INCONCLUSIVE
        return f"{'cannot be replayed' if is_inconclusive else self.outcome.value}: {self.why}".rstrip(": ")
