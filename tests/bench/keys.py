"""The latency of keys in the terminal UI, from the press until the screen is drawn."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.journeys import JOURNEYS
from tests.bench.terminal_keys import TerminalTimes, measure_terminal
from tests.bench.travel import Times
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import run
from tests.harness.seen import Seen, see

NAME = "keys"
PLACES = 60
STEPS = ("n", "s", "N", "S")
SEEKS = ("left_square_bracket", "right_square_bracket", "g", "G", "e", "f", "F", "backspace")
STEP_TARGET = 100.0
SEEK_TARGET = 300.0


class KeysFailed(Exception):
    """A step failed, so its time is meaningless."""


@dataclass(frozen=True, slots=True)
class KeyCosts:
    """Milliseconds of wall time for each key."""

    lines: int
    terminal: TerminalTimes
    steps: dict[str, tuple[float, ...]]
    seeks: dict[str, tuple[float, ...]]

    def as_text(self) -> str:
        """Return it as lines for people."""
        lines = [f"keys: {self.lines:,} lines"]
        for kind, target, keys in (("steps", STEP_TARGET, self.steps), ("seeks", SEEK_TARGET, self.seeks)):
            every = Times(tuple(each for times in keys.values() for each in times))
            apart = ", ".join(f"{key} {Times(times).percentile(95):.0f}" for key, times in keys.items())
            lines.append(
                f"  {len(every.each)} {kind}: p50 {every.percentile(50):.0f} ms, p95 {every.percentile(95):.0f} ms "
                f"(target {target:.0f}); p95 of each: {apart}"
            )
        return "\n".join([*lines, *(f"  {line}" for line in self.terminal.lines())])

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_keys(timeout: float, *, places: int = PLACES, scale: float = 1.0) -> KeyCosts:
    """Measure it in a run of ten million lines, or the share `scale` of it. Raises KeysFailed."""
    journey = JOURNEYS[0]
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        recording = Path(name) / "journey.rdbg"
        argv = journey.arguments(round((journey.rounds or 0) * scale), scale)
        recorded = run(tool.record(sys.executable, recording, argv), cwd=Path(name), env=environment(), timeout=timeout)
        if recorded.status != 1:
            raise KeysFailed(recorded.stderr.decode(errors="replace"))
        keys = _Keys(places)
        see(recording, keys.press_all)
        terminal = measure_terminal(recording, timeout, rounds=max(places // 3, 2))
    return KeyCosts(keys.lines, terminal, *keys.times())


class _Keys:
    """Presses keys at random moments, to which the UI is moved by typed commands."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._times: dict[str, list[float]] = {}
        self.lines = 0

    def times(self) -> tuple[dict[str, tuple[float, ...]], dict[str, tuple[float, ...]]]:
        """Return the milliseconds of the steps, and of the seeks."""
        steps = {key: tuple(self._times[key]) for key in STEPS}
        return steps, {key: tuple(times) for key, times in self._times.items() if key not in steps}

    async def press_all(self, seen: Seen) -> None:
        self.lines = seen.overview.total
        draw = random.Random(8)
        for number in range(self._places):
            await seen.press("percent_sign")
            await seen.pilot.press(*f"{draw.uniform(0.1, 99.9):.3f}%")
            await self._press(seen, "enter", called="%")
            for key in draw.sample(STEPS, len(STEPS)):
                await self._press(seen, key)
            await self._press(seen, SEEKS[number % len(SEEKS)])

    async def _press(self, seen: Seen, key: str, called: str = "") -> None:
        app, before, drawn = seen.app, seen.app.scene, asyncio.Event()
        # Exclude everything drawn before.
        await seen.pilot.pause(0.05)
        began = time.perf_counter()
        app.simulate_key(key)
        await seen.until(lambda: app.scene is not before and not app.is_waiting)
        app.screen.call_after_refresh(drawn.set)
        await drawn.wait()
        self._times.setdefault(called or key, []).append(1000 * (time.perf_counter() - began))
