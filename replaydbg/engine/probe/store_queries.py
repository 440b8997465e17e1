"""Tells whether what a statement stores to is the place that is meant. A part of the script that inside.py begins."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sys
    from typing import Any

    from replaydbg.engine.probe.value_queries import Question, frame_of, frames_of, names_of

    def object_at(address: int, kind: int) -> Any: ...


def stores(question: Question) -> list[bool | None]:
    """For each target of the line that is about to run: whether it is the place; None: that cannot be told."""
    return stores_of(frame_of(question), question, question["targets"])


def spans(question: Question) -> list[tuple[int, int, int, int]]:
    """The source of each instruction of a frame's code: lines and columns; zeros where the compiler kept none."""
    found = frame_of(question).f_code.co_positions()
    return [(line or 0, end_line or 0, column or 0, end or 0) for line, end_line, column, end in found]


def waiting(question: Question) -> list[tuple[str, int]]:
    """The lines at which tasks wait and are then going to store to the place, as far as that can be told."""
    asyncio = sys.modules.get("asyncio.tasks")
    known: Any = getattr(asyncio, "_scheduled_tasks", None) or getattr(asyncio, "_all_tasks", ())
    found = []
    for task in [*(getattr(known, "data", ()) or known), *getattr(asyncio, "_eager_tasks", ())]:
        task = task() if type(task).__name__ == "ReferenceType" else task
        for frame in frames_of(task.get_coro()) if task is not None and not task.done() else ():
            place = (frame.f_code.co_filename, frame.f_lineno or 0)
            targets = question["lines"].get(place, ())
            if targets and any(each is not False for each in stores_of(frame, question, targets)):
                found.append(place)
    return found


def stores_of(frame: Any, question: Question, targets: Any) -> list[bool | None]:
    if question["key"] is None:
        return [None] * len(targets)
    owner = sys.modules.get(question["module"]) if question["module"] else object_at(*question["object"])
    names = {**frame.f_globals, **frame.f_locals}
    return [is_stored(frame, names, owner, question["key"], *each) for each in targets]


def is_stored(frame: Any, names: dict[str, Any], owner: Any, wanted: Any, container: Any, key: Any) -> bool | None:
    if container is None:
        return getattr(owner, "__dict__", None) is frame.f_globals and is_global(frame, wanted)
    if container == "":
        return None
    try:
        if eval(container, names) is not owner:
            return False
        if key is None or key == "":
            return True if key is None else None
        found = eval(key, names)
        length = len(owner) if isinstance(owner, list) else 0
        return bool(found == wanted or (length and found % length == wanted % length))
    except (NameError, AttributeError, LookupError):
        return False  # the statement fails as well
    except BaseException:
        return None


def is_global(frame: Any, name: str) -> bool:
    code = frame.f_code
    if code.co_flags & 1:  # a function
        return name not in names_of(frame)
    # A class body has names of its own; one of the module that it says is global is not told from those.
    return frame.f_locals is frame.f_globals
