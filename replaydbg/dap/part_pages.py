"""Pages of the parts of values, fetched ahead where that is quick.

Each question costs a copy of the program, however few parts it is about. A client that shows a whole list asks for one
page after the other. But a value may need long for its text: so only behind a page that came quickly more than is asked
for is fetched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from replaydbg.dap.handles import ValueHandle
from replaydbg.debugger.session_results import Variable

QUICK = 0.02
"""Seconds within which a page comes quickly."""

AHEAD = 1000
"""Parts that are fetched behind a page that came quickly."""


class PartPages:
    """The parts that are known of the values at one stop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[ValueHandle, dict[int, Variable]] = {}
        self._quick: set[ValueHandle] = set()

    def page(
        self, value: ValueHandle, first: int, count: int, fetch: Callable[[int, int], Sequence[Variable]]
    ) -> Sequence[Variable]:
        """Return `count` parts from `first` on, fewer at the end; `fetch` returns that of the program."""
        known = self._known.setdefault(value, {})
        wanted = range(first, min(first + count, value.parts))
        if all(at in known for at in wanted):
            return [known[at] for at in wanted]
        began = self._clock()
        found = fetch(first, max(count, AHEAD) if value in self._quick else count)
        if self._clock() - began < QUICK:
            self._quick.add(value)
        known.update(enumerate(found, first))
        return found[:count]

    def clear(self) -> None:
        """Forget all: the session has moved."""
        self._known.clear()
        self._quick.clear()
