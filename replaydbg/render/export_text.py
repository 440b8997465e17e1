"""The result of an export as text and as JSON data."""

from __future__ import annotations

from replaydbg.debugger.object_export import Export, Lost
from replaydbg.errors import quoted
from replaydbg.render.json_data.json_object import JsonObject


def export_lines(found: Export, path: str) -> list[str]:
    """Return the lines that describe the result."""
    result = [f"{path}: a {found.type}, {len(found.data):,} bytes: {found.text}"]
    result += [f"  not saved: {_lost(each)}" for each in found.lost]
    return [*result, f"  replaydbg.load({quoted(path)!r}) loads it in any Python that has its modules."]


def _lost(lost: Lost) -> str:
    return f"{lost.path or 'a part'} (a {lost.type}): {lost.reason}"


def export_facts(found: Export, path: str) -> JsonObject:
    """Return the result as data."""
    lost = [{"path": each.path, "type": each.type, "reason": each.reason} for each in found.lost]
    return {"file": path, "type": found.type, "text": found.text, "bytes": len(found.data), "lost": lost}


def page_file_facts(path: str, data: bytes, problem: str) -> JsonObject:
    """Return a written page as data; `problem`: why it has only what needs no replay, empty: it has everything."""
    return {"file": path, "bytes": len(data), "not_replayed": problem or None}
