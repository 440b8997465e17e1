"""Results of a search for breakpoints, and the conditions and ignore counts that filter its hits."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.classes import dataclass
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.engine.engine_process import EngineProcess


@dataclass(frozen=True, slots=True)
class StopFound:
    """The end of a search."""

    count: int
    why: str
    breakpoint: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A place where a breakpoint is met and its condition is true."""

    count: int
    note: str
    """A note about the condition; may be empty."""


class BreakpointFilter:
    """Conditions and ignore counts of breakpoints during one search, in either direction."""

    def __init__(self, view: ReplayView, points: Sequence[Breakpoint]) -> None:
        self._view = view
        self._left = {each.number: each.ignore for each in points}

    def hit(self, point: Breakpoint, worker: EngineProcess) -> Hit | None:
        """Return the hit of `point` at the position of `worker`; None: its condition is not true there."""
        note = self._view.ask.judge(worker, point.condition) if point.condition else ""
        return Hit(worker.count, note) if note is not None else None

    def consumes_ignore(self, point: Breakpoint) -> bool:
        """Whether a hit is one of those to ignore. Ask once for each, in the order of the search."""
        if self._left[point.number] == 0:
            return False
        self._left[point.number] -= 1
        return True

    def last(self, point: Breakpoint, hits: Sequence[Hit]) -> Hit | None:
        """Return the last of `hits` that is not ignored, in a search that goes backward."""
        return next((each for each in reversed(hits) if not self.consumes_ignore(point)), None)


def described(text: str, hit: Hit) -> str:
    """Return `text` with the note about a hit."""
    return f"{text}; {hit.note}" if hit.note else text
