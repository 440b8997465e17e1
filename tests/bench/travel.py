"""Record programs and travel through them: opening, seeks, steps back, `why`, and the memory of the processes."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from statistics import quantiles
from subprocess import CalledProcessError, TimeoutExpired
from tempfile import TemporaryDirectory

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.errors import AskFailed, Cancelled, EngineLost, UsageError
from replaydbg.store.directory import index_path
from tests.bench.journeys import Journey
from tests.bench.memory import Held, cpu_milliseconds, held_by_session, peak_of, seconds_queued
from tests.bench.opening import CommandOpening, Phases, open_by_command, phases_noted
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import Finished, run

# The values asked for in the frame of `main` in programs/journey.py, and how long ago each was written.
WHY = {
    "local, just now": "total",
    "global, just now": "ROUNDS",
    "attribute, just now": "accounts['ann'].balance",
    "item, just now": "counts['total']",
    "local, long ago": "opened",
    "global, long ago": "OPENED",
    "attribute, long ago": "accounts['bob'].owner",
    "item, long ago": "counts['opened']",
    "attribute, every million lines": "accounts['cid'].owner",
}


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of the measurement."""

    # Random places for seeks and steps back; a quarter of it for each kind of `why`.
    places: int = 200
    # The share of a program's rounds and objects.
    scale: float = 1.0
    # Seconds after which a single `why` is cancelled, and after which no more of that kind follow; ten times as long
    # for seeks and for steps back.
    patience: float = 30.0
    # Seconds for each command, and for opening.
    timeout: float = 1800.0


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of wall time of one kind of query, in order."""

    each: tuple[float, ...]
    # Number of cancelled ones; they are in `each` with the time until then.
    given_up: int = 0
    # CPU time of the process that arrived there, if known.
    cpu: tuple[float, ...] = ()

    def percentile(self, which: int) -> float | None:
        """Return the value that `which` percent do not exceed; None if nothing was measured."""
        return _percentile(self.each, which)

    def cpu_percentile(self, which: int) -> float | None:
        """Return the same for the CPU time."""
        return _percentile(self.cpu, which)


def _percentile(values: tuple[float, ...], which: int) -> float | None:
    if len(values) < 2:
        return values[0] if values else None
    return quantiles(values, n=100, method="inclusive")[which - 1]


@dataclass(frozen=True, slots=True)
class Travelled:
    """Every figure of one journey. In seconds unless noted."""

    journey: Journey
    rounds: int
    # Load averages of one minute, before and after.
    load: tuple[float, float]
    # The share of the time in which some process of the machine waited for a CPU; None: this is not measured.
    queued: float | None
    plain_wall: float
    plain_cpu: float
    # Peak memory of the plain program in bytes.
    plain_peak: int
    recorded_wall: float
    replay_wall: float
    replay_cpu: float
    lines: int
    events: int
    # Without an index, which is written.
    first: CommandOpening
    # With the index beside the recording: a session in this process; seconds until it knew where the program failed.
    second: float
    second_phases: Phases
    checkpoints: int
    # Seconds of CPU time between two of them, at the end.
    spacing: float
    seek: Times
    back: Times
    # By kind, as in WHY.
    why: dict[str, Times]
    # By the operation before it.
    memory: dict[str, Held]

    @property
    def second_besides(self) -> float:
        """The time besides the second opening's pass, for which it waits only if the run is short."""
        passed = self.second_phases.first_pass
        return self.second - passed if self.second > passed else self.second

    @property
    def memory_ratio(self) -> float:
        """The session's peak memory, as a multiple of the plain program's peak."""
        return max(each.total for each in self.memory.values()) / max(self.plain_peak, 1)


class TravelFailed(Exception):
    """A command or a session failed, so its time is meaningless."""


def travel(journey: Journey, extent: Extent) -> Travelled:
    """Record the program of `journey` and measure everything. Raises TravelFailed."""
    with TemporaryDirectory(prefix="replaydbg-bench-") as name:
        folder, before, noise = Path(name), os.getloadavg()[0], _Queued()
        extent = replace(extent, places=max(2, round(extent.places * journey.share)))
        rounds = _rounds(journey, extent, folder)
        argv = journey.arguments(rounds, extent.scale)
        plain = _run([sys.executable, *argv], folder, extent)
        peak = peak_of([sys.executable, *argv], env=environment(), cwd=folder)
        recording = folder / "journey.rdbg"
        recorded = _run(tool.record(sys.executable, recording, argv), folder, extent)
        replayed = _run(tool.replay(sys.executable, recording), folder, extent)
        if replayed.stderr != recorded.stderr:
            raise TravelFailed("the replay's output is not that of the recording")
        try:
            first = open_by_command(recording, folder / "phases", extent.timeout)
        except (CalledProcessError, TimeoutExpired) as error:
            raise TravelFailed(str(error)) from error
        if not index_path(recording).exists():
            raise TravelFailed("the first opening left no index")
        with phases_noted() as noted:
            began = time.monotonic()
            session = _opened(recording, extent)
            second = time.monotonic() - began
        with session:
            # It opens before the run has been repeated; what follows is measured after that.
            session.await_pass()
            if session.here.why != "exception":
                raise TravelFailed(f"the session does not open at the failure: {session.here}")
            checkpoints, spacing = len(session.travel.timeline), session.travel.spacing
            memory = {"opened": held_by_session()}
            seek = _measured_seeks(session, extent)
            memory["after seeks"] = held_by_session()
            back = _measured_steps_back(session, extent)
            why = {kind: _measured_why(session, extent, place) for kind, place in WHY.items()}
            memory["at the end"] = held_by_session()
            total, events = session.index.total, session.index.events
        return Travelled(
            journey=journey,
            rounds=rounds,
            load=(before, os.getloadavg()[0]),
            queued=noise.share(),
            plain_wall=plain.wall,
            plain_cpu=plain.cpu,
            plain_peak=peak,
            recorded_wall=recorded.wall,
            replay_wall=replayed.wall,
            replay_cpu=replayed.cpu,
            lines=total,
            events=events,
            first=first,
            second=second,
            second_phases=noted[0],
            checkpoints=checkpoints,
            spacing=spacing,
            seek=seek,
            back=back,
            why=why,
            memory=memory,
        )


