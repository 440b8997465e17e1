"""Where each command leads by a plain trace (tests/debugger/travel_tracer.py) and the simplest definition."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Line:
    """A line that ran."""

    lane: int
    activation: int
    callers: tuple[int, ...]
    """The suspended activations above it, innermost first."""
    file: str
    number: int
    function: str
    variables: dict[str, str]
    """Local variables with simple values, as text."""
    is_first: bool
    """Whether it is the first of its activation."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A breakpoint as the oracle understands it."""

    file: str = ""
    line: int = 0
    function: str = ""
    exception: str = ""
    variable: str = ""
    value: int = 0
    """With a variable: stop if it is greater than this."""


class Trace:
    """All lines of a run in order. Each command takes an index, and returns an index or None: outside the trace."""

    def __init__(self, path: Path) -> None:
        """Read what the tracer wrote."""
        told: Any = json.loads(path.read_text())
        chains = [tuple(each) for each in told["chains"]]
        # The first line is one of the module, which began before it.
        seen = {told["entries"][0][1]}
        self.lines: list[Line] = []
        for lane, activation, chain, file, number, function, variables in told["entries"]:
            first = activation not in seen
            seen.add(activation)
            self.lines.append(Line(lane, activation, chains[chain], file, number, function, variables, first))
        self._ended = {int(activation): at for activation, at in told["ended"].items()}
        self.raised: list[tuple[int, str]] = sorted((at, kind) for at, kind in told["raised"])

    @cached_property
    def _of_activation(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for at, line in enumerate(self.lines):
            found.setdefault(line.activation, []).append(at)
        return found

    @cached_property
    def _of_lane(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for at, line in enumerate(self.lines):
            found.setdefault(line.lane, []).append(at)
        return found

    # ---- commands ----

    def step(self, at: int) -> int | None:
        """Return the next line of the lane."""
        return _after(self._of_lane[self.lines[at].lane], at)

    def reverse_step(self, at: int) -> int | None:
        """Return the previous line of the lane."""
        return _before(self._of_lane[self.lines[at].lane], at)

    def next(self, at: int) -> int | None:
        """Return the next line of the activation, in this lane, or of a caller when it has ended."""
        return self._out(at, stays=True)

    def finish(self, at: int) -> int | None:
        """Return the next line of a caller when the activation has ended."""
        return self._out(at, stays=False)

    def _out(self, at: int, *, stays: bool) -> int | None:
        here = self.lines[at]
        ended = self._ended.get(here.activation, len(self.lines))
        for later in range(at + 1, len(self.lines)):
            line = self.lines[later]
            if line.lane != here.lane:
                continue
            if stays and line.activation == here.activation:
                return later
            if ended <= later and line.activation in here.callers:
                return later
        return None

    def reverse_next(self, at: int) -> int | None:
        """Return the previous line in the activation, or the caller's last one."""
        before = _before(self._of_activation[self.lines[at].activation], at)
        return before if before is not None else self.reverse_finish(at)

    def reverse_finish(self, at: int) -> int | None:
        """Return the last line of the innermost caller that has run any."""
        for caller in self.lines[at].callers:
            before = _before(self._of_activation.get(caller, []), at)
            if before is not None:
                return before
        return None

    # ---- in own code ----

    def own(self, command: str, at: int, is_own: Callable[[str], bool]) -> int | None:
        """Return where a command leads if it passes over files that are not the user's own."""
        owns = [is_own(each.file) for each in self.lines]
        if command == "reverse_finish":
            return self._own_caller(at, owns)
        if command == "reverse_next" and owns[at]:
            before = _before(self._of_activation[self.lines[at].activation], at)
            return before if before is not None else self._own_caller(at, owns)
        goes_back = command.startswith("reverse")
        found = self.reverse_step(at) if goes_back else getattr(self, command)(at)
        while found is not None and not owns[found]:
            found = self.reverse_step(found) if goes_back else self.step(found)
        return found

    def _own_caller(self, at: int, owns: Sequence[bool]) -> int | None:
        for caller in self.lines[at].callers:
            before = _before(self._of_activation.get(caller, []), at)
            if before is not None and owns[before]:
                return before
        return None

    def go(self, at: int, stops: Sequence[Stop]) -> int | None:
        """Return the next place at which one of `stops` is hit."""
        return next((each for each in range(at + 1, len(self.lines)) if self.is_met(each, stops)), None)

    def reverse_go(self, at: int, stops: Sequence[Stop]) -> int | None:
        """Return the previous place at which one of `stops` is hit."""
        return next((each for each in range(at - 1, -1, -1) if self.is_met(each, stops)), None)

    def is_met(self, at: int, stops: Sequence[Stop]) -> bool:
        """Return whether one of `stops` is hit at that line."""
        return any(self._meets(at, each) for each in stops)

    def _meets(self, at: int, stop: Stop) -> bool:
        line = self.lines[at]
        if stop.exception:
            first = bisect_left(self.raised, (at, ""))
            kinds = []
            while first < len(self.raised) and self.raised[first][0] == at:
                kinds.append(self.raised[first][1])
                first += 1
            return bool(kinds) and (stop.exception == "*" or stop.exception in kinds)
        if stop.function:
            return line.is_first and stop.function in (line.function, line.function.rpartition(".")[2])
        if (line.file, line.number) != (stop.file, stop.line):
            return False
        return not stop.variable or int(line.variables[stop.variable]) > stop.value

    def stays(self, at: int, then: int) -> bool:
        """Return whether both lines belong to one activation."""
        return self.lines[at].activation == self.lines[then].activation


Command = Callable[[int], int | None]


def _after(places: list[int], at: int) -> int | None:
    found = bisect_left(places, at + 1)
    return places[found] if found < len(places) else None


def _before(places: list[int], at: int) -> int | None:
    found = bisect_left(places, at)
    return places[found - 1] if found else None
