"""Run futures of a recorded program: many continuations from one moment of its past."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from replaydbg.classes import dataclass, field, replace
from replaydbg.errors import UsageError
from replaydbg.events.records import Control, ControlKind, Event
from replaydbg.events.run_facts import GateRow
from replaydbg.futures.checks import check_numbers, check_recording
from replaydbg.futures.future import Future, FutureVerdict, RunningFuture
from replaydbg.futures.grouping import FutureGroup, KeptEndings, Share, grouped, share_of
from replaydbg.futures.kept_futures import FutureKeeper
from replaydbg.futures.pool import FuturePool, FutureRequest, await_ended
from replaydbg.futures.schedules.bounded import bounded_schedule, steps_of
from replaydbg.futures.schedules.given import TRACED, FutureSchedule, with_deviations
from replaydbg.futures.searches.deciding import DecidingSchedule, deciding_schedules
from replaydbg.futures.searches.local_lines import LocalLines
from replaydbg.futures.searches.systematic import SystematicCount, SystematicSearch
from replaydbg.futures.standing import StandingReplay
from replaydbg.gates.row import DRAWN
from replaydbg.gates.table import OWN
from replaydbg.launch.processors import processors
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.sources import sources_of

FIRST_SEED = 1
TIMEOUT = 10.0
"""Seconds that a future may compute."""
_DRAWN = frozenset(row.full_name for row in OWN if row.flags & DRAWN)
_AT_ONCE = 64
"""Schedules of a systematic search between two looks at what they lead to."""
_LOOPS = frozenset({"select.epoll.poll"})
_SWITCHES = (ControlKind.LANE, ControlKind.LANE_STARTED)


@dataclass(frozen=True, slots=True)
class FutureWishes:
    """What the user wants."""

    event: int
    """They begin before this event, which is the first that may differ."""
    count: int
    """How many."""
    seed: int = FIRST_SEED
    """The first one's seed; the others have the numbers that follow."""
    keeps_all: bool = False
    """Whether each is kept; otherwise one example of each group is."""
    output: Path | None = None
    """The directory for what is kept (default: the store)."""
    jobs: int | None = None
    """How many run at once (default: the number of processors)."""
    timeout: float = TIMEOUT
    shrinks: bool = False
    """Whether the schedules of failing futures are shrunk to what decides."""
    depth: int = 0
    """Random priorities with one change less than this; 0: schedules are drawn as with `--chaos`."""
    preemptions: int | None = None
    """Instead of random schedules all with up to so many preemptions are tried, at most `count`."""
    faults: tuple[bytes, ...] = ()
    """What differs in each of them, as the core takes it: see `futures.faults`."""


@dataclass(frozen=True, slots=True)
class Futures:
    """What came of them."""

    name: str
    """The recording's name in commands."""
    event: int
    """The last event that all have in common; of a group see `cut`."""
    groups: tuple[FutureGroup, ...]
    kept: dict[int, Path]
    """The recordings that were kept, by seed."""
    share: Share
    seconds: float
    """How long all of it took."""
    replay_seconds: float
    """Of these, until the past had been replayed."""
    is_fixed: bool = False
    """Whether only one was run, because every other one would be the same."""
    deciding: tuple[DecidingSchedule, ...] = ()
    """What decides in groups of failed futures, if it was wanted."""
    systematic: SystematicCount | None = None
    """Of a systematic search: how far it came. Then the numbers of futures are no seeds."""
    unkept: str = ""
    """Why recordings that were wanted are missing; empty: none is."""
    cut: Mapping[int, int] | None = None
    """Of a group: the position of each process where they begin."""

    @property
    def count(self) -> int:
        """How many were run."""
        return sum(len(each.futures) for each in self.groups)


@dataclass(slots=True)
class _Batch:
    """Futures while they run."""

    recording: Recording
    name: str
    wishes: FutureWishes
    keeper: FutureKeeper
    standing: StandingReplay
    seen: Callable[[Future], None]
    endings: KeptEndings
    done: list[Future] = field(default_factory=list)
    kept: dict[int, Path] = field(default_factory=dict)
    steps: int = 0
    """With a bounded depth: how many steps the program takes."""
    given: dict[int, FutureSchedule] = field(default_factory=dict)
    """Of a systematic search: the schedules, by the numbers of the futures."""

    @property
    def pool(self) -> FuturePool:
        """What runs futures whose schedules are given."""
        wishes = self.wishes
        jobs = wishes.jobs or processors()
        return FuturePool(self.recording, self.name, self.standing, jobs, wishes.timeout, wishes.faults)

    def schedule(self, seed: int, *, traces: bool = False) -> FutureSchedule | None:
        """Return the schedule of the future with this seed."""
        if self.wishes.depth:
            return bounded_schedule(seed, self.wishes.depth, self.steps, traces=traces)
        return TRACED if traces else None

    def traced(self, future: Future) -> FutureRequest:
        """Return the request that makes a future again and reports its decisions."""
        if future.seed in self.given:
            return FutureRequest(self.wishes.seed, self.given[future.seed])
        return FutureRequest(future.seed, self.schedule(future.seed, traces=True) or TRACED)

    def finish(self, running: RunningFuture, timeout: float = 0.0) -> None:
        """Take what came of one when it has ended, or takes too long."""
        self.take(running, running.finish(self.recording, timeout=timeout))

    def take(self, running: RunningFuture, future: Future) -> None:
        """Take what came of one, and keep it if it is wanted."""
        self.done.append(future)
        if self.endings.takes(future):
            path = self._keep(running, future)
            if path is not None:
                self.kept[future.seed] = path
        self.seen(future)

    def deciding(self, groups: Sequence[FutureGroup]) -> Iterator[DecidingSchedule]:
        """Yield what decides in the groups that failed, with a recording of each."""

        def kept(running: RunningFuture, future: Future) -> Path | None:
            return self._keep(running, future, "-shrunk")

        yield from deciding_schedules(self.pool, groups, self.traced, kept)

    def _keep(self, running: RunningFuture, future: Future, suffix: str = "") -> Path | None:
        return self.keeper.keep(running, future, f"future-{future.seed}{suffix}.rdbg")


