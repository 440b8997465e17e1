"""Parts of values are fetched ahead, but not where that takes long."""

from __future__ import annotations

import pytest

from replaydbg.dap.handles import FrameHandle, ValueHandle
from replaydbg.dap.part_pages import AHEAD, QUICK, PartPages
from replaydbg.debugger.session_results import Variable

LONG = ValueHandle(FrameHandle(0, 0, 0), "many", parts=2500)


class Program:
    """A program with a long list; to describe a part takes some seconds of a clock."""

    def __init__(self, seconds: float) -> None:
        self.now, self._seconds = 0.0, seconds
        self.asked: list[tuple[int, int]] = []
        self.pages = PartPages(lambda: self.now)

    def names(self, first: int, count: int) -> list[str]:
        return [each.name for each in self.pages.page(LONG, first, count, self._fetch)]

    def _fetch(self, first: int, count: int) -> list[Variable]:
        self.asked.append((first, count))
        found = [Variable(f"[{at}]", "int", str(at), 0) for at in range(first, min(first + count, LONG.parts))]
        self.now += self._seconds * len(found)
        return found


@pytest.mark.parametrize("seconds", [0.0, QUICK])
def test_each_page_is_what_was_asked_for(seconds: float) -> None:
    program = Program(seconds)

    for first in (0, 100, 200, 2450, 100, 2600):
        assert program.names(first, 100) == [f"[{at}]" for at in range(first, min(first + 100, 2500))]


def test_quick_values_are_fetched_ahead_once() -> None:
    program = Program(0.0)

    for first in range(0, 1000, 100):
        program.names(first, 100)

    assert program.asked == [(0, 100), (100, AHEAD)]


def test_slow_values_are_not() -> None:
    program = Program(QUICK)

    for first in range(0, 300, 100):
        program.names(first, 100)

    assert program.asked == [(0, 100), (100, 100), (200, 100)]


def test_nothing_is_known_at_another_stop() -> None:
    program = Program(0.0)
    program.names(0, 100)
    program.names(100, 100)

    program.pages.clear()
    program.names(200, 100)

    assert program.asked[-1] == (200, 100)
