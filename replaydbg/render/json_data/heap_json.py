"""Heaps, their objects and their differences as JSON data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from replaydbg.debugger.object_history import Created
from replaydbg.debugger.session_results import LastWrite
from replaydbg.heap.comparison.diff_results import Diff
from replaydbg.heap.retention.holding import Holding
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.texts import moment_text


def heap_facts(held: Holding, most: int | None) -> JsonObject:
    """Return the types and the largest objects of a heap as data."""
    taken = held.snapshot.taken
    counts, sizes = held.census()
    return {
        "event": taken.event,
        "step": taken.step,
        "objects": len(held.snapshot),
        "bytes": sizes.total(),
        "cut": list(held.snapshot.cut),
        "types": [{"type": name, "objects": counts[name], "bytes": size} for name, size in sizes.most_common(most)],
        "type_count": len(counts),
        "largest": [asdict(each) for each in held.largest(most)],
    }


def diff_facts(diff: Diff) -> JsonObject:
    """Return a difference as data."""
    facts: dict[str, Any] = {**asdict(diff), "is_empty": diff.is_empty}
    for name, paths in (
        ("changed", [each.path for each in diff.changed.items]),
        ("grown", [each.path for each in diff.grown.items]),
    ):
        for path, item in zip(paths, facts[name]["items"], strict=True):
            item["path"] = path
    return facts


def object_facts(
    held: Holding, node: int, *, made: Created | None, written: LastWrite | None, most: int | None
) -> JsonObject:
    """Return an object as data; `made` and `written`: who created it and who wrote it last, if that is known."""
    snapshot = held.snapshot
    holders = held.holders(node)
    return {
        "path": held.path(node),
        "what": held.text(node),
        "type": snapshot.type_name(node),
        "address": snapshot.address[node],
        "bytes": snapshot.size[node],
        "retained": held.retained[node],
        "created": _created_facts(made) if made is not None else None,
        "written": _writer_facts(written) if written is not None and written.moment is not None else None,
        "free_without": [held.path(each) for each in held.chain(node)],
        "holders": [asdict(each) for each in holders[:most]],
        "holder_count": len(holders),
    }


def _created_facts(made: Created) -> JsonObject:
    return {
        "moment": moment_text(made.moment),
        "count": made.count,
        "made_by": made.made or None,
        "place": made.place._asdict() if made.place is not None else None,
        "returned_to": made.returned_to._asdict() if made.returned_to is not None else None,
    }


def _writer_facts(written: LastWrite) -> JsonObject:
    assert written.moment is not None, written
    return {
        "moment": moment_text(written.moment),
        "count": written.count,
        "file": written.file,
        "line": written.line,
        "function": written.function,
    }