class _Queued:
    """Measures from its creation on for how much of the time some process of the machine waited for a CPU."""

    def __init__(self) -> None:
        self._began, self._before = time.monotonic(), seconds_queued()

    def share(self) -> float | None:
        now = seconds_queued()
        if now is None or self._before is None:
            return None
        return (now - self._before) / max(time.monotonic() - self._began, 1e-3)


def _opened(recording: Path, extent: Extent) -> Session:
    until = time.monotonic() + extent.timeout

    def in_time(_: WorkProgress) -> None:
        if time.monotonic() > until:
            raise TravelFailed(f"it did not open in {extent.timeout:.0f} s")

    return Session(recording, progress=in_time, ahead=True)


def _rounds(journey: Journey, extent: Extent, folder: Path) -> int:
    if journey.rounds is not None:
        return max(1, round(journey.rounds * extent.scale))
    assert journey.seconds is not None, "one of them is given"
    few, wanted = 200, journey.seconds * extent.scale
    # From a run that takes long enough to be distinguished from the start-up.
    while (taken := _run([sys.executable, *journey.arguments(few, extent.scale)], folder, extent).cpu) < min(
        wanted, 1.0
    ):
        few *= 4
    return max(1, round(few * wanted / taken))


def _run(argv: list[str], folder: Path, extent: Extent) -> Finished:
    finished = run(argv, cwd=folder, env=environment(), timeout=extent.timeout)
    if finished.status != 1 or b"RuntimeError: long ago" not in finished.stderr:
        last = finished.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise TravelFailed(f"{' '.join(argv[1:5])}: {finished.ending}: {' '.join(last)}")
    return finished


def _places(session: Session, *, seed: int, first: float = 0.0) -> Iterator[int]:
    """Yield random counts of lines from the share `first` of the run on, without end; other ones for each seed."""
    generator = random.Random(seed)
    while True:
        yield generator.randint(max(1, int(session.index.total * first)), session.index.end)


def _in_time(extent: Extent, places: Iterator[int]) -> Iterator[int]:
    until = time.monotonic() + 10 * extent.patience
    return takewhile(lambda _: time.monotonic() < until, places)


def _measured_seeks(session: Session, extent: Extent) -> Times:
    taken, cpu = [], []
    for count in islice(_in_time(extent, _places(session, seed=1)), extent.places):
        moment = session.index.moment(count)
        taken.append(_milliseconds(partial(session.seek, moment)))
        cpu.append(cpu_milliseconds(session.cursor.pid))
        _must_stand_at(session, count)
    return Times(tuple(taken), cpu=tuple(cpu))


def _measured_steps_back(session: Session, extent: Extent) -> Times:
    taken, cpu = [], []
    for count in islice(_in_time(extent, _places(session, seed=2)), extent.places):
        session.seek(count)
        taken.append(_milliseconds(session.reverse_step))
        cpu.append(cpu_milliseconds(session.cursor.pid))
        # The program has one lane.
        _must_stand_at(session, max(count - 1, 1))
    return Times(tuple(taken), cpu=tuple(cpu))


def _measured_why(session: Session, extent: Extent, place: str) -> Times:
    taken: list[float] = []
    given_up = 0
    began = time.monotonic()
    wanted = max(extent.places // 4, 1)
    for count in _places(session, seed=3, first=0.5):
        if len(taken) == wanted or time.monotonic() - began > extent.patience:
            break
        session.seek(count)
        frame = next((at for at, each in enumerate(session.here.stack) if each.function == "main"), None)
        if frame is None:
            continue
        before = time.monotonic()
        given_up += not _is_answered(session, place, frame, extent.patience)
        taken.append(1000 * (time.monotonic() - before))
    return Times(tuple(taken), given_up)


def _is_answered(session: Session, place: str, frame: int, patience: float) -> bool:
    """Ask who wrote `place`, and return whether the answer came in time. Raises TravelFailed if it cannot be right."""
    timer = threading.Timer(patience, session.work.cancel)
    timer.start()
    try:
        if not session.run.why(place, frame).count:
            raise TravelFailed(f"nothing wrote {place} before {session.here.moment}")
    except Cancelled:
        return False
    except (UsageError, AskFailed, EngineLost) as error:
        raise TravelFailed(f"why {place} at {session.here.moment}: {error}") from error
    finally:
        timer.cancel()
    return True


def _must_stand_at(session: Session, count: int) -> None:
    if session.here.count != count:
        raise TravelFailed(f"it stands at {session.here.count:,} and not at {count:,}")


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return 1000 * (time.monotonic() - began)
