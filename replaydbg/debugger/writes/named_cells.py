"""Which cell or column of a data frame an expression names."""

from __future__ import annotations

from dataclasses import replace

from replaydbg.debugger.data_frames.cell_changes import CellPlace, read
from replaydbg.debugger.frame_queries import At
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.source.cell_expressions import CellExpression, parse_cell
from replaydbg.debugger.source.place_expressions import PlaceExpression
from replaydbg.debugger.writes.last_write import place_named, watch_at
from replaydbg.engine.cell_queries import FindDataFrame
from replaydbg.errors import AskFailed, UsageError


def cell_named(view: ReplayView, source: str, at: At) -> CellPlace | None:
    """Return the cell or column that an expression names in a frame here; None: it names something else.

    Raises UsageError if it cannot be tracked.
    """
    parsed = parse_cell(source, lambda index: view.ask.text_of(index, at))
    number = _steps_to_frame(view, parsed, at) if parsed is not None else None
    if parsed is not None and number is None and any(isinstance(key, tuple) for _, key in parsed.steps):
        _check_variable(view, parsed, at)
    if parsed is None or number is None:
        return None
    watch = watch_at(view, place_named(view, parsed.sources[number], at), at)
    root = replace(watch, stops=False, is_cell=False)
    place = CellPlace(parsed.source, root, parsed.steps[number:], watch.is_cell)
    state = read(view, view.cursor, place, place.watch)
    if state.content.obstacle:
        raise UsageError(f"{source!r} cannot be tracked: {state.content.obstacle}.")
    return place


def _steps_to_frame(view: ReplayView, parsed: CellExpression, at: At) -> int | None:
    try:
        query = FindDataFrame(at.frame, at.lane, parsed.name, parsed.steps)
        return view.cursor.ask(query, idle=view.work.idle)
    except AskFailed:
        return None  # the reason is reported when the place is tracked


def _check_variable(view: ReplayView, parsed: CellExpression, at: At) -> None:
    """Raise UsageError if there is no such variable: a label such as `(3, 'amount')` may be right."""
    watch_at(view, PlaceExpression(parsed.source, parsed.name, ()), at)
