"""The asyncio tasks that are not done, and the coroutines in them that wait for each other."""

from __future__ import annotations

import sys

from replaydbg.engine.probe.value_text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.engine import queries


def tasks(query: queries.GetTasks) -> list[Any]:
    """Each asyncio task that is not done, with the coroutines that wait for each other in it, outermost first."""
    asyncio = sys.modules.get("asyncio.tasks")
    if asyncio is None:
        return []
    found = []
    known: Any = getattr(asyncio, "_scheduled_tasks", None) or getattr(asyncio, "_all_tasks", ())
    for task in list(getattr(known, "data", ())) or list(known):
        task = task() if type(task).__name__ == "ReferenceType" else task
        if task is not None and not task.done():
            found.append((str(task.get_name()), chain(task.get_coro()), shown(getattr(task, "_fut_waiter", None), 200)))
    for task in list(getattr(asyncio, "_eager_tasks", ())):
        found.append((str(task.get_name()), chain(task.get_coro()), ""))
    return sorted(found)


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
