"""Changes inside a value: the parts that were written, and a note about deeper ones that are not tracked."""

from __future__ import annotations

import re
from contextlib import closing

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import PartChange
from replaydbg.debugger.source.place_expressions import PlaceExpression
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import Watch
from replaydbg.engine.queries import GetContent
from replaydbg.engine.query_results import ObjectContent
from replaydbg.errors import AskFailed

LONGEST = 80
"""Characters of a value that are shown."""

MOST_PARTS = 3

_BEHIND = re.compile(r"(?<=, \.\.\.[])}]) \([\d,]+ items\)\Z")
"""The number of items behind the first ones of a large container."""


def deeper_change_note(view: ReplayView, place: PlaceExpression, watch: Watch, seen: int, until: int) -> str:
    """Return a note if the value that `watch` leads to at the line `until` was different at `seen`.

    No change of it was seen in between, so it is the same object.
    """
    with closing(view.travel.at(until)) as worker:
        (found,) = worker.locate_each([watch])
    if found.is_part or not found.object[0]:
        return ""
    known, now = (_content(view, count, found.object) for count in (seen, until))
    if known is None or now is None or (known.text, known.held) == (now.text, now.held):
        return ""
    text = now.text if len(now.text) <= LONGEST else now.text[: LONGEST - 3] + "..."
    to = f", to {text}," if now.text != known.text else ""
    part = next((each.name for each in _changed_parts(known, now) if each.before and each.after), "")
    ask = f"`why {place.source}{part}` or " if part else ""
    return (
        f"it has changed since{to} in a way that is not tracked: "
        f"deeper changes inside a {now.type} are not; use {ask}`bisect snapshots --bad EXPR`"
    )


def changed_parts(
    view: ReplayView, writer: EngineProcess, reader: EngineProcess, watch: Watch, before: str, after: str
) -> tuple[PartChange, ...]:
    """Return the items and attributes of a value that differ between two processes, if its two texts do not show that.

    At most MOST_PARTS. Of a container with more items than its text has, none if there are more: where an item is
    inserted, all after it differ.
    """
    if not before or _BEHIND.sub("", before) != _BEHIND.sub("", after):
        return ()
    (found,) = writer.locate_each([watch])
    if found.is_part:
        return ()
    try:
        old, new = (worker.ask(GetContent(found.object), idle=view.work.idle) for worker in (writer, reader))
    except AskFailed:
        return ()
    changes = _changed_parts(old, new) if old and new else ()
    return changes[:MOST_PARTS] if before == after or len(changes) <= MOST_PARTS else ()


def _changed_parts(before: ObjectContent, after: ObjectContent) -> tuple[PartChange, ...]:
    nothing = (None, "")
    pairs = {
        name: (before.parts.get(name, nothing), after.parts.get(name, nothing))
        for name in {**before.parts, **after.parts}
    }
    return tuple(PartChange(name, old[1], new[1]) for name, (old, new) in pairs.items() if old[0] != new[0])


def _content(view: ReplayView, count: int, located: tuple[int, int]) -> ObjectContent | None:
    """Return the content of an object and of the containers in it at a line; None: unknown."""
    try:
        with closing(view.travel.at(count)) as worker:
            return worker.ask(GetContent(located), idle=view.work.idle)
    except AskFailed:
        return None
