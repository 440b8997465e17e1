"""Group futures that ended alike, and say in what share they fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replaydbg.classes import dataclass, field
from replaydbg.futures.future import Future, FutureVerdict
from replaydbg.hunt.rate import interval

MOST_ENDINGS = 8
"""Futures that ended at the same line are divided by the text of the exception, and by the last line of their output,
if there are at most so many different ones.
"""

_ORDER = {FutureVerdict.FAILED: 0, FutureVerdict.PASSED: 1, FutureVerdict.INCONCLUSIVE: 2}


@dataclass(frozen=True, slots=True)
class FutureGroup:
    """Futures that ended alike."""

    ending: str
    """How they ended, in one line."""
    verdict: FutureVerdict
    last_line: str
    """The last line that they printed; empty if they differ in it."""
    futures: tuple[Future, ...]
    """In the order of their seeds."""

    @property
    def outputs(self) -> int:
        """How many different outputs they have."""
        return len({each.digest for each in self.futures})

    @property
    def example(self) -> Future:
        """The one that stands for them."""
        return self.futures[0]


@dataclass(frozen=True, slots=True)
class Share:
    """In what share futures fail."""

    failed: int
    decided: int
    """Those that failed or passed; inconclusive ones are neither."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds of the share with a confidence of 95 %."""
        return interval(self.failed, self.decided)


@dataclass(slots=True)
class KeptEndings:
    """Says of which futures a recording is to be kept."""

    keeps_all: bool
    """Whether each is kept that failed or passed; otherwise one example of each ending is."""
    _known: set[tuple[FutureVerdict, str, str]] = field(default_factory=set)

    def takes(self, future: Future) -> bool:
        """Return whether one is to be kept; if it is, its ending is known from now on."""
        if future.verdict is FutureVerdict.INCONCLUSIVE:
            return False  # it ends where a recording cannot go on, and has no end of its own
        kind = (future.verdict, future.kind, f"{future.ending}\n{future.last_line}")
        alike = sum(1 for verdict, ending, _ in self._known if (verdict, ending) == kind[:2])
        if not self.keeps_all and (kind in self._known or alike >= MOST_ENDINGS):
            return False
        self._known.add(kind)
        return True


def share_of(futures: Iterable[Future]) -> Share:
    """Return the share that failed."""
    verdicts = [each.verdict for each in futures]
    failed = verdicts.count(FutureVerdict.FAILED)
    return Share(failed, failed + verdicts.count(FutureVerdict.PASSED))


def grouped(futures: Sequence[Future]) -> list[FutureGroup]:
    """Return the groups: failures first, then those that passed, then inconclusive ones; the largest ones first."""
    by_kind: dict[tuple[FutureVerdict, str], list[Future]] = {}
    for each in sorted(futures, key=lambda each: each.seed):
        by_kind.setdefault((each.verdict, each.kind), []).append(each)
    groups: list[FutureGroup] = []
    for (verdict, kind), members in by_kind.items():
        groups += _divided(verdict, kind, members)
    return sorted(groups, key=lambda each: (_ORDER[each.verdict], -len(each.futures), each.example.seed))


def _divided(verdict: FutureVerdict, kind: str, members: list[Future]) -> list[FutureGroup]:
    by_details: dict[tuple[str, str], list[Future]] = {}
    for each in members:
        by_details.setdefault((each.ending, each.last_line), []).append(each)
    if verdict is FutureVerdict.INCONCLUSIVE or len(by_details) > MOST_ENDINGS:
        return [FutureGroup(kind, verdict, "", tuple(members))]
    return [FutureGroup(ending, verdict, line, tuple(some)) for (ending, line), some in by_details.items()]
