"""How cost grows: measure programs of the same kind in growing sizes, up to a limit that the command line gives."""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.heaps import HeapFailed, measure_heap
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import run

_PROGRAMS = Path(__file__).parent / "programs"
SCHEMA_VERSION = 1


class GrowthFailed(Exception):
    """A command failed, so its cost is meaningless."""


@dataclass(frozen=True, slots=True)
class Point:
    """One size. Seconds of CPU time, children included, and bytes; by what was done."""

    size: int
    cpu: dict[str, float] = field(default_factory=dict)
    # Peak memory of the largest process of a command; a command that is not measured alone is left out.
    peak: dict[str, int] = field(default_factory=dict)
    # Bytes of the recording, if it matters.
    stored: int | None = None


Measure = Callable[[int, Path, float], Point]


def grow(kinds: dict[str, list[int]], timeout: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure the sizes of each kind in order; a kind stops at the first size that fails, which is noted."""
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "machine": {"platform": platform.platform(), "python": platform.python_version()},
        "growth": {},
    }
    for kind, sizes in kinds.items():
        points: list[dict[str, Any]] = []
        stopped = None
        for size in sizes:
            say(f"measuring {kind} {size:,} ...")
            try:
                with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
                    points.append(asdict(KINDS[kind](size, Path(name), timeout)))
            except (GrowthFailed, HeapFailed) as failure:
                stopped = f"{size:,}: {failure}"
                break
        found["growth"][kind] = {"points": points, "stopped": stopped}
    return found


def sizes_up_to(kind: str, limit: int | None) -> list[int]:
    """Return the sizes of a kind up to a limit; all of them without one."""
    return [each for each in SIZES[kind] if limit is None or each <= limit]


def _events(size: int, folder: Path, timeout: float) -> Point:
    return _recorded_and_read(["growing.py", str(size), "0"], size, folder, timeout)


def _bytes(size: int, folder: Path, timeout: float) -> Point:
    return _recorded_and_read(["growing.py", str(size // _PIECE), str(_PIECE)], size, folder, timeout)


# Bytes that each event of `bytes` reads.
_PIECE = 4_000


def _recorded_and_read(argv: list[str], size: int, folder: Path, timeout: float) -> Point:
    """Record, verify, replay and open; the peak of each command is that of its largest process."""
    argv = [str(_PROGRAMS / argv[0]), *argv[1:]]
    recording = folder / "grown.rdbg"
    debug = [sys.executable, "-m", "replaydbg", "debug", "--batch", "--quiet", str(recording)]
    commands = {
        "plain": [sys.executable, *argv],
        "record": tool.record(sys.executable, recording, argv),
        "verify": [sys.executable, "-m", "replaydbg", "verify", str(recording)],
        "info": [sys.executable, "-m", "replaydbg", "info", str(recording)],
        "replay": tool.replay(sys.executable, recording),
        "open": debug,
    }
    done = {name: _done(command, folder, timeout) for name, command in commands.items()}
    return Point(size, _cpu(done), {name: each.peak for name, each in done.items()}, recording.stat().st_size)


def _lines(size: int, folder: Path, timeout: float) -> Point:
    program = folder / "lines.py"
    program.write_text(
        "def run(count):\n    total = 0\n    for number in range(count):\n        total += number % 7\n"
        f"        total -= 3\n    return total\nprint(run({size // 3}))\n"
    )
    recording = folder / "grown.rdbg"
    count = "import sys; from replaydbg.replay import steps; print(steps.count(sys.argv[1]).total)"
    commands = {
        "plain": [sys.executable, str(program)],
        "record": tool.record(sys.executable, recording, [str(program)]),
        "replay": tool.replay(sys.executable, recording),
        "counted": [sys.executable, "-c", count, str(recording)],
    }
    done = {name: _done(command, folder, timeout) for name, command in commands.items()}
    counted = int(done["counted"].stdout.split()[-1])
    if counted < size:
        raise GrowthFailed(f"{counted:,} lines were counted of {size:,}")
    return Point(size, _cpu(done), {name: each.peak for name, each in done.items()}, recording.stat().st_size)


def _threads(size: int, folder: Path, timeout: float) -> Point:
    argv = [str(_PROGRAMS / "parked.py"), str(size)]
    recording = folder / "grown.rdbg"
    commands = {
        "plain": [sys.executable, *argv],
        "record": tool.record(sys.executable, recording, argv),
        "replay": tool.replay(sys.executable, recording),
    }
    done = {name: _done(command, folder, timeout) for name, command in commands.items()}
    return Point(size, _cpu(done), {name: each.peak for name, each in done.items()}, recording.stat().st_size)


def _objects(size: int, _folder: Path, timeout: float) -> Point:
    costs = measure_heap(1, timeout, objects=size, peers={})
    cpu = {"snapshot": costs.capture, "pause": costs.pause, "load": costs.load, "difference": costs.difference}
    return Point(costs.objects, cpu, {"record": costs.resident})


KINDS: dict[str, Measure] = {
    "events": _events,
    "bytes": _bytes,
    "lines": _lines,
    "threads": _threads,
    "objects": _objects,
}
SIZES = {
    "events": [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000],
    "bytes": [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000],
    "lines": [1_000_000, 10_000_000, 100_000_000, 1_000_000_000],
    "threads": [1, 10, 100, 1_000, 4_000],
    "objects": [10_000, 100_000, 1_000_000, 4_000_000],
}


# A process begins with the peak of the one that starts it: this one is small.
_STARTER = """
import json, os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as file:
    json.dump([usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024], file)
sys.exit(1 if status else 0)
"""


@dataclass(frozen=True, slots=True)
class _Done:
    """A command that succeeded: seconds of CPU time and bytes of memory of it and its children, and its output."""

    cpu: float
    peak: int
    stdout: bytes


def _done(command: list[str], folder: Path, timeout: float) -> _Done:
    usage = folder / "usage"
    starter = [sys.executable, "-S", "-E", "-c", _STARTER, str(usage)]
    done = run([*starter, *command], cwd=folder, env=environment(), timeout=timeout)
    if done.status != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise GrowthFailed(f"{' '.join(command[1:4])}: {done.ending}: {' '.join(last)}")
    cpu, peak = json.loads(usage.read_text())
    return _Done(cpu, peak, done.stdout)


def _cpu(done: dict[str, _Done]) -> dict[str, float]:
    return {name: each.cpu for name, each in done.items()}
