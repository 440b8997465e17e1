"""Asyncio tasks as a tree: below each task those that it awaits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replaydbg.classes import NamedTuple
from replaydbg.engine.query_results import Task

_MOST_DEEP = 20
"""Tasks further down are shown at this depth: lines have an end."""


class ShownTask(NamedTuple):
    """A row of the tree."""

    task: Task
    depth: int
    state: str
    """Whether it runs, or can run; else what it waits for."""
    is_again: bool
    """Whether it was shown above, below another task that awaits it."""


def task_tree(tasks: Sequence[Task]) -> Iterator[ShownTask]:
    """Yield each task, first those that no other awaits; one that several await comes once, and then by its name."""
    awaited = {number for task in tasks for number in task.awaits}
    shown: set[int] = set()
    # Tasks that await each other have no first one: any of them is.
    for root in [*(each for each in range(len(tasks)) if each not in awaited), *sorted(awaited)]:
        if root not in shown:
            yield from _below(tasks, root, shown)


def _below(tasks: Sequence[Task], root: int, shown: set[int]) -> Iterator[ShownTask]:
    rows = [(root, 0)]
    while rows:  # a chain of tasks can be longer than Python's stack
        number, depth = rows.pop()
        is_again = number in shown
        shown.add(number)
        yield ShownTask(tasks[number], min(depth, _MOST_DEEP), _state(tasks, tasks[number]), is_again)
        if not is_again:
            rows += [(each, depth + 1) for each in reversed(tasks[number].awaits)]


def _state(tasks: Sequence[Task], task: Task) -> str:
    if task.is_running:
        return "runs"
    if task.awaits:
        return f"awaits {', '.join(tasks[each].name for each in task.awaits[:3])}" + (
            f" and {len(task.awaits) - 3:,} more" if len(task.awaits) > 3 else ""
        )
    return f"waits for {task.waits_for}" if task.waits_for else "runnable"
