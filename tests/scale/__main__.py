"""Measure catalog and retention at full size, and simulate a store and a cluster of that size."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from replaydbg.log.used_blocks import used_blocks
from replaydbg.remote.remote_index import facts_of, parse_index, row_of
from replaydbg.render.recording_text import listing_text
from replaydbg.store import catalog
from replaydbg.store.catalog import Catalog, CatalogRow
from replaydbg.store.directory import Store
from replaydbg.store.retention import decide, parse_rule
from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text
from tests.remote.far import environment, index_of, make_programs, replaydbg, url
from tests.scale.cluster_model import Load, simulate

Result = TypeVar("Result")
_REQUEST = 0.03
"""Seconds of a request to an object store; below, how many are under way at once, and the names of a listing's page."""
_AT_ONCE = 8
_PAGE = 1000


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    options = _parser().parse_args(argv)
    restore_signals()
    with tempfile.TemporaryDirectory(prefix="replaydbg-scale-") as name:
        folder = Path(name)
        rows = [["what", "seconds", "how"], *_store(folder / "large", options.recordings)]
        (folder / "one").mkdir()
        rows += _one(folder / "one", options.recordings)
    print(f"{options.recordings:,} recordings")
    print(as_text(rows[0], rows[1:]))
    print("\ntasks take 3 s, a recording has 2 MB, the scheduler needs 0.5 ms for a task, the link has 1 GB/s")
    print(as_text(*_clusters(options.recordings, options.workers)))
    return 0


def _timed(act: Callable[[], Result]) -> tuple[Result, str]:
    began = time.perf_counter()
    result = act()
    return result, f"{time.perf_counter() - began:.2f}"


def _store(folder: Path, count: int) -> list[list[str]]:
    """Return measurements of a store with so many recordings, whose facts are known; the files are empty."""
    folder.mkdir()
    for number in range(1, count + 1):
        os.close(os.open(f"{folder}/run-{number}.rdbg", os.O_CREAT | os.O_WRONLY, 0o600))
    store = Store(folder)
    begun = datetime(2026, 1, 1, tzinfo=UTC)

    def row(stored: object) -> CatalogRow:
        number = getattr(stored, "number", 0)
        created = (begun + timedelta(seconds=20 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return _ROW._replace(
            name=f"run-{number}", path=f"{folder}/run-{number}.rdbg", created=created, status=number % 2
        )

    # The facts are known: reading a recording is measured apart.
    catalog.read_row = row
    _, made = _timed(lambda: Catalog(store, listing_text).rows())
    size = (folder / ".catalog" / "recordings.sqlite").stat().st_size if (folder / ".catalog").exists() else 0
    first, again = _fresh(folder, "ls"), _fresh(folder, "ls")
    failed = _fresh(folder, "ls", "--failed")
    rows, read = _timed(lambda: Catalog(store, listing_text).rows())
    rules = [parse_rule(each) for each in ("pinned", "days 30", "daily 100", "gigabytes 100")]
    _, decided = _timed(lambda: decide(rows, lambda each: (), rules, datetime.now(UTC)))
    return [
        ["catalog: enter all (facts known)", made, f"measured; the file has {size / 1e6:,.0f} MB"],
        ["ls, the first time", *first],
        ["ls", *again],
        ["ls --failed", *failed],
        ["all rows, in a process", read, "measured"],
        ["retention: decide on four rules", decided, "measured"],
    ]


def _fresh(folder: Path, *words: str) -> list[str]:
    """Return the time and the memory of a command on that store."""
    env = environment(folder) | {"REPLAYDBG_STORE": str(folder)}
    began = time.perf_counter()
    command = [sys.executable, "-m", "replaydbg", *words]
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    status = process.wait(3600)
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return [f"{seconds:.2f}", f"measured; exit code {status}; {memory / 1e3:,.0f} MB of memory"]


def _one(folder: Path, count: int) -> list[list[str]]:
    """Return what is measured for one recording, times their number."""
    make_programs(folder)
    for _ in range(2):
        replaydbg(folder, "record", "-q", "program.py")
    assert replaydbg(folder, "push", "run-2", url(folder)).status == 0
    path = folder / "store" / "run-2.rdbg"
    data = (folder / "far" / "recordings" / "run-2.json").read_bytes()
    row = row_of("run-2", url(folder), index_of(folder, "run-2"))
    facts = json.dumps(facts_of(row))
    blocks = _per(lambda: used_blocks(path), 200) * count
    parsed = _per(lambda: parse_index("x", data), 200) * count
    known = _per(lambda: json.loads(facts), 2000) * count
    pages = count / _PAGE * _REQUEST
    return [
        ["gc: what recordings use", f"{blocks:.0f}", "one measured, times their number"],
        [
            "ls URL, the first time",
            f"{pages + count * _REQUEST / _AT_ONCE + parsed:.0f}",
            f"requests of {_REQUEST} s, 8 at once",
        ],
        ["ls URL, afterwards", f"{pages + known:.0f}", f"requests of {_REQUEST} s for {_PAGE:,} names each"],
    ]


def _per(act: Callable[[], object], times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        act()
    return (time.perf_counter() - began) / times


_ROW = CatalogRow(
    name="",
    path="",
    created="",
    command='["worker.py", "--queue", "orders"]',
    commit="0123456789abcdef0123456789abcdef01234567",
    status=0,
    exception="ValueError",
    events=4711,
    seconds=1.5,
    size=5_500,
    python="3.11.7",
    processes=1,
    parent="",
    cwd="/srv/orders",
    run="0123456789abcdef0123456789abcdef",
    live=0,
    problem="",
)
_LOAD = Load(
    recordings=0,
    tasks_each=1,
    workers=0,
    task_seconds=3.0,
    recording_bytes=2e6,
    scheduler_seconds=0.0005,
    link_bytes=1e9,
    worker_link_bytes=1e8,
    cache_recordings=1000,
)


def _clusters(recordings: int, most: int) -> tuple[list[str], list[list[str]]]:
    loads = [
        ("one task for each recording", replace(_LOAD, recordings=recordings)),
        ("50 tasks each", replace(_LOAD, recordings=recordings // 50, tasks_each=50)),
        ("tasks of 0.3 s", replace(_LOAD, recordings=recordings, task_seconds=0.3)),
        ("recordings of 20 MB", replace(_LOAD, recordings=recordings, recording_bytes=2e7)),
        ("one worker lost every 10 s", replace(_LOAD, recordings=recordings, lost_every=10.0)),
    ]
    found = []
    for name, load in loads:
        for workers in (each for each in (8, 100, 1000, 4000) if each <= most):
            outcome = simulate(replace(load, workers=workers))
            shares = (outcome.efficiency, outcome.scheduler, outcome.link)
            hours = f"{outcome.seconds / 3600:.2f}"
            found.append([name, f"{workers:,}", hours, *(f"{each:.0%}" for each in shares), outcome.limit])
    return ["load", "workers", "hours", "efficiency", "scheduler", "link", "limit"], found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    parser.add_argument("--recordings", metavar="N", type=int, default=1_000_000, help="default: 1,000,000")
    parser.add_argument("--workers", metavar="N", type=int, default=4000, help="the most (default: 4,000)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
