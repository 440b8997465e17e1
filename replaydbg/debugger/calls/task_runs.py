"""Which asyncio task ran when: found by a run of the program that passes the place where event loops run callbacks."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from replaydbg.classes import NamedTuple, dataclass, field
from replaydbg.debugger.bisection.verdict_answers import is_disturbed
from replaydbg.engine.protocol import Break, RunOrder
from replaydbg.engine.queries import FollowTasks, GetTaskKeys
from replaydbg.engine.reports import EndReport, EvaluatedPassage
from replaydbg.errors import EngineLost

if TYPE_CHECKING:
    from replaydbg.debugger.replay_view import ReplayView

LOOP = "Handle._run"
"""The function of asyncio/events.py that runs a callback. Event loops in C, such as uvloop's, do not call it."""

MOST_LINES = 30_000_000
"""Lines of a run up to which tasks are followed: running them once more takes some 4 s."""

MOST_STEPS = 100_000
"""Callbacks of event loops up to which tasks are followed: naming the task of one takes some 5 us."""

AT_ONCE = 5_000
"""Passages after which a process reports what it has found."""

LONGEST = 10.0
"""Seconds that a process may take from one report to the next."""


class TaskTurn(NamedTuple):
    """A stretch of lines in which an event loop ran a step of a task."""

    first: int
    """The count of the line that begins the step."""
    last: int
    """The count of the line behind it."""
    task: int
    """The task's place in the list of all."""


@dataclass(frozen=True, slots=True)
class TaskRun:
    """An asyncio task over the whole run."""

    name: str
    lane: int
    """The thread of its event loop."""
    begun: int
    """The count of the line that begins its first step."""
    ended: int
    """The count of the line behind its last step."""
    is_done: bool
    """Whether it was done then."""


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """All asyncio tasks of a run."""

    tasks: tuple[TaskRun, ...]
    """In the order of their first steps."""
    turns: Mapping[int, tuple[TaskTurn, ...]]
    """The steps in each thread, in their order."""


class TaskFollower:
    """Finds out which task ran when, checkpoint by checkpoint. What was found stays when the search is cancelled."""

    def __init__(self, view: ReplayView) -> None:
        self._view = view
        self._found: list[tuple[int, int, list[EvaluatedPassage]]] = []
        """Stretches of the run, each with the passages in it."""
        self._keys: tuple[str, ...] = ()
        """The keys of all tasks at the end of the last stretch."""

    def steps(self) -> Iterator[TaskRuns | None]:
        """Yield None after each part of the search, and the result at the end, unless there is none.

        Raises Cancelled; then it can be called again.
        """
        breaks = _breaks(self._view)
        if not breaks:
            return
        total = self._view.index.total
        bounds = [1, *(count for count in self._view.travel.timeline.counts() if 1 < count < total), total]
        for end in bounds:
            done = self._found[-1][1] if self._found else 1  # another search may have gone further meanwhile
            if end <= done:
                continue
            passages = self._between(breaks, done, end)
            if passages is None:
                return
            self._found.append((done, end, passages))
            yield None
        turns = _Turns()
        for _, _, passages in self._found:
            for each in passages:
                turns.take(each)
        yield turns.finish(total)

    def _between(self, breaks: tuple[Break, ...], begin: int, end: int) -> list[EvaluatedPassage] | None:
        """Return the passages of a stretch; None: they cannot be found without a change of the program."""
        view, found, keys = self._view, list[EvaluatedPassage](), self._keys
        worker = view.travel.at(begin)
        try:
            while worker.count < end:
                wanted = FollowTasks(worker.count, keys)
                order = RunOrder(until=end, breaks=breaks, passages=wanted, most_passages=AT_ONCE)
                where = worker.run(order, idle=self._in_time())
                if isinstance(where, EndReport) or any(each.answer is None for each in where.evaluated):
                    return None
                found += where.evaluated
                keys = worker.ask(GetTaskKeys(), idle=view.travel.idle)
                view.travel.idle()
            if is_disturbed(view, worker.look()):
                return None
        except (EngineLost, _TookTooLong):
            return None
        finally:
            worker.kill()
        self._keys = keys
        return found

    def _in_time(self) -> Callable[[], None]:
        until = time.monotonic() + LONGEST

        def idle() -> None:
            self._view.travel.idle()
            if time.monotonic() > until:
                raise _TookTooLong

        return idle


