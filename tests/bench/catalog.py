"""The cost of listing a store with ten thousand recordings, with a catalog that has all of them."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.report import verdict
from tests.bench.workloads import environment
from tests.harness.process import Finished, run

NAME = "catalog"
RECORDINGS = 10_000
MADE = 20
"""So many are recorded; the others are further names of their files, as different recordings to a listing."""
TARGET = 100.0
"""Milliseconds of CPU time, without the start of the command."""
_LISTINGS = {"ls": [], "ls --failed": ["--failed"], "ls --json, one command": ["--json", "--command", "number_7"]}


class CatalogFailed(Exception):
    """A command failed, so its time has no meaning."""


@dataclass(frozen=True, slots=True)
class CatalogCosts:
    """Milliseconds of CPU time (medians), without those of `replaydbg ls` of an empty store."""

    recordings: int
    start: float
    listings: dict[str, float]
    first: float
    """Seconds of CPU time of the listing that makes the catalog."""

    def as_text(self) -> str:
        """Return it as lines for people."""
        lines = [f"listing {self.recordings:,} recordings (target {TARGET:g} ms CPU; start {self.start:.0f} ms)"]
        lines += [f"  {name:<24} {each:6.1f} ms CPU ({verdict(each, TARGET)})" for name, each in self.listings.items()]
        return "\n".join([*lines, f"  {'the first one, of all':<24} {self.first:6.1f} s CPU"])

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_catalog(runs: int, timeout: float, *, recordings: int = RECORDINGS, made: int = MADE) -> CatalogCosts:
    """List a store of so many recordings `runs` times. Raises CatalogFailed."""
    with tempfile.TemporaryDirectory(prefix="catalog-") as scratch:
        store, empty = Path(scratch, "store"), Path(scratch, "empty")
        empty.mkdir()
        for number in range(made):
            _made(store, number, timeout)
        for number in range(made + 1, recordings + 1):
            os.link(store / f"run-{number % made + 1}.rdbg", store / f"run-{number}.rdbg")
        first = _listed(store, [], timeout).cpu
        start = median(_listed(empty, [], timeout).cpu for _ in range(max(runs, 3)))
        listings = {}
        for name, words in _LISTINGS.items():
            spent = median(_listed(store, words, timeout).cpu for _ in range(max(runs, 3)))
            listings[name] = (spent - start) * 1000
        return CatalogCosts(recordings, start * 1000, listings, first)


def _made(store: Path, number: int, timeout: float) -> None:
    words = ["record", "-q", "--children=none", "-c", f"number_{number} = {number}; assert number_{number} % 5"]
    done = run([sys.executable, "-m", "replaydbg", *words], cwd=store.parent, env=_env(store), timeout=timeout)
    if not (store / f"run-{number + 1}.rdbg").exists():
        raise CatalogFailed(done.stderr.decode(errors="replace"))


def _listed(store: Path, words: list[str], timeout: float) -> Finished:
    command = [sys.executable, "-m", "replaydbg", "ls", *words]
    done = run(command, cwd=store.parent, env=_env(store), timeout=timeout)
    if done.status != 0:
        raise CatalogFailed(done.stderr.decode(errors="replace"))
    return done


def _env(store: Path) -> dict[str, str]:
    return {**environment(), "REPLAYDBG_STORE": str(store), "XDG_DATA_HOME": str(store.parent / "data")}
