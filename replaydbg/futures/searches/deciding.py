"""Which deviations from the usual schedule make a future fail: as few as possible."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from replaydbg.bisect.ddmin import minimal
from replaydbg.classes import NamedTuple, dataclass, replace
from replaydbg.events.verdict import Verdict
from replaydbg.futures.future import Future, FutureVerdict, RunningFuture
from replaydbg.futures.grouping import FutureGroup
from replaydbg.futures.pool import FuturePool, FutureRequest, FutureTrial
from replaydbg.futures.schedules.decisions import Deviating, deviations_of
from replaydbg.futures.schedules.given import Deviation, with_deviations
from replaydbg.log.sources import sources_of

MOST_SHRUNK = 4
"""In how many groups of failed futures what decides is looked for."""
MOST_STARTS = 8
"""How many futures of a group are looked at, for those that deviate least from the usual schedule."""
MOST_TRIED = 3
"""And how many of these are shrunk, until a single deviation is left: the smallest part of each may be another one."""


class DecidingSwitch(NamedTuple):
    """A deviation that decides, as it was met."""

    decision: Deviating
    without: FutureVerdict
    """What comes of the future without this deviation, and with all others."""


@dataclass(frozen=True, slots=True)
class DecidingSchedule:
    """The fewest deviations from the usual schedule with which a future fails as the others of its group do."""

    ending: str
    """How it fails, in a few words: Future.kind."""
    request: FutureRequest
    """With these deviations."""
    future: Future
    switches: tuple[DecidingSwitch, ...]
    """Empty: the usual schedule fails, too."""
    usual: Future
    """The future with the usual schedule."""
    threads: dict[int, str]
    """The names of the threads, by their numbers."""
    deviated: int
    """How many deviations the future had that was shrunk."""
    trials: int
    """How many futures were run for it."""
    sources: dict[str, bytes]
    """The program's sources, by file."""
    recording: Path | None = None
    """Of the future with these deviations."""
    seconds: float = 0.0

    @property
    def is_confirmed(self) -> bool:
        """Whether it fails with these deviations, and does not without any one of them."""
        return self.future.kind == self.ending and all(
            each.without is not FutureVerdict.FAILED for each in self.switches
        )


def deciding_schedules(
    pool: FuturePool,
    groups: Iterable[FutureGroup],
    traced: Callable[[Future], FutureRequest],
    keep: Callable[[RunningFuture, Future], Path | None],
) -> Iterator[DecidingSchedule]:
    """Yield what decides in each of the first groups that failed.

    `traced` makes a future again, with its decisions; `keep` writes the recording of a future.
    """
    failed: dict[str, FutureGroup] = {}
    for group in groups:
        if group.verdict is FutureVerdict.FAILED:
            failed.setdefault(group.example.kind, group)
    for group in list(failed.values())[:MOST_SHRUNK]:
        began = time.monotonic()
        found = deciding_schedule(pool, group, traced)
        if found is None:
            continue
        paths: list[Path | None] = []
        pool.run([found.request], lambda running, future, to=paths: to.append(keep(running, future)))  # type: ignore[misc]
        yield replace(found, recording=paths[0], seconds=time.monotonic() - began)


def deciding_schedule(
    pool: FuturePool, group: FutureGroup, traced: Callable[[Future], FutureRequest]
) -> DecidingSchedule | None:
    """Return what decides in a group of failed futures.

    None: none of those that were tried fails with its own decisions when they are given.
    """
    search = _DecidingSearch(pool, group.example.kind, pool.count)
    best: DecidingSchedule | None = None
    for seed, deviations in search.starts([traced(each) for each in group.futures[:MOST_STARTS]])[:MOST_TRIED]:
        if search.fails(seed, [deviations])[0] is Verdict.BAD:
            found = search.shrunk(seed, deviations)
            best = found if best is None or len(found.switches) < len(best.switches) else best
        if best is not None and len(best.switches) <= 1:
            break
    return replace(best, trials=pool.count - search.began) if best is not None else None


@dataclass(slots=True)
class _DecidingSearch:
    pool: FuturePool
    ending: str
    began: int

    def starts(self, requests: Sequence[FutureRequest]) -> list[tuple[int, tuple[Deviation, ...]]]:
        """Return the seeds and deviations of these futures, those with the fewest deviations first."""
        trials = self.pool.run(requests)
        found = [(trial.future.seed, deviations_of(trial.decisions)) for trial in trials]
        return sorted(found, key=lambda each: len(each[1]))

    def fails(self, seed: int, sets: Sequence[tuple[Deviation, ...]]) -> list[Verdict]:
        """Say of each set of deviations whether the future fails with it as the group does."""
        trials = self.pool.run([FutureRequest(seed, with_deviations(each)) for each in sets])
        return [self._verdict(trial) for trial in trials]

    def _verdict(self, trial: FutureTrial) -> Verdict:
        if trial.future.verdict is FutureVerdict.FAILED and trial.future.kind == self.ending:
            return Verdict.BAD
        return Verdict.GOOD if trial.future.verdict is FutureVerdict.PASSED else Verdict.UNDECIDED

    def shrunk(self, seed: int, deviations: tuple[Deviation, ...]) -> DecidingSchedule:
        """Return the fewest of these deviations, confirmed with and without each."""
        at_once = self.pool.jobs
        kept = minimal(deviations, lambda sets: self.fails(seed, sets), at_once=at_once) if deviations else ()
        request = FutureRequest(seed, with_deviations(kept, traces=True))
        without = [with_deviations(tuple(other for other in kept if other is not each)) for each in kept]
        last, usual, *others = self.pool.run(
            [request, *(FutureRequest(seed, each) for each in (with_deviations(()), *without))]
        )
        met = _met(last.decisions)
        switches = tuple(
            DecidingSwitch(met[each[:4]], other.future.verdict)
            for each, other in zip(kept, others, strict=True)
            if each[:4] in met
        )
        names = self.pool.thread_names(request)
        trials = self.pool.count - self.began
        return DecidingSchedule(
            self.ending,
            request,
            last.future,
            switches,
            usual.future,
            names,
            len(deviations),
            trials,
            sources_of(self.pool.recording),
        )


def _met(decisions: Sequence[object]) -> dict[tuple[int, ...], Deviating]:
    """Return the decisions that deviate from the usual schedule, by kind and place."""
    found: dict[tuple[int, ...], Deviating] = {}
    for each in decisions:
        if isinstance(each, Deviating) and each.deviation is not None:
            found[each.deviation[:4]] = each
    return found
