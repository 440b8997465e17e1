"""Where a search for breakpoints ends, and what their conditions and ignore counts let pass on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.results import Breakpoint
from replaydbg.engine.worker import EngineProcess


@dataclass(frozen=True, slots=True)
class StopFound:
    """Where a search ended."""

    count: int
    why: str
    breakpoint: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A place where a breakpoint is met and its condition is true."""

    count: int
    said: str
    """What is to be said of the condition; empty: nothing is."""


class BreakpointFilter:
    """What the conditions and ignore counts of breakpoints let pass in one search, in either direction."""

    def __init__(self, view: ReplayView, points: Sequence[Breakpoint]) -> None:
        self._view = view
        self._left = {each.number: each.ignore for each in points}

    def passage(self, point: Breakpoint, worker: EngineProcess) -> Hit | None:
        """Return the passage of `point` where `worker` stands; None: its condition is not true there."""
        said = self._view.ask.judge(worker, point.condition) if point.condition else ""
        return Hit(worker.count, said) if said is not None else None

    def lets_pass(self, point: Breakpoint) -> bool:
        """Whether a passage is one of those that are let through. Ask once for each, in the order of the search."""
        if self._left[point.number] == 0:
            return False
        self._left[point.number] -= 1
        return True

    def last(self, point: Breakpoint, passages: Sequence[Hit]) -> Hit | None:
        """Return the last of `passages` that is not let through, in a search that goes backwards."""
        return next((each for each in reversed(passages) if not self.lets_pass(point)), None)


def described(text: str, passage: Hit) -> str:
    """Return `text` with what is to be said of a passage."""
    return f"{text}; {passage.said}" if passage.said else text