class _TookTooLong(Exception):
    """A process took longer than LONGEST to its next report."""


def _breaks(view: ReplayView) -> tuple[Break, ...]:
    """Return the line that runs a callback, and the one behind it; nothing, if there are none or far too many steps."""
    hits = next((each for each in view.index.hits if each.function == LOOP and "asyncio" in each.file), None)
    if hits is None or view.index.total > MOST_LINES:
        return ()
    lines = _lines_of_loop(view.sources.text(hits.file))
    if lines is None or not 0 < hits.lines.get(lines[0], 0) <= MOST_STEPS:
        return ()
    return tuple(Break(hits.file, line, stop_at=0) for line in lines)


def _lines_of_loop(text: str) -> tuple[int, int] | None:
    """Return the lines in `Handle._run` that run the callback, and that follow it: `self = None`."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    owner, _, method = LOOP.partition(".")
    for kind in (each for each in body if isinstance(each, ast.ClassDef) and each.name == owner):
        for function in (each for each in kind.body if isinstance(each, ast.FunctionDef) and each.name == method):
            tries = [each for each in function.body if isinstance(each, ast.Try)]
            behind = [each for each in function.body if isinstance(each, ast.Assign)]
            if tries and behind:
                return tries[0].body[0].lineno, behind[-1].lineno
    return None


@dataclass(slots=True)
class _Task:
    """A task that is being followed."""

    number: int
    name: str
    lane: int
    begun: int
    ended: int = 0
    is_done: bool = False


@dataclass(slots=True)
class _Turns:
    """Passages of the two lines, put together to turns."""

    tasks: list[_Task] = field(default_factory=list)
    turns: dict[int, list[TaskTurn]] = field(default_factory=dict)
    living: dict[str, _Task] = field(default_factory=dict)
    """Tasks that are not done, by their keys: when one is done, another one may have its key."""
    running: dict[int, list[tuple[_Task, int]]] = field(default_factory=dict)
    """In each thread the tasks whose steps run, and where these began: a step can run another event loop."""

    def take(self, passage: EvaluatedPassage) -> None:
        """Take the next passage."""
        if passage.answer is None:
            return
        key, is_done, name = [*passage.answer[1].split(" ", 2), "", ""][:3]
        running = self.running.setdefault(passage.lane, [])
        if passage.number == 1:
            running.append((self._task(key, name, passage), passage.count))
            return
        task = self.living.get(key)
        while task is not None and running:
            # What lies above it ended by an exception that stops the loop.
            inner, since = running.pop()
            self._add(inner, since, passage.count)
            if inner is task:
                break
        if task is not None and is_done == "1":
            task.is_done = True
            del self.living[key]

    def finish(self, total: int) -> TaskRuns:
        """Return what was found, up to the end of the run."""
        for running in self.running.values():
            while running:
                self._add(*running.pop(), total)
        tasks = (TaskRun(each.name, each.lane, each.begun, each.ended, each.is_done) for each in self.tasks)
        turns = {lane: tuple(sorted(each)) for lane, each in self.turns.items()}
        return TaskRuns(tuple(tasks), turns)

    def _task(self, key: str, name: str, passage: EvaluatedPassage) -> _Task:
        if key not in self.living:
            task = _Task(len(self.tasks), name, passage.lane, passage.count)
            self.tasks.append(task)
            self.living[key] = task
        self.living[key].name = name
        return self.living[key]

    def _add(self, task: _Task, first: int, last: int) -> None:
        task.ended = last
        self.turns.setdefault(task.lane, []).append(TaskTurn(first, last, task.number))
