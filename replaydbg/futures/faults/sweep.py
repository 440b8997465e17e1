"""Let each call after a moment fail once, one future each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from replaydbg.classes import dataclass, field
from replaydbg.errors import NoFutures, UsageError
from replaydbg.events.records import Event
from replaydbg.events.values import OpenFile
from replaydbg.futures.checks import check_recording
from replaydbg.futures.faults.fault_orders import Fault, MetFault, met_faults
from replaydbg.futures.future import Future, FutureVerdict, RunningFuture
from replaydbg.futures.kept_futures import FutureKeeper
from replaydbg.futures.launcher import FIRST_SEED, TIMEOUT
from replaydbg.futures.pool import await_ended
from replaydbg.futures.standing import StandingReplay
from replaydbg.gates.faults import COLUMNS, FaultColumn
from replaydbg.launch.processors import processors
from replaydbg.log.reader import Recording, open_recording

MOST = 1000
"""Futures of one sweep, unless the user says how many."""
_STREAMS = (0, 1, 2)
_ON_STREAMS = frozenset(f"_io.FileIO.{name}" for name in ("read", "readall", "readinto", "write", "close")) | frozenset(
    f"posix.{name}" for name in ("read", "readinto", "write", "writev", "close")
)


@dataclass(frozen=True, slots=True)
class SweepWishes:
    """What the user wants."""

    event: int
    """They begin before this event, which is the first that may differ."""
    faults: Sequence[tuple[FaultColumn, str]]
    pairs: bool = False
    """Whether a second fault is tried after each single one that passed."""
    most: int = MOST
    """How many futures at most."""
    seed: int = FIRST_SEED
    """The interleaving that all have."""
    keeps_all: bool = False
    output: Path | None = None
    """The directory for what is kept (default: the store)."""
    jobs: int | None = None
    timeout: float = TIMEOUT


@dataclass(frozen=True, slots=True)
class FaultTrial:
    """A future with faults, and what came of it."""

    faults: tuple[Fault, ...]
    met: tuple[MetFault, ...]
    """Where they came."""
    future: Future
    kept: Path | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """What came of all."""

    name: str
    """The recording's name in commands."""
    event: int
    """The last event that all have in common."""
    plain: Future
    """Without a fault."""
    trials: tuple[FaultTrial, ...]
    """By call, fault and number."""
    calls: tuple[tuple[str, int], ...]
    """How often the plain one called what can have faults, by the names of the table."""
    never: tuple[str, ...]
    """Calls that were asked for and never made."""
    is_cut: bool
    """Whether there was more to try."""
    seconds: float
    unkept: str = ""
    """Why recordings that were wanted are missing; empty: none is."""

    def count(self, verdict: FutureVerdict) -> int:
        """How many have a verdict."""
        return sum(1 for each in self.trials if each.future.verdict is verdict)


@dataclass(slots=True)
class _Runs:
    """Futures with faults while they run."""

    recording: Recording
    name: str
    wishes: SweepWishes
    keeper: FutureKeeper
    standing: StandingReplay
    seen: Callable[[Future], None]
    known: set[tuple[object, ...]] = field(default_factory=set)
    """How those ended of which a recording is kept."""
    rows: int = 0
    """Futures in which all of the faults came: only these count against the limit."""
    is_cut: bool = False

    def run(self, wanted: Iterable[tuple[Fault, ...]]) -> Iterator[FaultTrial]:
        """Run one future for each, several at once; yield those in which all of the faults came, as they end."""
        left, running = iter(wanted), dict[RunningFuture, tuple[Fault, ...]]()
        jobs = self.wishes.jobs or processors()
        try:
            while True:
                while (
                    len(running) < min(jobs, self.wishes.most - self.rows) and (faults := next(left, None)) is not None
                ):
                    running[self._begun(faults)] = faults
                if not running:
                    self.is_cut |= self.rows >= self.wishes.most and next(left, None) is not None
                    return
                for each in await_ended(list(running), self.wishes.timeout):
                    faults = running.pop(each)
                    try:
                        trial = self._finished(each, faults)
                    finally:
                        each.kill()
                    if trial is not None:
                        self.rows += 1
                        yield trial
        finally:
            for each in running:
                each.kill()

    def _begun(self, faults: tuple[Fault, ...]) -> RunningFuture:
        coded = [each.encoded(self.recording.header.gates) for each in faults]
        return RunningFuture(self.standing, self.wishes.seed, faults=coded)

    def _finished(self, running: RunningFuture, faults: tuple[Fault, ...]) -> FaultTrial | None:
        future = running.finish(self.recording, timeout=0.0 if running.has_ended() else self.wishes.timeout)
        met = met_faults(running, self.standing.event, self.recording.header.gates)
        if len(met) < len(faults):
            return None
        self.seen(future)
        places = tuple(met[number] for number in range(len(faults)))
        return FaultTrial(faults, places, future, self._kept(running, future, faults))

    def _kept(self, running: RunningFuture, future: Future, faults: tuple[Fault, ...]) -> Path | None:
        kind = (future.verdict, future.kind)
        if future.verdict is FutureVerdict.INCONCLUSIVE or not (self.wishes.keeps_all or kind not in self.known):
            return None
        self.known.add(kind)
        words = "-".join(f"{each.column.name}-{each.fault}-{each.number}" for each in faults)
        return self.keeper.keep(running, future, f"fault-{words}.rdbg")


