"""In what share futures fail from the moments of a run, and from which moment on all of them do."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from replaydbg.classes import dataclass, field
from replaydbg.errors import NoFutures
from replaydbg.futures.checks import check_numbers, check_recording
from replaydbg.futures.future import FutureVerdict
from replaydbg.futures.grouping import Share, share_of
from replaydbg.futures.pool import FuturePool, FutureRequest
from replaydbg.futures.schedules.decisions import FutureBegin, ThreadPlace
from replaydbg.futures.schedules.given import TRACED, FutureSchedule
from replaydbg.futures.searches.live_moments import LiveMoment, RecordedMoments, RecordedStep, moments_of
from replaydbg.futures.standing import StandingReplay
from replaydbg.launch.processors import processors
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.sources import sources_of

MOST_MOMENTS = 10
"""From so many moments the share is found."""
MOST_HALVED = 24
"""And from at most so many until it is known from which one on all fail."""
COUNT = 32
"""Futures from each of them, unless the user wants another number."""


@dataclass(frozen=True, slots=True)
class CurveWishes:
    """What the user wants."""

    event: int
    """The first moment is before this event."""
    count: int = COUNT
    seed: int = 1
    """The first future's, at each moment."""
    jobs: int | None = None
    timeout: float = 10.0


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The share from one moment."""

    index: int
    """Of the moment among all."""
    moment: LiveMoment
    share: Share
    inconclusive: int


@dataclass(frozen=True, slots=True)
class NoReturn:
    """The step after which all futures fail."""

    point: CurvePoint
    """The first moment from which all fail."""
    before: CurvePoint
    """The last one before it that was looked at."""
    step: RecordedStep | None
    """What happened in between; None: more than one step."""
    left: ThreadPlace
    """Where the thread stood that made the event or gave way."""
    entered: ThreadPlace
    """Where the thread stood that went on."""


@dataclass(frozen=True, slots=True)
class FutureCurve:
    """The shares over the moments of a run."""

    name: str
    """The recording's name in commands."""
    count: int
    """Futures from each moment."""
    points: tuple[CurvePoint, ...]
    """In the order of the moments."""
    moments: int
    """How many moments there are."""
    no_return: NoReturn | None
    """None: all failed from the first moment on, or some did not from the last one."""
    threads: dict[int, str]
    sources: dict[str, bytes]
    seconds: float

    @property
    def is_certain(self) -> bool:
        """Whether all fail from the first moment on."""
        return all(_all_fail(each) for each in self.points)


def find_curve(
    path: Path, wishes: CurveWishes, *, name: str, seen: Callable[[CurvePoint], None] = lambda _: None
) -> FutureCurve:
    """Run futures from several moments of the recording at `path`, called `name` in commands.

    `seen` is called with each point. Raises what `run_futures` does.
    """
    check_numbers(wishes.count, wishes.jobs, wishes.seed, wishes.timeout)
    began = time.monotonic()
    with open_recording(path) as recording:
        check_recording(recording, name, wishes.event)
        search = _CurveSearch(recording, name, wishes, seen, moments_of(recording, wishes.event))
        points, no_return = search.run()
        threads, sources = search.of.threads, sources_of(recording)
    seconds = time.monotonic() - began
    return FutureCurve(name, wishes.count, points, len(search.of.moments), no_return, threads, sources, seconds)


def _all_fail(point: CurvePoint) -> bool:
    return 0 < point.share.decided == point.share.failed


@dataclass(slots=True)
class _CurveSearch:
    recording: Recording
    name: str
    wishes: CurveWishes
    seen: Callable[[CurvePoint], None]
    of: RecordedMoments
    points: dict[int, CurvePoint] = field(default_factory=dict)

    def run(self) -> tuple[tuple[CurvePoint, ...], NoReturn | None]:
        if not self.of.moments:
            raise NoFutures(self.name, "its program makes no call after that moment, so nothing can differ")
        self._look(0)
        self._look(self._last())
        self._halved()
        while len(self.points) < MOST_MOMENTS and (middle := self._steepest()) is not None:
            self._look(middle)
        no_return = self._halved()  # a moment in between may have shown that not all fail from there on
        ordered = tuple(self.points[index] for index in sorted(self.points))
        return ordered, self._explained(no_return) if no_return is not None else None

    def _last(self) -> int:
        """Return the last moment from which there are futures: behind the program's last call nothing follows."""
        last = len(self.of.moments) - 1
        while last > 0:
            try:
                self._look(last)
            except NoFutures:
                last -= 1
                continue
            return last
        return 0

    def _look(self, index: int) -> CurvePoint:
        if index in self.points:
            return self.points[index]
        wishes, moment = self.wishes, self.of.moments[index]
        with ExitStack() as stack:
            pool = self._pool(moment, stack)
            seeds = range(wishes.seed, wishes.seed + wishes.count)
            trials = pool.run([FutureRequest(seed, FutureSchedule()) for seed in seeds])
        futures = [each.future for each in trials]
        inconclusive = sum(1 for each in futures if each.verdict is FutureVerdict.INCONCLUSIVE)
        point = CurvePoint(index, moment, share_of(futures), inconclusive)
        self.points[index] = point
        self.seen(point)
        return point

    def _pool(self, moment: LiveMoment, stack: ExitStack) -> FuturePool:
        standing = StandingReplay(self.recording, self.name, moment.event, stack, switches=moment.switches)
        jobs = self.wishes.jobs or processors()
        return FuturePool(self.recording, self.name, standing, jobs, self.wishes.timeout)

    def _halved(self) -> tuple[CurvePoint, CurvePoint] | None:
        """Return the last moment from which some do not fail, and the next one, from which on all do; look in between.

        None: there are not both.
        """
        for _ in range(MOST_HALVED):
            ordered = [each for _, each in sorted(self.points.items()) if each.share.decided]
            place = next((place for place in reversed(range(len(ordered))) if not _all_fail(ordered[place])), None)
            if place is None or place + 1 == len(ordered):
                return None
            low, high = ordered[place], ordered[place + 1]
            # Where none has a verdict, such as while a file is read, says nothing about the others.
            between = [index for index in range(low.index + 1, high.index) if index not in self.points]
            if not between:
                break
            self._look(between[len(between) // 2])
        return low, high

    def _steepest(self) -> int | None:
        """Return the moment in the middle of where the share changes most, and otherwise of the longest stretch."""
        ordered = [each for _, each in sorted(self.points.items()) if each.share.decided]
        pairs = [(one, two) for one, two in pairwise(ordered) if two.index - one.index > 1]
        for one, two in sorted(pairs, key=lambda pair: (-round(abs(_rise(*pair)), 1), pair[0].index - pair[1].index)):
            between = [index for index in range(one.index + 1, two.index) if index not in self.points]
            if between:
                return between[len(between) // 2]
        return None

    def _explained(self, pair: tuple[CurvePoint, CurvePoint]) -> NoReturn:
        before, point = pair
        none = ThreadPlace("", 0, "")
        if point.index - before.index > 1:
            return NoReturn(point, before, None, none, none)
        step = self.of.steps[before.index]
        with ExitStack() as stack:
            (trial,) = self._pool(before.moment, stack).run([FutureRequest(self.wishes.seed, TRACED)])
        begin = next((each for each in trial.decisions if isinstance(each, FutureBegin)), None)
        places = begin.places if begin is not None else {}
        return NoReturn(point, before, step, places.get(step.lane, none), places.get(step.to, none))


def _rise(one: CurvePoint, two: CurvePoint) -> float:
    return two.share.failed / max(two.share.decided, 1) - one.share.failed / max(one.share.decided, 1)