def run_futures(
    path: Path, wishes: FutureWishes, *, name: str, store: Path, seen: Callable[[Future], None] = lambda _: None
) -> Futures:
    """Run futures of the recording at `path`, called `name` in commands; what is kept goes to `store`.

    `seen` is called with each as it ends. Raises UsageError, NoFutures, NoSuchMoment, CannotRecord, Divergence if the
    replay of the past differs, NoFence, and the errors of `open_recording` and `prepare`.
    """
    _check(wishes)
    began = time.monotonic()
    with open_recording(path) as recording, ExitStack() as stack:
        check_recording(recording, name, wishes.event)
        standing = StandingReplay(recording, name, wishes.event, stack)
        replayed = time.monotonic() - began
        if wishes.output is not None:
            wishes.output.mkdir(parents=True, exist_ok=True)
        keeper = FutureKeeper(recording, name, standing.event, wishes.output, store)
        batch = _Batch(recording, name, wishes, keeper, standing, seen, KeptEndings(wishes.keeps_all))
        systematic = _run_all(batch) if wishes.preemptions is not None else None
        is_fixed = systematic is None and _run(batch)
        groups = tuple(grouped(batch.done))
        deciding = tuple(batch.deciding(groups)) if wishes.shrinks else ()
    seconds = time.monotonic() - began
    share = share_of(batch.done)
    return Futures(
        name,
        standing.event,
        groups,
        batch.kept,
        share,
        seconds,
        replayed,
        is_fixed,
        deciding,
        systematic,
        keeper.unkept,
    )


def _check(wishes: FutureWishes) -> None:
    check_numbers(wishes.count, wishes.jobs, wishes.seed, wishes.timeout)
    if wishes.preemptions is not None and wishes.preemptions < 0:
        raise UsageError(f"--systematic must be at least 0 (got {wishes.preemptions})")


def _run_all(batch: _Batch) -> SystematicCount:
    """Try schedules systematically. Each is given a number, since nothing of it depends on a seed."""
    search = SystematicSearch(batch.wishes.preemptions or 0, LocalLines(sources_of(batch.recording)))
    while (left := batch.wishes.count - len(batch.done)) > 0:
        nodes = search.take(min(left, _AT_ONCE))
        if not nodes:
            break
        first = len(batch.done) + 1
        requests = [FutureRequest(batch.wishes.seed, search.schedule(each)) for each in nodes]
        numbers = {id(request.schedule): number for number, request in enumerate(requests, first)}
        batch.given |= {number: request.schedule for number, request in enumerate(requests, first)}

        def take(running: RunningFuture, future: Future, numbers: dict[int, int] = numbers) -> None:
            batch.take(running, replace(future, seed=numbers[id(running.schedule)]))

        for node, trial in zip(nodes, batch.pool.run(requests, take), strict=True):
            search.add(node, trial.decisions)
    return search.count


def _run(batch: _Batch) -> bool:
    """Run all; return whether only the first was, because all others would be the same."""
    if batch.wishes.depth:
        (usual,) = batch.pool.run(
            [FutureRequest(batch.wishes.seed, with_deviations((), traces=True, notes_points=True))]
        )
        batch.steps = steps_of(usual.decisions)
    seeds = iter(range(batch.wishes.seed, batch.wishes.seed + batch.wishes.count))
    with _begun(batch, next(seeds)) as first:
        await_ended([first], batch.wishes.timeout)
        batch.finish(first, 0.0 if first.has_ended() else batch.wishes.timeout)
        is_decided = batch.done[0].verdict is not FutureVerdict.INCONCLUSIVE
        if is_decided and is_fixed(first, batch.standing.event, batch.recording.header.gates):
            return True
    jobs = min(batch.wishes.jobs or processors(), batch.wishes.count)
    running: list[RunningFuture] = []
    try:
        while True:
            while len(running) < jobs and (seed := next(seeds, None)) is not None:
                running.append(RunningFuture(batch.standing, seed, batch.schedule(seed), batch.wishes.faults))
            if not running:
                return False
            for each in await_ended(running, batch.wishes.timeout):
                running.remove(each)
                try:
                    batch.finish(each, 0.0 if each.has_ended() else batch.wishes.timeout)
                finally:
                    each.kill()
    finally:
        for each in running:
            each.kill()


@contextmanager
def _begun(batch: _Batch, seed: int) -> Iterator[RunningFuture]:
    running = RunningFuture(batch.standing, seed, batch.schedule(seed), batch.wishes.faults)
    try:
        yield running
    finally:
        running.kill()


def is_fixed(running: RunningFuture, event: int, gates: Sequence[GateRow]) -> bool:
    """Whether nothing of a future depends on its seed: it switched no threads, drew no numbers, and ran no event loop.

    `event`: the last one before it. `gates`: the rows of its recording.
    """
    for entry in running.own_entries(event, gates):
        if isinstance(entry, Control) and entry.kind in _SWITCHES:
            return False
        if isinstance(entry, Event) and entry.gate in _DRAWN | _LOOPS:
            return False
    return True
