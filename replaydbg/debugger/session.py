"""A session: an open recording and a position in it that moves in both directions.

It is longer than other modules because each motion replaces the process and the position together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial, wraps
from itertools import islice
from pathlib import Path
from typing import Concatenate, ParamSpec

from replaydbg.debugger import exception_types
from replaydbg.debugger.breakpoints import Breakpoints
from replaydbg.debugger.calls.running_tasks import RunningTasks
from replaydbg.debugger.first_pass.first_pass import FirstPass
from replaydbg.debugger.first_pass.recorded_test import Test, find_failure, test_of
from replaydbg.debugger.first_pass.run_endings import how_a_changed_run_ended
from replaydbg.debugger.first_pass.run_index import Index, load_index
from replaydbg.debugger.frame_queries import FrameQueries
from replaydbg.debugger.limitations import Limitations
from replaydbg.debugger.long_work import LongWork
from replaydbg.debugger.marks import Marks
from replaydbg.debugger.memory_queries import HeapQueries
from replaydbg.debugger.moments import Position
from replaydbg.debugger.positions import Positions
from replaydbg.debugger.run_queries import RunQueries
from replaydbg.debugger.session_results import (
    Here,
    Moment,
    Raised,
    WorkProgress,
)
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.debugger.source.source_files import SourceFiles
from replaydbg.debugger.stops import breakpoint_search, own_steps
from replaydbg.debugger.stops.breakpoint_filter import StopFound
from replaydbg.engine.branching import branched
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.frames import Frames
from replaydbg.engine.holder import take_over
from replaydbg.engine.process_memory import MemoryBudget
from replaydbg.engine.protocol import FINISH, NEXT, STEP, RunOrder
from replaydbg.engine.queries import ChangeProgram
from replaydbg.engine.reports import EXIT, EndReport, Frame, Where
from replaydbg.engine.travel import SPACING, Travel
from replaydbg.errors import AskFailed, EngineLost, NoSuchMoment
from replaydbg.log.files import held
from replaydbg.log.reader import open_recording

NOTEBOOK = "<replaydbg notebook>"
"""The name of the code in a recorded kernel that marks the cells, see `replaydbg.jupyter.kernel_start`."""
CELLS = ("@cell:", "@code:")
"""How moments begin that are named by a cell's number, or by its source."""

PATH_DIFFERS = "The control flow of this replay differs from the previous one."

_Options = ParamSpec("_Options")
_Opening = Callable[Concatenate["Session", Path | str, _Options], None]


def _while_held(opening: _Opening[_Options]) -> _Opening[_Options]:
    """Let `gc` leave the recording while a session opens it: it is read several times, with gaps between them."""

    @wraps(opening)
    def opened(self: Session, path: Path | str, /, *args: _Options.args, **options: _Options.kwargs) -> None:
        with held(Path(path)):
            opening(self, path, *args, **options)

    return opened


def _travel_of(
    path: Path,
    branch_of: Session | None,
    *,
    current_source: bool,
    spacing: float,
    memory: int | MemoryBudget,
    last_line: int,
    course: bool,
) -> Travel:
    """Return the processes of a session: behind the part of the session that it branches from, if that is possible."""
    if branch_of is not None and not (current_source or course or branch_of.has_diverged):
        travel = branched(path, branch_of.travel, spacing=spacing, memory=memory)
        if travel is not None:
            return travel
    return Travel(
        path,
        current_source=current_source,
        spacing=spacing,
        most_memory=memory,
        last_line=last_line,
        course=course,
    )