def run_sweep(
    path: Path, wishes: SweepWishes, *, name: str, store: Path, seen: Callable[[Future], None] = lambda _: None
) -> Sweep:
    """Try the faults on the recording at `path`, called `name` in commands; what is kept goes to `store`.

    `seen` is called with each future as it ends. Raises NoFutures if the program calls nothing that was asked for,
    and all that `run_futures` raises.
    """
    if wishes.most < 1:
        raise UsageError(f"N must be at least 1 (got {wishes.most})")
    began = time.monotonic()
    with open_recording(path) as recording, ExitStack() as stack:
        check_recording(recording, name, wishes.event)
        standing = StandingReplay(recording, name, wishes.event, stack)
        if wishes.output is not None:
            wishes.output.mkdir(parents=True, exist_ok=True)
        plain, calls = _plain(recording, standing, wishes)
        asked = {column.name: column for column, _ in wishes.faults}
        counts = {each: sum(calls[gate] for gate in column.gates) for each, column in asked.items()}
        never = tuple(each for each, count in counts.items() if not count)
        keeper = FutureKeeper(recording, name, standing.event, wishes.output, store)
        runs = _Runs(recording, name, wishes, keeper, standing, seen)
        trials = sorted(runs.run(_singles(wishes, counts)), key=_place)
        if not trials:
            raise NoFutures(name, _never_called(tuple(asked), standing.event, calls, plain))
        if wishes.pairs:
            trials += sorted(runs.run(_pairs(wishes, counts, trials)), key=_place)
        seconds = time.monotonic() - began
        by_column = _by_column(calls)
        return Sweep(name, standing.event, plain, tuple(trials), by_column, never, runs.is_cut, seconds, keeper.unkept)


def _place(trial: FaultTrial) -> list[tuple[str, str, int]]:
    return [(each.column.name, each.fault, each.number) for each in trial.faults]


def _singles(wishes: SweepWishes, counts: dict[str, int]) -> Iterator[tuple[Fault, ...]]:
    for column, fault in wishes.faults:
        # One more: the call at which a future without faults ends is in no log.
        for number in range(1, counts[column.name] + 2):
            yield (Fault(column, fault, number),)


def _pairs(wishes: SweepWishes, counts: dict[str, int], singles: list[FaultTrial]) -> Iterator[tuple[Fault, ...]]:
    """Yield each single fault that the program survives, with each later one."""
    for trial in singles:
        if trial.future.verdict is not FutureVerdict.PASSED:
            continue
        for column, fault in wishes.faults:
            for number in range(1, counts[column.name] + 1):
                yield (*trial.faults, Fault(column, fault, number))


def _plain(recording: Recording, standing: StandingReplay, wishes: SweepWishes) -> tuple[Future, Counter[str]]:
    """Run a future without a fault; return it, and how often it called each gate."""
    running = RunningFuture(standing, wishes.seed)
    try:
        await_ended([running], wishes.timeout)
        future = running.finish(recording, timeout=0.0 if running.has_ended() else wishes.timeout)
        entries = running.own_entries(standing.event, recording.header.gates)
        return future, Counter(each.gate for each in entries if isinstance(each, Event) and not _is_of_stream(each))
    finally:
        running.kill()


def _is_of_stream(event: Event) -> bool:
    first = event.arguments[0] if event.arguments else None
    return event.gate in _ON_STREAMS and (first.fd if isinstance(first, OpenFile) else first) in _STREAMS


def _by_column(calls: Counter[str]) -> tuple[tuple[str, int], ...]:
    counts = [(column.name, sum(calls[gate] for gate in column.gates)) for column in COLUMNS]
    return tuple((name, count) for name, count in counts if count)


def _never_called(names: tuple[str, ...], event: int, calls: Counter[str], plain: Future) -> str:
    if plain.verdict is FutureVerdict.INCONCLUSIVE:
        return f"without a fault its program {plain.why}, which no future has"
    made = ", ".join(f"{name} ({count:,})" for name, count in _by_column(calls))
    if not made:
        return f"its program makes no call after event {event:,} that can fail"
    return f"its program makes no {' or '.join(names)} call after event {event:,}; it calls: {made}"
