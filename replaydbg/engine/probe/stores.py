"""Whether a statement stores to a given place."""

from __future__ import annotations

import sys

from replaydbg.engine.probe.core import object_at
from replaydbg.engine.probe.elements import is_key, shares_memory
from replaydbg.engine.probe.frames import frame_of, names_of, names_seen_in
from replaydbg.engine.probe.waiting_tasks import frames_of, known_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.engine import queries


def stores(query: queries.MatchStores) -> list[bool | None]:
    """For each target of the line that is about to run, return whether it is the place; None: unknown."""
    return stores_of(frame_of(query), query, query.targets)


def waiting(query: queries.FindWaitingStores) -> list[tuple[str, int]]:
    """Return the lines at which tasks wait before they store to the place, as far as that is known."""
    found = []
    for task in known_tasks():
        for frame in frames_of(task.get_coro()):
            place = (frame.f_code.co_filename, frame.f_lineno or 0)
            targets = query.lines.get(place, ())
            if targets and any(each is not False for each in stores_of(frame, query, targets)):
                found.append(place)
    return found


def stores_of(frame: Any, query: queries.StoreQuery[Any], targets: Any) -> list[bool | None]:
    if query.key is None:
        return [None] * len(targets)
    owner = sys.modules.get(query.module) if query.module else object_at(*query.object)
    names = names_seen_in(frame)
    return [is_stored(frame, names, owner, query.key, *each) for each in targets]


def is_stored(frame: Any, names: dict[str, Any], owner: Any, wanted: Any, container: Any, key: Any) -> bool | None:
    if container is None:
        return getattr(owner, "__dict__", None) is frame.f_globals and is_global(frame, wanted)
    if container == "":
        return None
    try:
        written = eval(container, names)
        if written is not owner:
            return None if shares_memory(written, owner) else False
        if key is None or key == "":
            return True if key is None else None
        return is_key(eval(key, names), wanted, owner)
    except (NameError, AttributeError, LookupError):
        return False  # the statement fails as well
    except BaseException:
        return None


def is_global(frame: Any, name: str) -> bool:
    code = frame.f_code
    if code.co_flags & 1:  # a function
        return name not in names_of(frame)
    # A class body has names of its own; one that it declares global cannot be distinguished from those.
    return frame.f_locals is frame.f_globals
