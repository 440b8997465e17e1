"""Items of a sequence that a line moved to another index, by inserting, removing or sorting others."""

from __future__ import annotations

import ast
from dataclasses import replace

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import MovedItem
from replaydbg.debugger.source.place_expressions import PlaceExpression
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import Watch
from replaydbg.engine.queries import FindInSequence
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
    query = FindInSequence(owner=owner.object, item=item.object, source=source)
    try:
        before, after = (each.ask(query, idle=view.work.idle) for each in (writer, reader))
    except AskFailed:
        return None  # it is not a sequence, or the item did not exist
    # An item that is there once more was copied.
    if not before.indices or len(after.indices) > len(before.indices):
        return None
    shifted = index % max(after.length, 1) - (after.length - before.length)
    found = shifted if shifted in before.indices else before.indices[0]
    return MovedItem(found, f"{source}[{found}]" if before.is_named else "")


def _owner_of(source: str) -> str:
    node = ast.parse(source, mode="eval").body
    assert isinstance(node, ast.Subscript), source
    return ast.unparse(node.value)