class Session:
    """An open recording and a position in it. Close it, or use it as a context manager. Not for use by several threads.

    The session moves; its attributes answer questions: `ask` about frames at the current position, `run` about the run
    as a whole, `heap` about memory. Every answer is a frozen value. What takes long calls `progress` now and then, and
    `work.cancel()`, from any thread, ends it with Cancelled; the position stays the same. Frames are numbered from the
    innermost, 0.
    """

    @_while_held
    def __init__(
        self,
        path: Path | str,
        *,
        progress: Callable[[WorkProgress], None] | None = None,
        current_source: bool = False,
        spacing: float = SPACING,
        memory: int | MemoryBudget = 0,
        course: bool = False,
        keeps_index: bool = True,
        ahead: bool = False,
        branch_of: Session | None = None,
    ) -> None:
        """Open the recording at `path` and run it once; the position is then where its program failed, or its end.

        `spacing`: seconds of CPU time between two checkpoints. `memory`: bytes that all its processes may take, or a
        budget that other sessions share; 0: what is right for the program. `course`: the first pass writes down the
        program's own lines, see `debugger.course`.
        `keeps_index`: whether the index is written beside the recording. `ahead`: if there is one, and the run is long,
        the position is known before the run has been repeated, which then goes on in a thread; what needs more of it
        waits for that. `branch_of`: the open session of the process that forked this one: its part is not run again, if
        that is possible. Raises what `replay` does, EngineLost and Cancelled.
        """
        self.path = path = Path(path)
        self._types_named = {exception_types.ANY: frozenset({exception_types.ANY})}
        self._cursor: EngineProcess | None = None
        self._uncached: set[tuple[str, int]] = set()
        """Files without a text in `linecache`, with the position at which that was asked."""
        with open_recording(path) as recording:
            self.header = recording.header
            self.test: Test | None = test_of(recording)
            """The test that was recorded, if any."""
        held = None if current_source or course else take_over(path)
        earlier = None if current_source else load_index(path)
        self.travel: Travel = (held[0] if held is not None else None) or _travel_of(
            path,
            branch_of,
            current_source=current_source,
            spacing=spacing,
            memory=memory,
            # A second session ends where the first one did, where that was a matter of time.
            last_line=earlier.total if earlier is not None and earlier.ending.is_bounded else 0,
            course=course,
        )
        self.was_held = held is not None
        """Whether its checkpoints were kept while it was recorded."""
        self.here: Here
        """The current position."""
        self.work = LongWork(self.travel, progress)
        """Progress and cancellation of what takes long."""
        self._pass = FirstPass(self.travel, self.work, earlier, is_script=self.header.kind == "script")
        self.ask = FrameQueries(self)
        """Questions about frames at the current position."""
        self.run = RunQueries(self)
        """Questions about the run as a whole."""
        self.tasks = RunningTasks(self)
        """The asyncio task at a moment of the run."""
        self.heap = HeapQueries(self, path)
        """Snapshots of the heap."""
        self.limitations = Limitations(self, self._pass)
        """Why a seek may be slow, and where values may differ from those of the recorded run."""
        self.breakpoints = Breakpoints()
        """The breakpoints."""
        self._notice = ""
        self.marks = Marks(self, self.heap)
        """The named moments."""
        self._positions = Positions(self, path, self.marks)
        is_plain = held is None and not course and self.test is None
        try:
            if ahead and is_plain and self._pass.can_run_behind:
                self._open_ahead()
            else:
                self._pass.run(held[1] if held is not None else None)
                self.sources = self._source_files(current=current_source)
                """The text of the program's source files."""
                self._cursor, self.here = self._at_failure()
                if earlier is None and not current_source and keeps_index:
                    self._pass.save(path, self._cursor.standing)
        except BaseException:
            self.travel.close()
            raise

    # ---- before the first pass is over ----

    def _open_ahead(self) -> None:
        where = self._pass.begin()
        self.sources = self._source_files()
        self.here = self._stand_at_failure(where)

    def _settle(self) -> None:
        """Take the results of the first pass if it has ended meanwhile. Raises EngineLost if it was lost."""
        if not self._pass.settle():
            return
        # What was shown is another run's. A position that was reached since is this run's, but its name is not.
        self._notice = f"{PATH_DIFFERS} What was shown before may be wrong."
        if self._cursor is None:
            self._cursor, self.here = self._at_failure()
        else:
            index = self._pass.index
            self.failure = index.uncaught
            self.here = replace(self.here, moment=index.moment(self.here.count), total=index.total)

    def take_notice(self) -> str:
        """Return, once, the news that what was shown before the end of the first pass may be wrong; empty: none."""
        notice, self._notice = self._notice, ""
        return notice

    def await_pass(self) -> None:
        """Wait until the run has been repeated as a whole. Raises EngineLost and Cancelled."""
        self._pass.wait()
        self._settle()

    @property
    def index(self) -> Index:
        """Steps for each event, exceptions, output and hits of the whole run."""
        self._settle()
        return self._pass.index

    @property
    def is_repeated(self) -> bool:
        """Whether the run took the path that it took when it was opened before; waits for the first pass."""
        self.await_pass()
        return self._pass.is_repeated

    @property
    def has_diverged(self) -> bool:
        """Whether the first pass ended because it differed from the recording; waits for it."""
        self.await_pass()
        return self._pass.has_diverged

    def _standing_cursor(self) -> EngineProcess:
        """Return a process at the position, which is known from an earlier session."""
        stood = self._pass.standing
        count = self.here.count
        try:
            worker = self.travel.at(count)
        except EngineLost:
            self._settle()
            if self._cursor is not None:
                return self._cursor
            raise
        found = worker.look()
        if stood is not None and (stood.event, stood.digest, stood.lane) != (found.event, found.digest, found.lane):
            # Another path leads there: what the index of this run is, is known at its end.
            worker.kill()
            self.travel.await_pass()
            self._settle()
            return self._cursor or self.travel.at(count)
        self._settle()
        if self._cursor is None:
            self._cursor = worker
        else:
            worker.kill()
        return self._cursor

    def _at_failure(self) -> tuple[EngineProcess, Here]:
        """Find the failure; return a process there, or at the end, and its position."""
        if self.test is not None:
            self.marks.take_from(self.test)
        failure = self.failure = self.index.uncaught or self._failure_of_test()
        """The exception that ended the program or made its test fail, at its line; None: there is none."""
        cursor = self.travel.at(failure.count if failure is not None else self.index.end)
        return cursor, self._stand_at_failure(cursor.look())

    def _stand_at_failure(self, where: Where) -> Here:
        if self.test is None:
            self.failure = self.index.uncaught
        message = self.failure.text if self.failure is not None else self.index.ended
        return self._stand(where, "exception" if self.failure else "end", message=message)

    def turn_to(self, test: Test) -> Here:
        """Go to the failure of an earlier test that the recording contains, as if it were the recorded one."""
        self.test = test
        cursor, here = self._at_failure()
        self._replace_cursor(cursor)
        self.here = here
        return here

    def _failure_of_test(self) -> Raised | None:
        """Return the exception that the test failed with, at the line that raised it; name that moment."""
        if self.test is None:
            return None
        found = find_failure(self.test, self.index, self._stack_at, partial(breakpoint_search.last_passage, self))
        if found is not None:
            self.marks.name_failure(found.count)
        return found

    def _stack_at(self, count: int) -> list[tuple[str, int]]:
        return [(each.file, each.line) for each in self.look_at(count).stack]

    def close(self) -> None:
        """End all its processes, and close the recording; again is harmless."""
        if self._cursor is not None:
            self._cursor.close()
        self.travel.close()
        self.sources.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # ---- position ----

    def _stand(self, where: Where, why: str, *, breakpoint_: int = 0, message: str = "") -> Here:
        return Here(
            moment=self.index.moment(where.count, where.point if where.why == "point" else 0),
            count=where.count,
            total=self.index.total,
            why=why,
            lane=where.lane,
            stack=where.stack,
            lanes=where.lanes,
            breakpoint=breakpoint_,
            is_changed=False,
            message=message,
        )

    def _replace_cursor(self, worker: EngineProcess) -> None:
        if self._cursor is not None:
            self._cursor.close()
        self._cursor = worker

    def seek(self, moment: str | int | Moment, *, why: str = "seek", breakpoint_: int = 0, message: str = "") -> Here:
        """Go to a moment (see UX: `120`, `120:35`, `71%`, `@exc` ...), or to a count of lines. Raises NoSuchMoment."""
        position = self._positions.of(moment)
        self.work.begin(f"going to {moment}")
        is_inside = position.point or position.event or self.here.moment.point
        if is_inside or position.count != self.here.count or self.here.is_changed:
            self._replace_cursor(self._worker_at(position, moment))
        where = self.cursor.look()
        self.here = self._stand(where, why, breakpoint_=breakpoint_, message=message)
        if where.stack and where.stack[0].file == NOTEBOOK and str(moment).startswith(CELLS):
            self.step(own=OwnCode())  # from the mark to the first line of the cell, or of the next one
            self.here = replace(self.here, why=why)
        return self.here

    def _worker_at(self, position: Position, moment: str | int | Moment) -> EngineProcess:
        """Return a process at a position. Raises NoSuchMoment."""
        worker = self.travel.at(position.count)
        if not position.point and not position.event:
            return worker
        try:
            until = position.count + 1 if position.event else position.count
            order = RunOrder(until=until, point=position.point, event=position.event)
            where = worker.run(order, idle=self.work.idle)
        except BaseException:
            worker.kill()
            raise
        if isinstance(where, Where) and where.why == "point":
            return worker
        worker.kill()
        if not position.is_exact:
            return self.travel.at(position.count)
        what = "that event came from C code" if position.event else "that line has fewer points"
        raise NoSuchMoment(str(moment), what)

    def count_of(self, moment: str | int | Moment) -> int:
        """Return the count of lines at `moment`, its line included if it is inside one. Raises NoSuchMoment."""
        return self._positions.of(moment).count

    def types_named(self, name: str) -> frozenset[str]:
        """Return the full names of the types of exceptions that `name` means, `*` for any; none: there is none.

        Raises AskFailed.
        """
        if name not in self._types_named:
            self._types_named[name] = exception_types.types_named(self, name)
        return self._types_named[name]

    @cached_property
    def first_own(self) -> int:
        """The count of the program's own first line: before it the interpreter and its libraries ran."""
        self.work.begin("searching for the program's first line")
        return breakpoint_search.first_own(self)

    def time_at(self, moment: Moment) -> float | None:
        """Return the seconds from the start to the last clock mark before `moment`; None before the first one."""
        return self._positions.time_at(moment)

    def take_over(self, lost: Session) -> None:
        """Take the marks and breakpoints of another session of this recording, whose processes were lost."""
        self.marks.take_over(lost.marks)
        self.breakpoints.take_over(lost.breakpoints)

    # ---- forward ----

    # With `own`, they pass over all other code: where they would end in it, they end at the thread's next own line,
    # which may be one that a library calls.

    def step(self, *, lane: int | None = None, own: OwnCode | None = None) -> Here:
        """Go to the next line that a thread runs (default: the running one)."""
        return self._forward(STEP, lane, own)

    def next(self, *, lane: int | None = None, own: OwnCode | None = None) -> Here:
        """Go to the next line of this activation, or of a caller when it has ended. Calls are passed over."""
        return self._forward(NEXT, lane, own)

    def finish(self, *, lane: int | None = None, own: OwnCode | None = None) -> Here:
        """Go to the next line of a caller."""
        return self._forward(FINISH, lane, own)

    def _forward(self, rule: int, lane: int | None, own: OwnCode | None) -> Here:
        self.work.begin("running")
        lane = self.here.lane if lane is None else lane
        order = RunOrder(rule=rule, until=self.index.total, lane=lane, own=own.patterns if own is not None else None)
        worker = self.cursor.clone()
        try:
            where = worker.run(order, idle=self.travel.idle)
        except BaseException:
            worker.kill()
            raise
        if isinstance(where, EndReport):
            worker.close()
            return self._changed_run_ended(where) if self.here.is_changed else self._at_end()
        if own is not None and where.why != "rule" and not self.here.is_changed:  # behind its last own line
            worker.close()
            return self._at_end(is_own=True)
        return self._come_along(worker, where, "step" if where.why == "rule" else "end")

    def _come_along(
        self, worker: EngineProcess, where: Where, why: str, *, breakpoint_: int = 0, message: str = ""
    ) -> Here:
        self._replace_cursor(worker)
        is_changed = self.here.is_changed
        self.here = replace(self._stand(where, why, breakpoint_=breakpoint_, message=message), is_changed=is_changed)
        return self.here

    def _changed_run_ended(self, ended: EndReport) -> Here:
        """Go to the line in which a changed run ended: to its last own one, if the program exited."""
        message = how_a_changed_run_ended(ended, self.travel.why_it_ends)
        last = ended.own if ended.kind == EXIT else ended.count
        if last > self.cursor.count:
            worker = self.cursor.clone()
            try:
                where = worker.run(RunOrder(until=last), idle=self.travel.idle)
            except BaseException:
                worker.kill()
                raise
            if not isinstance(where, EndReport):
                return self._come_along(worker, where, "end", message=message)
            worker.close()
        self.here = replace(self.here, why="end", message=message)
        return self.here

    def _at_end(self, *, is_own: bool = False) -> Here:
        last = self.index.end if is_own else self._last()
        # Inside the last line its beginning would be a step back.
        if self.here.count > last or (self.here.moment.point and self.here.count == last):
            self.here = replace(self.here, why="end", message=self.index.ended)
            return self.here
        return self.seek(last, why="end", message=self.index.ended)

    def _last(self) -> int:
        # After the program's own last line only the interpreter's end is left: who is there already wants to see it.
        return self.index.end if self.here.count < self.index.end else self.index.total

    def go(self, *, until: str | int | Moment | None = None) -> Here:
        """Run to the next breakpoint, or to `until`, or to the end; in a changed run only to the next breakpoint."""
        if self.here.is_changed:
            return self._go_on_changed()
        last = self._last() if until is None else self.count_of(until)
        self.work.begin("running")
        return self._arrive(breakpoint_search.forward(self, last), last, "end" if until is None else "seek")

    def _go_on_changed(self) -> Here:
        """Run to the next breakpoint of a changed run, to which the index of the first pass does not apply."""
        self.work.begin("running")
        worker = self.cursor.clone()
        try:
            found = breakpoint_search.on(self, worker)
        except BaseException:
            worker.kill()
            raise
        if found is None or isinstance(found, EndReport):
            worker.close()
            return self._changed_run_ended(found or EndReport(""))
        here = self._come_along(worker, worker.look(), found.why, breakpoint_=found.breakpoint, message=found.message)
        self.breakpoints.remove_if_temporary(found.breakpoint)
        return here

    # ---- backward ----

    def reverse_step(self, *, lane: int | None = None, own: OwnCode | None = None) -> Here:
        """Go to the previous line of the running thread; for another thread, to the line in which it is."""
        number = self.here.lane if lane is None else lane
        if own is not None:
            self.work.begin("searching for the line before")
            # Inside a line, and for another thread, the line that has begun counts.
            is_at_its_line = number == self.here.lane and not self.here.moment.point
            return self._back(own_steps.last_own_line(self, own, number, self.here.count + (not is_at_its_line)), own)
        found = next((each for each in self.here.lanes if each.id == number), None)
        if found is None:
            return self._back(0)
        # Inside a line, the step back leads to its beginning.
        is_before = number == self.here.lane and not self.here.moment.point
        return self._back(found.before if is_before else found.last)

    def reverse_next(self, *, lane: int | None = None, own: OwnCode | None = None) -> Here:
        """Go to the previous line of the same activation; from its first line, to the caller's."""
        top = self.here.top
        is_other_code = own is not None and top is not None and not own_steps.is_own(self, own, top)
        if is_other_code or (lane is not None and lane != self.here.lane):
            return self.reverse_step(lane=lane, own=own)
        if top is not None and top.last and self.here.moment.point:
            return self._back(top.last)
        return self._back(top.before if top is not None and top.before else self._callers_line(None, own), own)

    def reverse_finish(self, *, lane: int | None = None, own: OwnCode | None = None) -> Here:
        """Go to the caller's line."""
        return self._back(self._callers_line(lane, own), own)

    def reverse_go(self, *, until: str | int | Moment | None = None) -> Here:
        """Run back to the last breakpoint before here, or to `until`, or to the program's first line.

        From that line, or from the start-up before it, back to the very start.
        """
        first = 1 if until is None else self.count_of(until)
        self.work.begin("running back")
        found = breakpoint_search.backward(self, first)
        if found is not None or until is not None:
            return self._arrive(found, first, "seek")
        return self._arrive(None, self.first_own if self.here.count > self.first_own else 1, "start")

    def _callers_line(self, lane: int | None, own: OwnCode | None) -> int:
        # Frames of the importer's own run no lines that count.
        callers = (frame for frame in islice(self.ask.stack(lane), 1, None) if frame.last)
        return next((each.last for each in callers if own is None or own_steps.is_own(self, own, each)), 0)

    def _back(self, count: int, own: OwnCode | None = None) -> Here:
        if not count:
            whose = "this thread" if own is None else "your code in this thread"
            return self.seek(self.here.count, why="start", message=f"no earlier line of {whose}")
        return self.seek(count, why="step")

    def _arrive(self, found: StopFound | None, otherwise: int, why: str) -> Here:
        if found is None:
            ended = self.index.ended if why == "end" else ""
            return self.seek(otherwise, why=why, message=ended)
        here = self.seek(found.count, why=found.why, breakpoint_=found.breakpoint, message=found.message)
        self.breakpoints.remove_if_temporary(found.breakpoint)
        return here

    # ---- what changes it ----

    def change(self, source: str, frame: int = 0, *, lane: int | None = None) -> Here:
        """Run a statement in the program itself; from here on, forward, it is another run than the recorded one.

        Raises AskFailed if it raises; then nothing of what it did stays.
        """
        self.work.begin("changing the run")
        worker = self.cursor.clone()
        try:
            worker.ask(ChangeProgram(frame, lane, source), changes=True, idle=self.work.idle)
        except BaseException:
            worker.kill()
            raise
        self._replace_cursor(worker)
        self.here = replace(self.here, is_changed=True)
        return self.here

    # ---- for search and writes ----

    @property
    def cursor(self) -> EngineProcess:
        """The process at the current position; another one, if it was killed. May raise EngineLost."""
        self._settle()
        if self._cursor is None:
            return self._standing_cursor()
        if not self._cursor.is_alive:
            if self.here.is_changed:
                raise EngineLost("the changed run is lost; every recorded moment can be reached again")
            self._replace_cursor(self.travel.instead_of_lost(self.here.count))
        return self._cursor

    def frames(self, lane: int | None) -> Sequence[Frame]:
        """Return the frames of a thread here (None: the running one), innermost first."""
        self._settle()
        known = self._pass.standing if self._cursor is None else None
        if known is None or lane not in (None, known.lane):
            return self.cursor.stack(lane)
        return Frames(known.depth, known.stack, lambda first: tuple(self.cursor.stack(lane)[first : first + 1000]))

    def look_at(self, count: int) -> Where:
        """Return the state at another line; the position stays the same."""
        worker = self.travel.at(count)
        try:
            return worker.look()
        finally:
            worker.kill()

    def _source_files(self, *, current: bool = False) -> SourceFiles:
        files = (each.file for each in self.index.hits)
        return SourceFiles(self.path, files, current=current, cached=self._cached_source)

    def _cached_source(self, file: str) -> str | None:
        """Return what the program's `linecache` has for a file here; None: nothing, or it cannot be asked."""
        if self._cursor is None or (file, self.here.count) in self._uncached:
            return None
        try:
            text = self.ask.cached_source(file)
        except (AskFailed, NoSuchMoment):
            text = None
        if text is None:
            self._uncached.add((file, self.here.count))
        return text

    def source_line(self, file: str, line: int) -> str:
        """Return a line of source without its indentation; empty if it is not available."""
        return self.sources.line(file, line).strip()

    def checkpoints(self) -> tuple[Moment, ...]:
        """Return the moments of the checkpoints."""
        self.await_pass()
        return tuple(self.index.moment(count) for count in self.travel.timeline.counts())
