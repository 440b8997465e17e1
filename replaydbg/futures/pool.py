"""Futures whose schedules are given: several run at once, and their results come in the order of the requests."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence

from replaydbg.classes import NamedTuple, dataclass
from replaydbg.events.records import Control, ControlKind
from replaydbg.futures.future import Future, RunningFuture
from replaydbg.futures.schedules.decisions import Decision
from replaydbg.futures.schedules.given import FutureSchedule
from replaydbg.futures.standing import StandingReplay
from replaydbg.log.reader import Recording

_LOOK = 50
"""Milliseconds between two looks whether one takes too long."""


class FutureRequest(NamedTuple):
    """A future that is to be run."""

    seed: int
    """For what it draws: random numbers, and a schedule that is not given."""
    schedule: FutureSchedule


class FutureTrial(NamedTuple):
    """A future that has run."""

    future: Future
    decisions: list[Decision]
    """Those that its schedule was to report."""


def await_ended(running: list[RunningFuture], timeout: float) -> list[RunningFuture]:
    """Wait until one has ended, or has computed for so many seconds; return those."""
    poll = select.poll()
    for each in running:
        poll.register(each.pidfd, select.POLLIN)
    while True:
        ended = {fd for fd, _ in poll.poll(_LOOK)}
        over = [each for each in running if each.pidfd in ended or each.is_over(timeout)]
        if over:
            return over


@dataclass(slots=True)
class FuturePool:
    """Runs futures from one moment."""

    recording: Recording
    name: str
    """The recording's name in commands."""
    standing: StandingReplay
    jobs: int
    """How many run at once."""
    timeout: float
    """Seconds that each may compute."""
    faults: tuple[bytes, ...] = ()
    """What differs in each, as the core takes it."""
    count: int = 0
    """How many have been run."""

    def run(
        self, requests: Sequence[FutureRequest], done: Callable[[RunningFuture, Future], None] = lambda *_: None
    ) -> list[FutureTrial]:
        """Run them; `done` is called with each as it ends, while its files are open. Raises NoFutures."""
        results: dict[int, FutureTrial] = {}
        running: list[tuple[int, RunningFuture]] = []
        left = iter(enumerate(requests))
        try:
            while True:
                while len(running) < self.jobs and (new := next(left, None)) is not None:
                    number, (seed, schedule) = new
                    running.append((number, RunningFuture(self.standing, seed, schedule, self.faults)))
                if not running:
                    break
                ended = await_ended([each for _, each in running], self.timeout)
                for pair in [pair for pair in running if pair[1] in ended]:
                    results[pair[0]] = self._finish(pair[1], done)
                    running.remove(pair)
        finally:
            for _, each in running:
                each.kill()
        return [results[number] for number in range(len(requests))]

    def _finish(self, running: RunningFuture, done: Callable[[RunningFuture, Future], None]) -> FutureTrial:
        try:
            self.count += 1
            future = running.finish(self.recording, timeout=0.0 if running.has_ended() else self.timeout)
            done(running, future)
            return FutureTrial(future, running.decisions())
        finally:
            running.kill()

    def thread_names(self, request: FutureRequest) -> dict[int, str]:
        """Run a future once more; return the names of its threads, by their numbers."""
        names = {0: "MainThread"}

        def read(running: RunningFuture, _: Future) -> None:
            for entry in running.entries(self.recording.header.gates):
                if isinstance(entry, Control) and entry.kind is ControlKind.LANE_STARTED and entry.number is not None:
                    names[entry.number] = entry.name or f"thread {entry.number}"

        self.run([request], read)
        return names
