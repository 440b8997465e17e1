"""The asyncio task that ran at a moment."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import closing
from typing import TYPE_CHECKING

from replaydbg.debugger.calls.task_runs import LOOP, TaskFollower, TaskRuns
from replaydbg.engine.queries import GetTasks
from replaydbg.errors import AskFailed

if TYPE_CHECKING:
    from replaydbg.debugger.replay_view import ReplayView

FEW = 3
"""Moments up to which a copy of the program is asked at each; for more, one run over the whole program is quicker."""

MOST_ASKED = 50
"""Moments at which a copy is asked of a program that is too long to be run once more."""


class RunningTasks:
    """Names the tasks that ran at moments of a run. What is found is kept."""

    def __init__(self, view: ReplayView) -> None:
        self._view = view
        self.follower = TaskFollower(view)
        """Finds the tasks of the whole run."""
        self._asked: dict[int, str | None] = {}
        self._runs: TaskRuns | None = None
        self._is_followed = False

    def name_at(self, count: int, lane: int) -> str:
        """Return the name of the task that the thread `lane` ran at the line `count`; empty: none, or it is not known.

        Raises Cancelled.
        """
        if not any(each.function == LOOP and "asyncio" in each.file for each in self._view.index.hits):
            return ""
        known = self._asked.get(count)
        if known is not None:
            return known
        if len(self._asked) >= FEW:
            self._follow()
        if self._runs is None and count not in self._asked and len(self._asked) < MOST_ASKED:
            self._asked[count] = self._ask(count, lane)
            if self._asked[count] is None:
                self._follow()
        return (self._asked.get(count) or "") if self._runs is None else _name_in(self._runs, lane, count)

    def _follow(self) -> None:
        if self._is_followed:
            return
        self._view.work.begin("searching for tasks")
        for found in self.follower.steps():
            self._runs = found or self._runs
        self._is_followed = True

    def _ask(self, count: int, lane: int) -> str | None:
        """Return None if several threads run event loops: it is not known then which task is this one's."""
        with closing(self._view.travel.at(count)) as worker:
            if worker.look().lane != lane:
                return ""
            try:
                tasks = worker.ask(GetTasks(), idle=self._view.work.idle)
            except AskFailed:
                return ""
        running = [each.name for each in tasks if each.is_running]
        return running[0] if len(running) == 1 else None if running else ""


def _name_in(runs: TaskRuns, lane: int, count: int) -> str:
    turns = runs.turns.get(lane, ())
    for number in range(bisect_right(turns, count, key=lambda each: each.first) - 1, -1, -1):
        if count < turns[number].last:  # the innermost: a step can run another event loop
            return runs.tasks[turns[number].task].name
    return ""
