"""The cost of the pytest plugin in the test suites of four packages, if every test is kept; `tests.suites` has more."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.report import verdict
from tests.suites.prepare import PrepareFailed, prepare
from tests.suites.run import Options, check
from tests.suites.suites import SUITES

NAME = "suites"
# Small ones of different kinds: many parameters, a parser, a web framework, a thread for each database.
WANTED = ("click", "sqlparse", "flask", "aiosqlite")
TARGET = 1.25


@dataclass(frozen=True, slots=True)
class SuiteCosts:
    """Ratios of CPU time, with `--replaydbg=on` to plain, medians of the rounds; by suite."""

    # Seconds of the plain sessions.
    plain: dict[str, float]
    ratios: dict[str, float]
    # By suite: why it was not measured.
    missing: dict[str, str]
    target: float = TARGET

    @property
    def ratio(self) -> float | None:
        """The median of all suites."""
        return median(self.ratios.values()) if self.ratios else None

    def as_text(self) -> str:
        """Return it as lines for people."""
        each = ", ".join(f"{name} {ratio:.2f}" for name, ratio in self.ratios.items())
        lines = [f"suites: {name} was not measured: {why}" for name, why in self.missing.items()]
        if self.ratio is not None:
            lines.append(
                f"suites, every test kept: median {self.ratio:.2f} times (target {self.target:.2f}: "
                f"{verdict(self.ratio, self.target)}); {each}"
            )
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self) | {"ratio": self.ratio}


def measure_suites(runs: int, timeout: float) -> SuiteCosts:
    """Run each suite plain and recorded in turn, `runs` times. What they need is installed once, as by tests.suites."""
    plain: dict[str, float] = {}
    ratios: dict[str, float] = {}
    missing: dict[str, str] = {}
    cache = Path(tempfile.gettempdir()) / "replaydbg-suites"
    for suite in (each for each in SUITES if each.name in WANTED):
        with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as keep:
            try:
                prepared = prepare(suite, cache)
            except (PrepareFailed, OSError) as error:
                missing[suite.name] = str(error)
                continue
            result = check(prepared, Options(timeout, runs, 0, Path(keep)), is_plain=False, say=lambda _: None)
            if result.trouble is not None:
                missing[suite.name] = result.trouble
                continue
            pairs = [
                (one.finished.cpu, two.finished.cpu) for one, two in zip(result.plain, result.recorded, strict=True)
            ]
            plain[suite.name] = median(one for one, _ in pairs)
            ratios[suite.name] = median(two / one for one, two in pairs)
    return SuiteCosts(plain, ratios, missing)
