"""The costs of snapshots of a large heap and of their differences, beside simpler tools, in the same run."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from replaydbg.heap.comparison.snapshot_diff import diff
from replaydbg.heap.storage.recorded_snapshots import load_stored
from replaydbg.log.reader import open_recording
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import run

NAME = "heap"
OBJECTS = 1_000_000
PROGRAM = Path(__file__).parent / "programs" / "many_objects.py"
PEERS = {"objgraph": "objgraph", "pympler": "pympler", "guppy": "guppy3"}

T = TypeVar("T")


class HeapFailed(Exception):
    """A command failed, so its time is meaningless."""


@dataclass(frozen=True, slots=True)
class HeapCosts:
    """Seconds of CPU time, the minimum of several runs where it was repeated."""

    objects: int
    references: int
    # For one snapshot, in the copy that takes it: walking and writing.
    capture: float
    # The longest pause of the program, and its memory.
    pause: float
    resident: int
    bytes_per_object: float
    # For the second snapshot, which is encoded against the first one.
    bytes_of_second: float
    load: float
    # By identity, with dominators and retained sizes of both.
    difference: float
    # By paths and content.
    difference_of_runs: float
    changes: int
    # By name: to list a state, and to compare two.
    peers: dict[str, tuple[float, float] | None]

    def as_text(self) -> str:
        """Return it as lines for people."""
        megabytes = self.resident / 1e6
        lines = [
            f"Heap of {self.objects:,} objects, {self.references:,} references, one order in a hundred replaced",
            f"  snapshot, in a copy of the process   {self.capture:7.3f} s CPU (target 0.35)",
            f"  the program stands still             {self.pause * 1000:7.1f} ms, "
            f"{self.pause * 1e5 / megabytes:.1f} ms for each 100 MB (target 5)",
            f"  kept, for each object                {self.bytes_per_object:7.1f} bytes (target 8), "
            f"{self.bytes_of_second:.2f} in the second snapshot",
            f"  read again                           {self.load:7.3f} s CPU",
            f"  difference of two, {self.changes:,} changes    {self.difference:7.3f} s CPU (target 0.4)",
            f"  difference as of two runs            {self.difference_of_runs:7.3f} s CPU",
        ]
        for name, figures in self.peers.items():
            told = (
                "not installed" if figures is None else f"{figures[0]:7.3f} s CPU to look, {figures[1]:.3f} to compare"
            )
            lines.append(f"  {name:<36} {told}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_heap(
    runs: int, timeout: float, *, objects: int = OBJECTS, peers: Mapping[str, str] = MappingProxyType(PEERS)
) -> HeapCosts:
    """Measure it, beside `peers`. Raises HeapFailed."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        directory = Path(name)
        recording = directory / "heap.rdbg"
        command = tool.record(sys.executable, recording, (str(PROGRAM), str(objects)))
        recorded = run(command, cwd=directory, env=environment(), timeout=timeout)
        if recorded.status != 0:
            raise HeapFailed(recorded.stderr.decode(errors="replace"))
        with open_recording(recording) as opened:
            kept: Any = json.loads(opened.section("end"))["snapshots"]
            if not kept or len(kept["listed"]) != 2:
                raise HeapFailed(f"there are no two snapshots: {kept}")
            sizes = opened.size("heap/000001"), opened.size("heap/000002")
            load, before = _least(runs, lambda: load_stored(opened, 1))
            after = load_stored(opened, 2)
        difference, found = _least(runs, lambda: diff(before, after))
        of_runs, _ = _least(runs, lambda: diff(before, after, by_identity=False))
        return HeapCosts(
            objects=len(after),
            references=len(after.target),
            capture=kept["copies_ns"] / 2e9,
            pause=kept["longest_pause_ns"] / 1e9,
            resident=recorded.peak,
            bytes_per_object=sizes[0] / len(before),
            bytes_of_second=sizes[1] / len(after),
            load=load,
            difference=difference,
            difference_of_runs=of_runs,
            changes=found.changed.total,
            peers={shown: _peer(module, objects, directory, timeout) for module, shown in peers.items()},
        )


def _least(runs: int, do: Callable[[], T]) -> tuple[float, T]:
    taken = []
    for _ in range(max(runs, 1)):
        began = time.process_time()
        result = do()
        taken.append(time.process_time() - began)
    return min(taken), result


def _peer(module: str, objects: int, directory: Path, timeout: float) -> tuple[float, float] | None:
    if find_spec(module) is None:
        return None
    done = run([sys.executable, str(PROGRAM), str(objects), module], cwd=directory, env=environment(), timeout=timeout)
    if done.status != 0:
        raise HeapFailed(f"{module}: {done.stderr.decode(errors='replace')}")
    look, compare = map(float, done.stdout.split()[-2:])
    return look, compare
