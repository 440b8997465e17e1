"""Travel to moments: a copy of the nearest checkpoint runs the rest of the way."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from pathlib import Path

from replaydbg.engine import process_memory
from replaydbg.engine.checkpoints import Checkpoints
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.engine_start import Engine
from replaydbg.engine.pass_ahead import PassAhead
from replaydbg.engine.protocol import Judged, RunOrder, Watch
from replaydbg.engine.reports import FENCE, EndReport, Where
from replaydbg.engine.scan import Scan, Scanned
from replaydbg.errors import EngineLost, ForgedMessage, NoFence
from replaydbg.launch.processors import processors

SPACING = 0.06
"""Seconds of CPU time between two checkpoints: half of it is what a seek takes on average."""

MOST = 400
"""The most checkpoints; in a longer run every other one is dropped, and new ones are made half as often."""

_CLOSE = 400
"""Lines that run in less time than it takes to clone a process."""


class Travel:
    """The processes of a session: the checkpoints along the run, and the way to make another process."""

    def __init__(
        self,
        path: Path,
        *,
        current_source: bool = False,
        most: int = MOST,
        spacing: float = SPACING,
        most_memory: int | process_memory.MemoryBudget = 0,
        follows: bool = False,
        last_line: int = 0,
        course: bool = False,
    ) -> None:
        """Start the recording at `path`; the program is before its first line then.

        `most_memory`: see MemoryLimit. With `follows` it is a live directory, and the replay runs behind the program.
        `last_line`: the count of lines at which the run ends, of a program that was killed while it computed; 0: where
        the recording does. `course`: see Engine.
        """
        self.last_line = last_line
        """The same for processes that are started again."""
        self._engine = Engine(path, current_source=current_source, follows=follows, last_line=last_line, course=course)
        self._set_up(path, current_source, most, spacing, most_memory)
        try:
            self._start()
        except BaseException:
            self._engine.close()
            raise

    def _set_up(
        self,
        path: Path,
        current_source: bool,
        most: int,
        spacing: float,
        most_memory: int | process_memory.MemoryBudget,
    ) -> None:
        self.path, self._current_source = path, current_source
        self.first_event = 0
        """The last event before the first pass, if another session had run the program up to there."""
        self._most_seconds = math.inf
        self.timeline = Checkpoints(most)
        self.spacing = spacing
        self.memory = process_memory.MemoryLimit(most_memory)
        self.is_limited_by = ""
        """The reason why checkpoints are further apart than usual: `number` or `memory`; empty: they are not."""
        self.idle: Callable[[], None] = lambda: None
        """Called now and then while something runs; an exception from it cancels that."""
        self.losses = 0
        """The number of processes that ended unexpectedly; others took their places."""
        self._lines_per_second = 1e6
        self._ahead: PassAhead | None = None
        self._is_closed = False

    @classmethod
    def taken_over(cls, path: Path, engine: Engine, standing: list[EngineProcess]) -> Travel:
        """Return the processes of a first pass that another process has made."""
        travel = cls.__new__(cls)
        travel._engine, travel.last_line = engine, 0
        travel._set_up(path, False, MOST, SPACING, 0)
        for each in standing:
            travel.timeline.add(each)
        return travel

    @classmethod
    def branched(
        cls,
        path: Path,
        engine: Engine,
        standing: list[EngineProcess],
        *,
        spacing: float,
        memory: int | process_memory.MemoryBudget,
        most_seconds: float,
    ) -> Travel:
        """Return the processes of a child of another session's program; those before the fork stand already.

        `most_seconds`: CPU time that its program may take between two events.
        """
        travel = cls.__new__(cls)
        travel._engine, travel.last_line = engine, 0
        travel._set_up(path, False, MOST, spacing, memory)
        travel.first_event = travel.root.event
        travel._most_seconds = most_seconds
        for each in standing:
            travel.timeline.add(each)
        return travel

    def descriptors(self) -> list[int]:
        """Return the descriptors that another process needs to take the engine over, besides the checkpoints."""
        return self._engine.descriptors()

    @property
    def keeper(self) -> int:
        """The number of the keeper's process."""
        return self._engine.keeping.pid

    @property
    def engine(self) -> Engine:
        """The engine of the session."""
        return self._engine

    @property
    def root(self) -> EngineProcess:
        """The process from which all others come; it runs the whole program once."""
        assert self._engine.root is not None, "another process had it"
        return self._engine.root

    @property
    def why_it_ends(self) -> str:
        """Why the recording ends before the program's own end; empty if it does not."""
        return self._engine.why_it_ends

    def close(self) -> None:
        """End all processes; again is harmless."""
        self._is_closed = True
        if self._ahead is not None:
            self._ahead.stop()
        self.timeline.close()
        self._engine.close()

    def first_pass(self, idle: Callable[[], None] | None = None) -> EndReport:
        """Run the whole program once, leaving checkpoints behind; return how it ended.

        `idle` is called now and then, and may raise to cancel (default: the attribute).
        """
        began = time.monotonic()
        root = self.root
        idle = self._watched(root, idle or self.idle)
        ended = root.run(RunOrder(spacing=self.spacing), left=self._keeping(root), idle=idle)
        if not isinstance(ended, EndReport):
            raise self._engine.keeping.forged("it stopped although no stop was requested")
        self._lines_per_second = max(ended.count, 1) / max(time.monotonic() - began, 1e-3)
        self._fit(root.pid)
        root.close()
        return ended

    def fit(self) -> None:
        """Drop checkpoints that take more than the memory limit, which has become smaller."""
        # A first pass in its own thread does that by itself.
        if self._ahead is None or self._ahead.is_over:
            self._fit(0)

    def _fit(self, runner: int) -> None:
        while self.memory.is_short_now(runner, self.timeline.processes()):
            if not self._thin("memory"):
                break

    def _watched(self, root: EngineProcess, idle: Callable[[], None]) -> Callable[[], None]:
        """Return a function that raises EngineLost if the first pass computes for too long without an event.

        The first process of a recording that is replayed from its beginning has a timer for that.
        """
        if self._most_seconds == math.inf:
            return idle
        reached = [root.event, root.cpu_seconds()]

        def watch() -> None:
            now = root.cpu_seconds()
            if root.event != reached[0]:
                reached[:] = root.event, now
            elif now - reached[1] > self._most_seconds:
                raise EngineLost("it computes without an end")
            idle()

        return watch

    def begin_pass(self) -> None:
        """Begin the first pass, and do not wait for its end: `at` waits for the part of it that it needs."""
        self._ahead = PassAhead(self.first_pass)

    @property
    def is_passed(self) -> bool:
        """Whether the pass that `begin_pass` began has ended."""
        return self._ahead is not None and self._ahead.is_over

    def await_pass(self) -> EndReport:
        """Wait for the end of the pass that `begin_pass` began; return how the run ended. Raises as `first_pass`."""
        assert self._ahead is not None, "it has been begun"
        self._ahead.wait(lambda: False, self.idle)
        return self._ahead.result()

    def at(self, count: int) -> EngineProcess:
        """Return a new process at the line with that count. Raises EngineLost."""
        if self._ahead is not None:
            root = self.root
            self._ahead.wait(lambda: root.count >= count, self.idle)
        try:
            return self._run_to(count)
        except EngineLost:
            if self._is_closed:
                raise
        # It may have been killed on its way.
        return self._run_to(count)

    def instead_of_lost(self, count: int) -> EngineProcess:
        """Do what `at` does, for a process that was found dead there."""
        self.losses += 1
        return self.at(count)

    def _run_to(self, count: int) -> EngineProcess:
        worker, is_gap = self._clone_before(count)
        if worker.count == count:
            return worker
        try:
            if not is_gap:
                self._approach(worker, count)
            return self.arrived(worker, count, leaves=is_gap)
        except BaseException:
            worker.kill()
            raise

    def arrived(self, worker: EngineProcess, count: int, *, leaves: bool = False) -> EngineProcess:
        """Let `worker` run to `count`, and return it; if it `leaves` checkpoints, they are kept.

        Raises EngineLost if the program ends before.
        """
        order = RunOrder(until=count, spacing=self.spacing if leaves else 0.0)
        ended = worker.run(order, left=self._keeping(worker), idle=self.idle)
        if isinstance(ended, EndReport):
            raise EngineLost(f"it ended before line {count:,}: {ended.reason}")
        return worker

    def scan(self, first: int, last: int, order: RunOrder) -> Where:
        """Run a copy of the checkpoint at `first` to the line `last` with `order`; return its position then."""
        with closing(self._begin_scan(first, last, order)) as scan:
            return scan.finish(self.idle).where

    def scans_back(self, last: int, order: RunOrder | Callable[[], RunOrder]) -> Generator[Scanned]:
        """Run `order` from each checkpoint before `last` to the next one, and yield what came of it, the latest first.

        `order` may be a function that returns the order of the next run. After the first, as many run at a time as
        there are processors.
        """
        firsts = iter(self.timeline.earlier(last))
        running: deque[Scan] = deque()
        at_once = 1
        try:
            while True:
                while len(running) < at_once and (first := next(firsts, None)) is not None:
                    running.append(self._begin_scan(first, last, order() if callable(order) else order))
                    last = first
                if not running:
                    return
                with closing(running.popleft()) as scan:
                    yield scan.finish(self.idle)
                at_once = processors()
        finally:
            for each in running:
                each.close()

    def _begin_scan(self, first: int, last: int, order: RunOrder) -> Scan:
        return Scan(self.at(first), last, order)

    def look_closely(self, seen: int, watch: Watch | Judged) -> Where:
        """Run the line before `seen` again and check the watched value when functions return, too.

        A change seen when a thread gave way to another one was made by the line `seen` itself: then that runs as well.
        """
        worker = self.at(max(seen - 1, 1))
        try:
            where = worker.run(RunOrder(until=seen, watch=watch), idle=self.idle)
            if isinstance(where, EndReport):
                raise EngineLost("it ended meanwhile")
            if where.changes.count:
                return where
            later = worker.run(RunOrder(until=seen + 1, watch=watch), idle=self.idle)
            return where if isinstance(later, EndReport) else later
        finally:
            worker.kill()

    def _start(self) -> None:
        where = self.root.await_stop(idle=self.idle)
        if isinstance(where, EndReport):
            if where.kind == FENCE:
                raise NoFence(where.detail)
            raise EngineLost(f"the program has no line: {where.reason}")
        self.timeline.add(self.root.clone())

    def _keeping(self, runner: EngineProcess) -> Callable[[EngineProcess], None]:
        def keep(checkpoint: EngineProcess) -> None:
            is_full = self.timeline.add(checkpoint)
            if is_full or self.memory.is_short(runner.pid, self.timeline.processes()):
                self._thin("number" if is_full else "memory")
                # It may have ended meanwhile: that is reported next.
                with suppress(EngineLost):
                    runner.space(self.spacing)

        return keep

    def _thin(self, why: str) -> bool:
        dropped = self.timeline.thin()
        if dropped:
            self.spacing *= 2
            self.is_limited_by = why
            process_memory.await_end(dropped)
        return bool(dropped)

    def _clone_before(self, count: int) -> tuple[EngineProcess, bool]:
        """A checkpoint may have been killed, for want of memory perhaps: then an earlier one does.

        Returns whether it was so, too: then others are to be left on the way again.
        """
        is_gap = False
        while (checkpoint := self.timeline.before(count)) is not None:
            with self.timeline.lock:
                # Meanwhile the first pass may have dropped it.
                checkpoint = self.timeline.before(count) or checkpoint
                try:
                    return checkpoint.clone(), is_gap
                except EngineLost:
                    self.timeline.drop(checkpoint)
            self.losses += not self._is_closed
            is_gap = True
        if self._is_closed:
            raise EngineLost("the session is closed")
        self._restart()
        first = self.timeline.before(count)
        assert first is not None, "it has just been made"
        return first.clone(), True

    def _restart(self) -> None:
        if self._engine.keeping.broken:
            raise ForgedMessage(self._engine.keeping.broken)
        self._engine.close()
        self._engine = Engine(self.path, current_source=self._current_source, last_line=self.last_line)
        self._start()

    def _approach(self, worker: EngineProcess, count: int) -> None:
        """Run most of the way, and leave checkpoints ever closer to its end: the next wish is often a step back."""
        least = 0.002
        while (left := count - worker.count) > _CLOSE and left / self._lines_per_second > least:
            self.arrived(worker, count - left // 4)
            began = time.monotonic()
            self.timeline.add_near(worker.clone())
            # With a large heap the clone itself takes longer than most of the way.
            least = max(least, 4 * (time.monotonic() - began))
            if self.memory.is_short(worker.pid, self.timeline.processes()):
                self.timeline.thin_near()
