"""The stretches of a run in which an expression holds, as a table and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replaydbg.debugger import Session
from replaydbg.debugger.bisection.bisect_results import VerdictChange
from replaydbg.debugger.bisection.stretches import Stretch
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.json_data.moments_json import moment_facts
from replaydbg.render.tables import Table, drawn
from replaydbg.render.texts import moment_text, place_text


def lines(session: Session, expression: str, found: Sequence[Stretch]) -> Iterator[str]:
    """Yield the stretches as a table; if there are none, say so."""
    if not found:
        yield f"{expression} was never true."
        return
    rows = tuple((*_cells(session, each.begin), *_cells(session, each.end)) for each in found)
    often = "once" if len(found) == 1 else f"{len(found):,} times"
    columns = ("true after", "line", "until after", "line")
    yield drawn([Table(f"{expression}: true {often}", columns, rows)]).rstrip("\n")


def _cells(session: Session, change: VerdictChange | None) -> tuple[str, str]:
    if change is None:
        return "-", ""
    return moment_text(change.moment), place_text(session, change.file, change.line, change.function)


def facts(session: Session, stretch: Stretch) -> JsonObject:
    """Return a stretch as data; null is an end of the searched range."""
    return {"begin": _change_facts(session, stretch.begin), "end": _change_facts(session, stretch.end)}


def _change_facts(session: Session, change: VerdictChange | None) -> JsonObject | None:
    if change is None:
        return None
    place = {"file": change.file, "line": change.line, "function": change.function}
    return {**moment_facts(session, change.count, change.moment), **place}
