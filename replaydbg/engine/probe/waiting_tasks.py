"""The asyncio tasks that are not done, the coroutines in them that wait for each other, and which task awaits which.

A task waits for one future. That is another task, or one that others complete when they are done: the future of
`gather` has its children, and the callbacks of a task that `wait`, `wait_for`, `as_completed`, `shield` or a task group
waits for refer to the future, or to what it belongs to.
"""

from __future__ import annotations

import sys

from replaydbg.engine.probe.core import answer_passages_by, answering_passages, names_here
from replaydbg.engine.probe.encoding import encoded
from replaydbg.engine.probe.evaluation import Text
from replaydbg.engine.probe.value_text import cut, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.engine import queries


METHOD = type(Text().write)
"""The type of methods of objects that are written in Python."""

_MOST_EDGES = 10_000
"""Of a program with more, the others are left out."""


def tasks(query: queries.GetTasks) -> list[Any]:
    """Each asyncio task that is not done: its name, its coroutines, outermost first, what it waits for, whether it is

    the one that runs, and which of the others it awaits.
    """
    found = sorted(known_tasks(), key=by_name)
    running = [id(each) for each in running_tasks()]
    awaited = awaited_by_each(found)
    return [
        (
            str(each.get_name()),
            chain(each.get_coro()),
            shown(waiter(each), 200) if waiter(each) is not None else "",
            int(id(each) in running),
            awaited[number],
        )
        for number, each in enumerate(found)
    ]


def known_tasks() -> list[Any]:
    """Return the tasks that are not done."""
    asyncio = sys.modules.get("asyncio.tasks")
    known: Any = getattr(asyncio, "_scheduled_tasks", None) or getattr(asyncio, "_all_tasks", ())
    found = [each() if type(each).__name__ == "ReferenceType" else each for each in getattr(known, "data", known)]
    found += getattr(asyncio, "_eager_tasks", ())
    # Since 3.14 each thread has a list of those that are made in C, and only C code sees it.
    in_c: Any = sys.modules.get("_asyncio")
    if hasattr(in_c, "all_tasks"):
        found += [task for loop in running_loops() for task in in_c.all_tasks(loop)]
    return [each for each in {id(each): each for each in found}.values() if each is not None and not each.done()]


def running_tasks() -> list[Any]:
    """Return the tasks that run, at most one for each event loop."""
    found = [*dict(getattr(sys.modules.get("asyncio.tasks"), "_current_tasks", {})).values()]
    in_c: Any = sys.modules.get("_asyncio")
    if hasattr(in_c, "all_tasks"):
        found += [in_c.current_task(loop) for loop in running_loops()]
    return [each for each in found if each is not None]


def running_loops() -> list[Any]:
    """Return the event loops that run, one in each thread at most, by the frames of their threads."""
    found = []
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code.co_name == "run_forever" and frame.f_globals.get("__name__", "").startswith("asyncio."):
                found.append(frame.f_locals["self"])
                break
            frame = frame.f_back  # type: ignore[assignment]
    return found


def by_name(task: Any) -> tuple[str, int, str]:
    """Task-2 comes before Task-10."""
    name = str(task.get_name())
    words, digits = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    return words, int(digits[:18] or 0), name


def waiter(task: Any) -> Any:
    """Return the future that a task waits for; None: it can run."""
    return getattr(task, "_fut_waiter", None)


def awaited_by_each(found: list[Any]) -> list[list[int]]:
    """Return for each task the numbers of those that it awaits."""
    numbers = {id(task): number for number, task in enumerate(found)}
    # By what they wait for: the number of tasks can be large, so they are not compared each with each.
    waiting: dict[int, list[int]] = {}
    edges: list[set[int]] = [set() for _ in found]
    for number, task in enumerate(found):
        for each in parts_of(waiter(task)):
            waiting.setdefault(id(each), []).append(number)
            if id(each) in numbers:
                edges[number].add(numbers[id(each)])
    left = _MOST_EDGES
    for number, task in enumerate(found):
        for callback, *_ in list(getattr(task, "_callbacks", None) or ()):
            # A task among them is one that goes on then, and not a future of its own.
            for future in (each for each in futures_of(callback) if id(each) not in numbers):
                for other in waiting.get(id(future), ()):
                    edges[other].add(number)
                    left -= 1
        if left < 0:
            break
    return [sorted(each - {number}) for number, each in enumerate(edges)]


