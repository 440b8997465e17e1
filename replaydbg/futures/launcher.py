"""Run futures of a recorded program: many continuations from one moment of its past."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from replaydbg.classes import dataclass, field
from replaydbg.errors import CannotResume, NoFutures, NoSuchMoment, UsageError
from replaydbg.events.records import Control, ControlKind, Event
from replaydbg.events.run_facts import GateRow
from replaydbg.futures.future import Future, FutureVerdict, RunningFuture
from replaydbg.futures.grouping import MOST_ENDINGS, FutureGroup, Share, grouped, share_of
from replaydbg.futures.kept_futures import keep
from replaydbg.futures.standing import StandingReplay
from replaydbg.gates.row import DRAWN
from replaydbg.gates.table import OWN
from replaydbg.launch.processors import processors
from replaydbg.log.reader import Recording, open_recording
from replaydbg.record.result import RecordResult
from replaydbg.resume.preparation import check_alone, check_running

FIRST_SEED = 1
TIMEOUT = 10.0
"""Seconds that a future may compute."""
_LOOK = 50
"""Milliseconds between two looks whether one takes too long."""
_DRAWN = frozenset(row.full_name for row in OWN if row.flags & DRAWN)
_OF_SEVERAL = "it is one of several processes that were recorded together, and the others would be missing"
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


@dataclass(frozen=True, slots=True)
class Futures:
    """What came of them."""

    name: str
    """The recording's name in commands."""
    event: int
    """The last event that all have in common."""
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
    store: Path
    standing: StandingReplay
    seen: Callable[[Future], None]
    done: list[Future] = field(default_factory=list)
    kept: dict[int, Path] = field(default_factory=dict)
    known: set[tuple[FutureVerdict, str, str]] = field(default_factory=set)
    """How those ended of which a recording is kept."""

    def finish(self, running: RunningFuture, timeout: float = 0.0) -> None:
        """Take what came of one, and keep it if it is wanted."""
        future = running.finish(self.recording, timeout=timeout)
        self.done.append(future)
        kind = (future.verdict, future.kind, f"{future.ending}\n{future.last_line}")
        if self._is_wanted(future, kind):
            self.known.add(kind)
            path = self._keep(running, future).path
            self.kept[future.seed] = path
        self.seen(future)

    def _is_wanted(self, future: Future, kind: tuple[FutureVerdict, str, str]) -> bool:
        if future.verdict is FutureVerdict.INCONCLUSIVE:
            return False  # it ends where a recording cannot go on, and has no end of its own
        alike = sum(1 for verdict, ending, _ in self.known if (verdict, ending) == kind[:2])
        return self.wishes.keeps_all or (kind not in self.known and alike < MOST_ENDINGS)

    def _keep(self, running: RunningFuture, future: Future) -> RecordResult:
        directory = self.wishes.output
        output = directory / f"future-{future.seed}.rdbg" if directory is not None else None
        return keep(self.recording, self.name, self.standing.event, running, future, output, self.store)


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
        _check_recording(recording, name, wishes)
        standing = StandingReplay(recording, name, wishes.event, stack)
        replayed = time.monotonic() - began
        if wishes.output is not None:
            wishes.output.mkdir(parents=True, exist_ok=True)
        batch = _Batch(recording, name, wishes, store, standing, seen)
        is_fixed = _run(batch)
    return Futures(
        name,
        standing.event,
        tuple(grouped(batch.done)),
        batch.kept,
        share_of(batch.done),
        time.monotonic() - began,
        replayed,
        is_fixed,
    )


def _check(wishes: FutureWishes) -> None:
    if wishes.count < 1:
        raise UsageError(f"N must be at least 1 (got {wishes.count})")
    if wishes.jobs is not None and wishes.jobs < 1:
        raise UsageError(f"--jobs must be at least 1 (got {wishes.jobs})")
    if wishes.seed < 0 or wishes.seed + wishes.count > 1 << 63:
        raise UsageError(f"--seed must be from 0 to 2**63 - N (got {wishes.seed})")
    if not 0 < wishes.timeout < float("inf"):
        raise UsageError(f"--timeout must be a number of seconds above 0 (got {wishes.timeout:g})")


def _check_recording(recording: Recording, name: str, wishes: FutureWishes) -> None:
    try:
        check_alone(recording, name)
    except CannotResume:
        raise NoFutures(name, _OF_SEVERAL) from None
    try:
        check_running(recording, name)
    except CannotResume as error:
        raise NoFutures(name, error.reason) from None
    if recording.header.durable:
        raise NoFutures(name, "it was made with --durable, whose log no future can continue")
    events = recording.log_header.crossings if recording.log_header is not None else 0
    if wishes.event > events:
        raise NoSuchMoment(str(wishes.event), f"the recording has {events:,} events")


def _run(batch: _Batch) -> bool:
    """Run all; return whether only the first was, because all others would be the same."""
    seeds = iter(range(batch.wishes.seed, batch.wishes.seed + batch.wishes.count))
    with _begun(batch, next(seeds)) as first:
        _await([first], batch.wishes.timeout)
        batch.finish(first, 0.0 if first.has_ended() else batch.wishes.timeout)
        is_decided = batch.done[0].verdict is not FutureVerdict.INCONCLUSIVE
        if is_decided and is_fixed(first, batch.standing.event, batch.recording.header.gates):
            return True
    jobs = min(batch.wishes.jobs or processors(), batch.wishes.count)
    running: list[RunningFuture] = []
    try:
        while True:
            while len(running) < jobs and (seed := next(seeds, None)) is not None:
                running.append(RunningFuture(batch.standing, seed))
            if not running:
                return False
            for each in _await(running, batch.wishes.timeout):
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
    running = RunningFuture(batch.standing, seed)
    try:
        yield running
    finally:
        running.kill()


def _await(running: list[RunningFuture], timeout: float) -> list[RunningFuture]:
    """Wait until one has ended, or has taken too long; return those."""
    poll = select.poll()
    for each in running:
        poll.register(each.pidfd, select.POLLIN)
    while True:
        ended = {fd for fd, _ in poll.poll(_LOOK)}
        over = [each for each in running if each.pidfd in ended or each.is_over(timeout)]
        if over:
            return over


def is_fixed(running: RunningFuture, event: int, gates: Sequence[GateRow]) -> bool:
    """Whether nothing of a future depends on its seed: it switched no threads, and drew no numbers.

    `event`: the last one before it. `gates`: the rows of its recording.
    """
    for entry in running.own_entries(event, gates):
        if isinstance(entry, Control) and entry.kind in _SWITCHES:
            return False
        if isinstance(entry, Event) and entry.gate in _DRAWN:
            return False
    return True
