"""The terminal UI in a real terminal: its first picture, the time from a key to its picture, and a key held down."""

from __future__ import annotations

import random
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from replaydbg.debugger import Session
from tests.bench.travel import Times
from tests.bench.workloads import environment
from tests.harness.pseudo_terminal import PseudoTerminal, plain_text

SIZE = (120, 36)
PAINT_TARGET = 0.4
KEY_TARGET = 100.0
RATE = 30
"""Keys a second from a keyboard that repeats."""
HELD_SECONDS = 5.0
MOVES = ("n", "s", "N", "S")
OTHERS = ("2", "3", "4", "6", "1", "\x1b[B", "\x1b[A", "u", "d", "?", "\x1b", ":", "\x1b", "'", "\x1b")
_MOMENT = re.compile(r"event [\d,]+ / [\d,]+\s+(\d+:\d+)")


class TerminalFailed(Exception):
    """The terminal UI did not show what was waited for, so its times are meaningless."""


@dataclass(frozen=True, slots=True)
class HeldKey:
    """What a key did that was held down."""

    sent: int
    """Number of keys."""
    pictures: int
    """Number of positions that were drawn."""
    lag: float
    """Milliseconds from the last key until its position was drawn."""
    most_lag: float
    """How many milliseconds the picture was behind the keys at most."""


@dataclass(frozen=True, slots=True)
class TerminalTimes:
    """Seconds from the command, and milliseconds of wall time from a key to its picture."""

    paint: float
    """Until the first picture, with an existing index."""
    opened: float
    """Until the failure is shown."""
    moves: tuple[float, ...]
    others: tuple[float, ...]
    held: HeldKey

    def lines(self) -> list[str]:
        """Return it as lines for people."""
        held = self.held
        return [
            f"in a terminal: first picture {self.paint:.2f} s (target {PAINT_TARGET}), the failure {self.opened:.2f} s",
            f"  {len(self.moves)} steps: {_percentiles(self.moves)}; {len(self.others)} other keys: "
            f"{_percentiles(self.others)} (target {KEY_TARGET:.0f} at p95)",
            f"  s held down, {RATE} a second: {held.sent} keys, {held.pictures} pictures, behind by at most "
            f"{held.most_lag:.0f} ms, after the last key {held.lag:.0f} ms",
        ]


def _percentiles(times: tuple[float, ...]) -> str:
    found = Times(times)
    return f"p50 {found.percentile(50):.0f} ms, p95 {found.percentile(95):.0f} ms"


def measure_terminal(recording: Path, timeout: float, *, rounds: int = 20) -> TerminalTimes:
    """Measure it with a recording that ends by an exception. Raises TerminalFailed."""
    command = [sys.executable, "-m", "replaydbg", "tui", str(recording)]
    environ = {**environment(), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    terminal = PseudoTerminal(command, cwd=recording.parent, environ=environ, size=SIZE)
    try:
        paint = _wait_for(terminal, recording.name, timeout) - terminal.began
        opened = _wait_for(terminal, "RuntimeError", timeout) - terminal.began
        keys = _Keys(terminal, timeout)
        keys.press_all(rounds)
        held = _held(keys, recording)
    finally:
        terminal.close()
    return TerminalTimes(paint, opened, tuple(keys.moves), tuple(keys.others), held)


def _wait_for(terminal: PseudoTerminal, wanted: str, timeout: float) -> float:
    at = terminal.wait_for(lambda seen: wanted in plain_text(seen), timeout)
    if not at:
        raise TerminalFailed(f"{wanted!r} did not come: {plain_text(bytes(terminal.output[-2000:]))!r}")
    return at


class _Keys:
    """Presses keys one after the other, at random positions."""

    def __init__(self, terminal: PseudoTerminal, timeout: float) -> None:
        self.terminal, self._timeout = terminal, timeout
        self.moves: list[float] = []
        self.others: list[float] = []

    def press_all(self, rounds: int) -> None:
        draw = random.Random(8)
        for _ in range(rounds):
            self.seek(draw.uniform(0.1, 99.9))
            self.moves += [self.press(key, is_move=True) for key in draw.sample(MOVES, len(MOVES))]
            self.others += [self.press(key) for key in OTHERS]

    def seek(self, percent: float) -> str:
        """Go to a position of the run; return it."""
        self.terminal.send(f"%{percent:.3f}%\r".encode())
        return self.settled()

    def settled(self) -> str:
        """Wait until nothing is drawn any longer; return the position."""
        if not self.terminal.wait_for(lambda new: _MOMENT.search(plain_text(new)), self._timeout):
            raise TerminalFailed("no position was drawn")
        while self.terminal.read(0.7):
            pass
        found: list[str] = _MOMENT.findall(plain_text(bytes(self.terminal.output)))
        return found[-1]

    def press(self, key: str, *, is_move: bool = False) -> float:
        """Press a key; return the milliseconds until its picture, of a move until its position is drawn."""
        while self.terminal.read(0.4):
            pass
        began = time.monotonic()
        self.terminal.send(key.encode())
        drawn = self.terminal.wait_for(
            lambda seen: bool(_MOMENT.search(plain_text(seen))) if is_move else bool(seen), self._timeout
        )
        if not drawn:
            raise TerminalFailed(f"nothing was drawn after {key!r}")
        return 1000 * (drawn - began)


def _held(keys: _Keys, recording: Path) -> HeldKey:
    first = keys.seek(50.0)
    terminal, number = keys.terminal, round(RATE * HELD_SECONDS)
    began, sent, seen = time.monotonic(), 0, ""
    drawn: list[tuple[float, str]] = []
    while sent < number or time.monotonic() < began + HELD_SECONDS + 5.0:
        if sent < number and time.monotonic() >= began + sent / RATE:
            terminal.send(b"s")
            sent += 1
        left = began + sent / RATE - time.monotonic() if sent < number else 1.0
        data = terminal.read(left)
        if not data and sent == number and left == 1.0:
            break
        seen = (seen + plain_text(data))[-4000:]
        found = _MOMENT.findall(seen)
        if found and (not drawn or drawn[-1][1] != found[-1]):
            drawn.append((time.monotonic() - began, found[-1]))
    if not drawn:
        raise TerminalFailed("nothing was drawn while a key was held down")
    with Session(recording) as session:
        start, *counts = (session.count_of(each) for each in (first, *(moment for _, moment in drawn)))
    # A step may be several lines of the run.
    done = [(at, number * (count - start) / (counts[-1] - start)) for (at, _), count in zip(drawn, counts, strict=True)]
    lags = [at - (steps - 1) / RATE for at, steps in done]
    return HeldKey(number, len(drawn), 1000 * lags[-1], 1000 * max(lags))
