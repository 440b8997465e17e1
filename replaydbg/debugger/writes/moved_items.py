"""Items of a sequence that a line moved to another index, by inserting, removing or sorting others."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import MovedItem
from replaydbg.debugger.source.place_expressions import PlaceExpression
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import Watch
from replaydbg.engine.queries import GetSequence
from replaydbg.errors import AskFailed


def moved_item(
    view: ReplayView, place: PlaceExpression, watch: Watch, writer: EngineProcess, reader: EngineProcess
) -> MovedItem | None:
    """Return where the item was before a line ran, if it was in the same sequence; None: the line stored it there.

    `writer` is before the line, `reader` after it.
    """
    index = watch.steps[-1].index if watch.steps else None
    if index is None:
        return None
    item, owner = reader.locate_each([watch, replace(watch, steps=watch.steps[:-1])])
    if item.is_part or not item.object[0] or writer.locate(replace(watch, steps=watch.steps[:-1])) != owner.object:
        return None
    source = _owner_of(place.source)
    query = GetSequence(owner=owner.object, source=source)
    try:
        before, after = (each.ask(query, idle=view.work.idle) for each in (writer, reader))
    except AskFailed:
        return None
    at = index + len(after.items) if index < 0 else index
    found = _index_before(before.items, after.items, at)
    return MovedItem(found, f"{source}[{found}]" if before.is_named else "") if found is not None else None


def _index_before(before: Sequence[int], after: Sequence[int], at: int) -> int | None:
    """Return where the item that is at an index now was before; None: it was stored there."""
    item, shifted = after[at], at - (len(after) - len(before))
    # Items were inserted or removed before it, and all from it on are the same.
    if len(after) != len(before) and shifted >= 0 and before[shifted:] == after[at:]:
        return shifted
    if before[at : at + 1] == [item]:
        return at  # counted from the end, it has another index
    # An item that is there once more was copied.
    return before.index(item) if 0 < before.count(item) >= after.count(item) else None


def _owner_of(source: str) -> str:
    node = ast.parse(source, mode="eval").body
    assert isinstance(node, ast.Subscript), source
    return ast.unparse(node.value)