def parts_of(future: Any, depth: int = 0) -> list[Any]:
    """Return a future, and of one that gathers others these, too."""
    children = getattr(future, "_children", ()) if depth < 10 else ()
    return [future, *(part for each in list(children or ()) for part in parts_of(each, depth + 1))]


def futures_of(callback: Any) -> list[Any]:
    """Return what a callback refers to that a task may wait for."""
    found = [*getattr(callback, "args", ())] if type(callback).__name__ == "partial" else []
    found.append(getattr(callback, "__self__", None))
    for cell in getattr(callback, "__closure__", None) or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            pass  # it is empty
    for each in list(found):
        found.append(getattr(each, "_on_completed_fut", None))  # of a task group
        # Of as_completed: its queue, or from Python 3.13 on the iterator that has it.
        found += list(getattr(getattr(each, "_done", each), "_getters", ()) or ())
    return [each for each in found if each is not None]


def chain(coroutine: Any) -> list[Any]:
    return [(each.f_code.co_filename, each.f_lineno or 0, each.f_code.co_qualname) for each in frames_of(coroutine)]


def frames_of(coroutine: Any) -> list[Any]:
    frames: list[Any] = []
    while coroutine is not None and len(frames) < 100:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        frame = frame or getattr(coroutine, "ag_frame", None)
        if frame is not None:
            frames.append(frame)
        inner = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
        coroutine = inner or getattr(coroutine, "ag_await", None)
    return frames


# ---- which task runs ----


def following(query: queries.FollowTasks) -> bytes:
    """Make the function that the core calls where an event loop runs a callback: of a task's step it names the task."""
    tasks = all_tasks()
    known = zip(tasks, query.keys, strict=True) if len(tasks) == len(query.keys) else ()
    keys = {id(task): key for task, key in known if key}

    def step(number: int) -> bytes | None:
        return step_here(keys, query.stretch)

    step.keys = keys  # type: ignore[attr-defined]
    answer_passages_by(step)
    return b""


def task_keys(query: queries.GetTaskKeys) -> list[str]:
    """Return the keys of all tasks, in a copy of a process that has followed them."""
    keys = getattr(answering_passages(), "keys", {})
    return [keys.get(id(each), "") for each in all_tasks()]


def all_tasks() -> list[Any]:
    """Return all tasks in the collector's order, which is that of the run in each process.

    Those that are done, too: a task is done some lines before its last step is.
    """
    try:
        import _imp
    except ImportError:
        return []  # the program ends: its modules have gone, and its event loops with them
    # A module of our own: the program may not have imported it. All that is asked of a "spec" is its name.
    collector = _imp.create_builtin(type(sys.implementation)(name="gc"))  # type: ignore[arg-type, call-arg]
    return [each for each in collector.get_objects() if is_done_and_name(each) is not None]


def step_here(keys: dict[int, str], stretch: int) -> bytes | None:
    """Name the task whose step a handle of the event loop runs here; None: its callback is no step.

    No code of the program runs: the handle's callback is a slot, and the methods of subclasses of tasks are not called.
    """
    names = names_here(("self",))
    callback = getattr(names["self"], "_callback", None) if names and "self" in names else None
    kind = type(callback)
    if kind not in (type(len), METHOD) and kind.__name__ != "TaskStepMethWrapper":
        return None
    task = callback.__self__  # type: ignore[union-attr]
    state = is_done_and_name(task)
    if state is None:
        return None
    key = keys.setdefault(id(task), f"{stretch}-{id(task):x}")
    return encoded(("", f"{key} {int(state[0])} {cut(str(state[1]), 100)}"))


def is_done_and_name(task: Any) -> tuple[bool, Any] | None:
    """Return a task's state; None: it is no task."""
    in_c: Any = getattr(sys.modules.get("_asyncio"), "Task", None)
    in_python: Any = getattr(sys.modules.get("asyncio.tasks"), "_PyTask", None)
    if in_c is not None and issubclass(type(task), in_c):
        return in_c.done(task), in_c.get_name(task)
    if in_python is not None and issubclass(type(task), in_python):
        known = object.__getattribute__(task, "__dict__")
        return known.get("_state", "PENDING") != "PENDING", known.get("_name")
    return None
