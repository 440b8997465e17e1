"""A session: one recording, opened, and one place in it that moves in both directions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

from replaydbg.debugger import kinds, search
from replaydbg.debugger.breakpoints import Breakpoints
from replaydbg.debugger.endings import BOUNDED, how_a_changed_run_ended, how_it_ended
from replaydbg.debugger.heaps import Heaps
from replaydbg.debugger.index import Ending, Index, load_index, read_index, save_index
from replaydbg.debugger.marks import Marks
from replaydbg.debugger.moments import Position, parse_moment
from replaydbg.debugger.questions import checked
from replaydbg.debugger.sources import Sources
from replaydbg.debugger.stops import Found
from replaydbg.debugger.testing import Test, find_failure, test_of
from replaydbg.debugger.values import (
    Here,
    Moment,
    Progress,
    Raised,
)
from replaydbg.debugger.whole import WholeRun
from replaydbg.engine.holder import take_over
from replaydbg.engine.messages import FINISH, NEXT, STEP, Run, Where
from replaydbg.engine.travel import MOST, SPACING, Travel
from replaydbg.engine.worker import Worker
from replaydbg.errors import Cancelled, EngineLost, NoSuchMoment
from replaydbg.log.reader import open_recording


class Session(Breakpoints, Marks, Heaps, WholeRun):
    """An open recording and a place in it. Close it, or use it as a context manager. Not for several threads at once.

    Every answer is a frozen value. What takes long calls `progress` now and then, and `cancel()`, from any thread,
    ends it with Cancelled: the place is what it was. Frames are numbered from the innermost, 0.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        progress: Callable[[Progress], None] | None = None,
        current_source: bool = False,
        spacing: float = SPACING,
        memory: int = 0,
        course: bool = False,
    ) -> None:
        """Open the recording at `path` and run it once; then stand where its program failed, or at its end.

        `spacing`: seconds of CPU time between two checkpoints. `memory`: bytes that all its processes may take; 0: what
        is right for the program. `course`: the first pass writes down the program's own lines, see `debugger.course`.
        Raises what `replay` does, EngineLost and Cancelled.
        """
        super().__init__()
        self.path = path = Path(path)
        self._types_named = {kinds.ANY: frozenset({kinds.ANY})}
        self._progress = progress
        self._cancelled = threading.Event()
        with open_recording(path) as recording:
            self.header = recording.header
            self.test: Test | None = test_of(recording)
            """The test that this is the recording of, if it is one of a test."""
        held = None if current_source or course else take_over(path)
        known = None if current_source else load_index(path)
        # A second session ends where the first one did, where that was a matter of time.
        last_line = known.total if known is not None and known.ending.is_bounded else 0
        self.travel = (
            held[0]
            if held is not None
            else Travel(
                path,
                current_source=current_source,
                spacing=spacing,
                most_memory=memory,
                last_line=last_line,
                course=course,
            )
        )
        self.was_held = held is not None
        """Whether its checkpoints were kept while it was recorded."""
        try:
            self._open(current_source, known, held[1] if held is not None else None)
        except BaseException:
            self.travel.close()
            raise

    def _open(self, current_source: bool, known: Index | None, ended: dict[str, Any] | None) -> None:
        self.begin("replaying", known.total if known is not None else 0)
        if ended is None:
            ended = self.travel.first_pass()
        text = how_it_ended(ended, self.travel.why_it_ends)
        status = ended["status"] if ended["kind"] == "exit" else 0
        ending = Ending(text, status, self.header.kind == "script", is_bounded=ended["kind"] == BOUNDED)
        self.index: Index = read_index(self.travel.engine, ending)
        """Steps for each event, exceptions, output and hits of the whole run."""
        if ending.is_bounded:
            self.travel.last_line = self.index.total
        self.is_repeated = known is None or (known.total, known.digest) == (self.index.total, self.index.digest)
        """Whether the run took the path that it took when it was opened before."""
        self.sources = Sources(self.path, (each.file for each in self.index.hits), current=current_source)
        """The text of the program's source files."""
        if known is None and not current_source:
            save_index(self.path, self.travel.engine, ending)
        if self.test is not None:
            self._take_marks(self.test)
        failure = self.failure = self.index.uncaught or self._failure_of_test()
        """What ended the program, or made its test fail, at the line that raised it; None: nothing did."""
        self._cursor = self.travel.at(failure.count if failure is not None else self.index.end)
        message = failure.text if failure is not None else self.index.ended
        self.here: Here = self._stand(self._cursor.look(), "exception" if failure else "end", message=message)
        """Where the session stands."""

    def _failure_of_test(self) -> Raised | None:
        """Return the exception that the test failed with, at the line that raised it; name that moment."""
        if self.test is None:
            return None
        found = find_failure(self.test, self.index, self._stack_at, partial(search.last_passage, self))
        if found is not None:
            self._marks["failure"] = found.count
        return found

    def _stack_at(self, count: int) -> list[tuple[str, int]]:
        return [(each.file, each.line) for each in self.look_at(count).stack]

    def top_at(self, count: int) -> tuple[str, int]:
        """Return file and line of the innermost frame at a count of lines; nothing and 0 without Python code."""
        with closing(self.travel.at(count)) as worker:
            stack = worker.look().stack
        return (stack[0].file, stack[0].line) if stack else ("", 0)

    def close(self) -> None:
        """End all its processes; again is harmless."""
        self._cursor.close()
        self.travel.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # ---- long work ----

    def cancel(self) -> None:
        """End what takes long in another thread: there it raises Cancelled."""
        self._cancelled.set()

    def begin(self, what: str, total: int = 0) -> None:
        """Take up what may take long, of `total` lines if that is known: what was cancelled before is over."""
        self._cancelled.clear()
        self._reached = 0
        began = time.monotonic()
        timeline = self.travel.timeline

        def idle() -> None:
            if self._cancelled.is_set():
                raise Cancelled
            if self._progress is not None:
                counts = timeline.counts()
                share = counts[-1] / total if total and counts else 0.0
                share = self._reached / self.index.total if self._reached else share
                self._progress(Progress(what, min(share, 1.0), time.monotonic() - began))

        self.travel.idle = idle

    def idle(self, reached: int = 0) -> None:
        """Tell how far it is; `reached` is the line to which it has come. Raises Cancelled if it shall be given up.

        What takes many short ways calls it itself: while it waits for one it is called only if that takes long.
        """
        self._reached = reached or self._reached
        self.travel.idle()

    # ---- where it stands ----

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

    def _replace_cursor(self, worker: Worker) -> None:
        self._cursor.close()
        self._cursor = worker

    def seek(self, moment: str | int | Moment, *, why: str = "seek", breakpoint_: int = 0, message: str = "") -> Here:
        """Go to a moment (see UX: `120`, `120:35`, `71%`, `@exc` ...), or to a count of lines. Raises NoSuchMoment."""
        position = self._position_of(moment)
        self.begin(f"going to {moment}")
        is_inside = position.point or position.event or self.here.moment.point
        if is_inside or position.count != self.here.count or self.here.is_changed:
            self._replace_cursor(self._worker_at(position, moment))
        where = self.cursor.look()
        self.here = self._stand(where, why, breakpoint_=breakpoint_, message=message)
        return self.here

    def _worker_at(self, position: Position, moment: str | int | Moment) -> Worker:
        """Return a process that stands at a position. Raises NoSuchMoment."""
        worker = self.travel.at(position.count)
        if not position.point and not position.event:
            return worker
        try:
            order = Run(until=position.count, point=position.point, event=position.event)
            where = worker.run(replace(order, until=position.count + 1) if position.event else order, idle=self.idle)
        except BaseException:
            worker.kill()
            raise
        if isinstance(where, Where) and where.why == "point":
            return worker
        worker.kill()
        if not position.is_exact:
            return self.travel.at(position.count)
        what = "C code asked for that event" if position.event else "fewer points lie in that line"
        raise NoSuchMoment(str(moment), what)

    def count_of(self, moment: str | int | Moment) -> int:
        """Return the count of lines at `moment`, its line included if it is inside one. Raises NoSuchMoment."""
        return self._position_of(moment).count

    def _position_of(self, moment: str | int | Moment) -> Position:
        if isinstance(moment, Moment):
            lines = self.index.lines_after(moment.event) if moment.event <= self.index.events else 0
            if moment.event > self.index.events or moment.step > max(lines, 1):
                raise NoSuchMoment(str(moment), f"the run has {self.index.events:,} events and ends before that")
            return Position(self.index.count(moment), moment.point)
        if isinstance(moment, str):
            return parse_moment(moment, self.index, self.marks_for(moment), self._event_at, self.failure)
        if not 1 <= moment <= self.index.total:
            raise NoSuchMoment(str(moment), f"the run has {self.index.total:,} lines")
        return Position(moment)

    @cached_property
    def _times(self) -> list[int]:
        with open_recording(self.path) as recording:
            return [entry.time_ns for entry in recording.events(controls=False)]

    def _event_at(self, nanoseconds: float) -> int:
        # Imported here: only times ask for it.
        from bisect import bisect_right

        return bisect_right(self._times, nanoseconds)

    def types_named(self, name: str) -> frozenset[str]:
        """Return the full names of the types of exceptions that `name` means, `*` for any; none: there is none.

        Raises AskFailed.
        """
        if name not in self._types_named:
            self._types_named[name] = kinds.types_named(self, name)
        return self._types_named[name]

    @cached_property
    def first_own(self) -> int:
        """The count of the program's own first line: before it the interpreter and its libraries ran."""
        self.begin("looking for the program's first line")
        return search.first_own(self)

    def time_at(self, moment: Moment) -> float | None:
        """Return the seconds from the start to the last clock mark before `moment`; None before the first one."""
        events = min(moment.event, len(self._times))
        return self._times[events - 1] / 1e9 if events and self._times[events - 1] else None

    def take_over(self, lost: Session) -> None:
        """Take the marks and breakpoints of another session of this recording, whose processes were lost."""
        self._marks = dict(lost._marks)
        self._take_breakpoints(lost)

    # ---- forward ----

    def step(self, *, lane: int | None = None) -> Here:
        """To the next line that a lane runs; without a number, the one that runs here."""
        return self._forward(STEP, lane)

    def next(self, *, lane: int | None = None) -> Here:
        """To the next line of this activation; when it has ended, of a caller. Calls are passed over."""
        return self._forward(NEXT, lane)

    def finish(self, *, lane: int | None = None) -> Here:
        """To the next line of a caller."""
        return self._forward(FINISH, lane)

    def _forward(self, rule: int, lane: int | None) -> Here:
        self.begin("running on")
        order = Run(rule=rule, until=self.index.total, lane=self.here.lane if lane is None else lane)
        worker = self.cursor.clone()
        try:
            where = worker.run(order, idle=self.travel.idle)
        except BaseException:
            worker.kill()
            raise
        if isinstance(where, dict):
            worker.close()
            return self._changed_run_ended(where) if self.here.is_changed else self._at_end()
        return self._come_along(worker, where, "step" if where.why == "rule" else "end")

    def _come_along(self, worker: Worker, where: Where, why: str, *, breakpoint_: int = 0, message: str = "") -> Here:
        self._replace_cursor(worker)
        is_changed = self.here.is_changed
        self.here = replace(self._stand(where, why, breakpoint_=breakpoint_, message=message), is_changed=is_changed)
        return self.here

    def _changed_run_ended(self, ended: dict[str, Any]) -> Here:
        """Stand before the line in which a changed run ended: before its last own one, if the program exited."""
        message = how_a_changed_run_ended(ended, self.travel.why_it_ends)
        last = ended.get("own" if ended.get("kind") == "exit" else "count", 0)
        if last > self._cursor.count:
            worker = self._cursor.clone()
            try:
                where = worker.run(Run(until=last), idle=self.travel.idle)
            except BaseException:
                worker.kill()
                raise
            if not isinstance(where, dict):
                return self._come_along(worker, where, "end", message=message)
            worker.close()
        self.here = replace(self.here, why="end", message=message)
        return self.here

    def _at_end(self) -> Here:
        if self.here.moment.point and self.here.count == self._last():
            # It stands inside the last line: its beginning would be a step back.
            self.here = replace(self.here, why="end", message=self.index.ended)
            return self.here
        return self.seek(self._last(), why="end", message=self.index.ended)

    def _last(self) -> int:
        # After the program's own last line only the interpreter's end is left: who is there already wants to see it.
        return self.index.end if self.here.count < self.index.end else self.index.total

    def go(self, *, until: str | int | Moment | None = None) -> Here:
        """On to the next breakpoint, or to `until`, or to the end; in a changed run to the next breakpoint alone."""
        if self.here.is_changed:
            return self._go_on_changed()
        last = self._last() if until is None else self.count_of(until)
        self.begin("running on")
        return self._arrive(search.forward(self, last), last, "end" if until is None else "seek")

    def _go_on_changed(self) -> Here:
        """What was found out in the first pass says nothing of this run: it has counts and an end of its own."""
        self.begin("running on")
        worker = self._cursor.clone()
        try:
            found = search.on(self, worker)
        except BaseException:
            worker.kill()
            raise
        if found is None or isinstance(found, dict):
            worker.close()
            return self._changed_run_ended(found or {})
        here = self._come_along(worker, worker.look(), found.why, breakpoint_=found.breakpoint, message=found.message)
        self.remove_if_temporary(found.breakpoint)
        return here

    # ---- backward ----

    def reverse_step(self, *, lane: int | None = None) -> Here:
        """To the line that a lane ran before; of another lane than the one that runs, to the line in which it is."""
        number = self.here.lane if lane is None else lane
        found = next((each for each in self.here.lanes if each.id == number), None)
        if found is None:
            return self._back(0)
        # Inside a line, the step back leads to its beginning.
        is_before = number == self.here.lane and not self.here.moment.point
        return self._back(found.before if is_before else found.last)

    def reverse_next(self, *, lane: int | None = None) -> Here:
        """To the line before in the same activation; at its first line, to the caller's."""
        if lane is not None and lane != self.here.lane:
            return self.reverse_step(lane=lane)
        top = self.here.top
        if top is not None and top.last and self.here.moment.point:
            return self._back(top.last)
        return self._back(top.before if top is not None and top.before else self._callers_line(None))

    def reverse_finish(self, *, lane: int | None = None) -> Here:
        """To the caller's line."""
        return self._back(self._callers_line(lane))

    def reverse_go(self, *, until: str | int | Moment | None = None) -> Here:
        """Run back to the last breakpoint before here, or to `until`, or to the program's first line.

        From that line, or from the start-up before it, back to the very start.
        """
        first = 1 if until is None else self.count_of(until)
        self.begin("running back")
        found = search.backward(self, first)
        if found is not None or until is not None:
            return self._arrive(found, first, "seek")
        return self._arrive(None, self.first_own if self.here.count > self.first_own else 1, "start")

    def _callers_line(self, lane: int | None) -> int:
        # Frames of the importer's own run no lines that count.
        return next((frame.last for frame in islice(self.stack(lane), 1, None) if frame.last), 0)

    def _back(self, count: int) -> Here:
        if not count:
            return self.seek(self.here.count, why="start", message="nothing of this lane ran before")
        return self.seek(count, why="step")

    def _arrive(self, found: Found | None, otherwise: int, why: str) -> Here:
        if found is None:
            ended = self.index.ended if why == "end" else ""
            return self.seek(otherwise, why=why, message=ended)
        here = self.seek(found.count, why=found.why, breakpoint_=found.breakpoint, message=found.message)
        self.remove_if_temporary(found.breakpoint)
        return here

    # ---- what changes it ----

    def change(self, source: str, frame: int = 0, *, lane: int | None = None) -> Here:
        """Run a statement in the program itself; from here on, forward, it is another run than the recorded one.

        Raises AskFailed if it raises; then nothing of what it did stays.
        """
        self.begin("changing the run")
        question = {"do": "change", "source": source, "frame": frame, "lane": lane}
        worker = self.cursor.clone()
        try:
            checked(worker.ask(question, changes=True, idle=self.idle))
        except BaseException:
            worker.kill()
            raise
        self._replace_cursor(worker)
        self.here = replace(self.here, is_changed=True)
        return self.here

    # ---- for search and writes ----

    @property
    def cursor(self) -> Worker:
        """The process that stands here; another one, if it was killed. Raises EngineLost if that cannot be."""
        if not self._cursor.is_alive:
            if self.here.is_changed:
                raise EngineLost("what was changed went with it; every moment can be reached again")
            self._replace_cursor(self.travel.instead_of_lost(self.here.count))
        return self._cursor

    def look_at(self, count: int) -> Where:
        """Return what stands at another line; the session stays where it is."""
        worker = self.travel.at(count)
        try:
            return worker.look()
        finally:
            worker.kill()

    def source_line(self, file: str, line: int) -> str:
        """Return a line of source, without what surrounds it; empty if it is not at hand."""
        return self.sources.line(file, line).strip()

    @property
    def limitation(self) -> str:
        """Why a seek may take longer here than it should, and where values may be others; empty: neither."""
        return " ".join(filter(None, (self._few_checkpoints(), self._recursion)))

    @cached_property
    def _recursion(self) -> str:
        """Whether the recursion limit was reached through C code: 3.11 counts more levels there while it traces."""
        raised = [each for each in self.index.raised if each.type == "RecursionError"]
        if not raised or not self.header.python.version.startswith("3.11"):
            return ""
        # Python's own calls count one each: then there are as many frames as the limit says.
        for each in {raised[0].count: raised[0], raised[-1].count: raised[-1]}.values():
            with closing(self.travel.at(each.count)) as worker:
                depth = worker.look().depth
                if self.judge(worker, f"__import__('sys').getrecursionlimit() > {depth}") == "":
                    at = self.index.moment(each.count)
                    return (
                        f"At {at.event}:{at.step} the recursion limit was reached through C code, and Python 3.11 "
                        "comes there earlier while lines are counted. What depends on how deep it went may be another "
                        "value here; `replaydbg replay` is exact."
                    )
        return ""

    def _few_checkpoints(self) -> str:
        travel = self.travel
        reasons = {
            "number": f"there are {MOST} at most",
            "memory": f"all together may take {travel.memory.allowed >> 20:,} MB of memory (--memory)",
        }
        if travel.is_limited_by not in reasons:
            return ""
        reason = reasons[travel.is_limited_by]
        return f"Checkpoints stand {travel.spacing:.2g} s apart, since {reason}: a seek may take as long."

    def checkpoints(self) -> tuple[Moment, ...]:
        """Return where processes stand that others are cloned from."""
        return tuple(self.index.moment(count) for count in self.travel.timeline.counts())
