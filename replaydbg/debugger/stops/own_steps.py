"""Steps backwards that pass over all code that is not the user's own."""

from __future__ import annotations

from contextlib import closing

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.engine.protocol import TRACK, RunOrder
from replaydbg.engine.reports import Frame


def last_own_line(view: ReplayView, own: OwnCode, lane: int, before: int) -> int:
    """Return the count of the last own line of a thread before the line `before`; 0: there is none."""
    order = RunOrder(rule=TRACK, lane=lane, own=own.patterns)
    if before < 2:
        return 0
    with closing(view.travel.scans_back(before - 1, order)) as scans:
        return next((each.where.tracked for each in scans if each.where.tracked), 0)


def is_own(view: ReplayView, own: OwnCode, frame: Frame) -> bool:
    """Whether a frame runs own code."""
    return own.is_own(frame.file, is_command=view.header.kind == "command")
