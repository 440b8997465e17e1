"""What an editor waits for: the first answer, a step back, and the parts of a long list."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.report import verdict
from tests.bench.travel import Times
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.dap_client import DapClient
from tests.harness.process import run

NAME = "editor"
PLACES = 30
ITEMS, PAGE = 1000, 100
ROUNDS = 100_000
INITIALIZE_TARGET, STEP_TARGET, VARIABLES_TARGET = 150.0, 30.0, 50.0
"""Milliseconds of wall time."""

PROGRAM = f"""\
def grow(total, number):
    total += number % 7
    return total


many = list(range({ITEMS}))
total = 0
for number in range({{rounds}}):
    total = grow(total, number)
print(total)
"""


class EditorFailed(Exception):
    """A command failed, so its time has no meaning."""


@dataclass(frozen=True, slots=True)
class EditorCosts:
    """Milliseconds of wall time."""

    lines: int
    initialize: tuple[float, ...]
    """From the command to the answer."""
    opened: tuple[float, ...]
    """From `attach` to the first stop, with an existing index."""
    stopped: tuple[float, ...]
    """From `stepBack` to the stop."""
    shown: tuple[float, ...]
    """From `stepBack` until threads, frames and local variables have been fetched, too."""
    variables: tuple[float, ...]
    """The items of a list, in pages."""

    def as_text(self) -> str:
        """Return it as lines for people."""
        rows = [
            ("initialize", self.initialize, INITIALIZE_TARGET),
            ("attach, to the first stop", self.opened, None),
            ("stepBack, to the stop", self.stopped, STEP_TARGET),
            ("stepBack, until all is shown", self.shown, None),
            (f"{ITEMS:,} variables, {PAGE} at a time", self.variables, VARIABLES_TARGET),
        ]
        lines = [f"an editor, in a run of {self.lines:,} lines (medians)"]
        for name, times, target in rows:
            goal = f" ({verdict(median(times), target)}, target {target:.0f})" if target is not None else ""
            lines.append(f"  {name:<30} {median(times):6.1f} ms, p95 {Times(times).percentile(95):6.1f}{goal}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_editor(runs: int, timeout: float, *, places: int = PLACES, rounds: int = ROUNDS) -> EditorCosts:
    """Start `runs` servers, and step back from random places in the last one. Raises EditorFailed."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        folder = Path(name)
        program = folder / "grows.py"
        program.write_text(PROGRAM.format(rounds=rounds))
        recording = folder / "grows.rdbg"
        recorded = run(
            tool.record(sys.executable, recording, [str(program)]), cwd=folder, env=environment(), timeout=timeout
        )
        if recorded.status != 0:
            raise EditorFailed(recorded.stderr.decode(errors="replace"))
        with DapClient(folder, environ=environment()) as client:
            client.attach(recording)  # makes the index
            client.console("step")  # waits for the first pass
        initialize, opened = [], []
        for _ in range(runs):
            began = time.perf_counter()
            with DapClient(folder, environ=environment()) as client:
                client.initialize()
                initialize.append(1000 * (time.perf_counter() - began))
                opened.append(_timed(partial(_open, client, recording)))
        with DapClient(folder, environ=environment()) as client:
            client.initialize()
            _open(client, recording)
            steps = _Steps(client)
            steps.take(places)
        return EditorCosts(
            5 * rounds, tuple(initialize), tuple(opened), tuple(steps.stopped), tuple(steps.shown), tuple(steps.paged)
        )


def _open(client: DapClient, recording: Path) -> None:
    client.request("attach", recording=str(recording))
    client.request("configurationDone")
    client.event("stopped")


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


class _Steps:
    """Steps back from random places."""

    def __init__(self, client: DapClient) -> None:
        self._client = client
        self.stopped: list[float] = []
        self.shown: list[float] = []
        self.paged: list[float] = []

    def take(self, places: int) -> None:
        draw = random.Random(8)
        for _ in range(places):
            self._client.request("seek", moment=f"{draw.uniform(60, 99):.3f}%")
            self._client.event("stopped")
            began = time.perf_counter()
            self._client.request("stepBack")
            self._client.event("stopped")
            self.stopped.append(1000 * (time.perf_counter() - began))
            self._client.local()
            self.shown.append(1000 * (time.perf_counter() - began))
            frame = self._client.stack()[-1]["id"]
            (scope,) = self._client.request("scopes", frameId=frame)["scopes"]
            many = self._client.parts(scope["variablesReference"])["many"]["variablesReference"]
            self.paged.append(_timed(partial(self._page, many)))

    def _page(self, reference: int) -> None:
        for first in range(0, ITEMS, PAGE):
            found = self._client.parts(reference, filter="indexed", start=first, count=PAGE)
            if len(found) != PAGE:
                raise EditorFailed(f"{len(found)} items in place of {PAGE}")
