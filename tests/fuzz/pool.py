"""Run the workers, replace crashed or hanging ones, and add up their reports."""

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.fuzz import findings, worker
from tests.fuzz.corpus import Input
from tests.fuzz.outside import WAIT

_TICKS = os.sysconf("SC_CLK_TCK")
_STUCK = 2
"""Multiple of an input's limit after which a worker is ended from outside: it does not return to Python."""


@dataclass
class Totals:
    """The totals of a run."""

    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    kept: int = 0
    found: dict[str, Path] = field(default_factory=dict)
    """The files of the findings, by their common key."""
    elapsed: float = 0.0

    @property
    def mutations(self) -> int:
        """Number of mutations of all targets."""
        return sum(self.counts.values())


@dataclass
class _Running:
    orders: worker.Orders
    process: BaseProcess
    from_worker: Connection
    case: int = -1
    """The case at the last check, and its CPU time when it was first seen."""
    cpu: float = 0.0
    since: float = 0.0
    told: dict[str, object] = field(default_factory=dict)


class Pool:
    """The workers of a run."""

    def __init__(self, orders: list[worker.Orders], kept_findings: Path, *, say: bool = True) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._directory = kept_findings
        self._say = say
        self._orders = orders
        self.totals = Totals()

    def run(self) -> Totals:
        """Run until the time is over, and return the figures."""
        began = time.monotonic()
        running = [self._start(each) for each in self._orders]
        looked = said = began
        while running:
            for ready in wait([each.from_worker for each in running], timeout=0.5):
                one = next(each for each in running if each.from_worker is ready)
                if not self._listen(one):
                    running.remove(one)
                    again = self._ended(one)
                    if again is not None:
                        running.append(self._start(again))
            now = time.monotonic()
            if now - looked > 1:
                looked = now
                for one in running:
                    self._look(one)
            self.totals.elapsed = now - began
            if self._say and now - said > 30:
                said = now
                self._progress()
        self.totals.elapsed = time.monotonic() - began
        return self.totals

    def _start(self, orders: worker.Orders) -> _Running:
        from_worker, to_parent = self._context.Pipe(duplex=False)
        process = self._context.Process(target=worker.main, args=(orders, to_parent))
        process.start()
        to_parent.close()
        return _Running(orders, process, from_worker)

    def _listen(self, one: _Running) -> bool:
        """Receive a worker's report; False: it has ended."""
        try:
            while one.from_worker.poll():
                kind, *told = one.from_worker.recv()
                if kind == "report":
                    one.told = told[1]
                else:
                    name, key, text, of, data, seed = told
                    self._found(name, key, text, Input(of, data), seed)
        except (EOFError, OSError):
            return False
        return True

    def _found(self, target: str, key: str, text: str, found: Input, seed: str) -> None:
        if key in self.totals.found:
            return
        path = findings.save(self._directory, target, key, text, found, seed)
        self.totals.found[key] = path
        if self._say:
            print(f"FINDING {key}\n  {path}", file=sys.stderr, flush=True)

    def _ended(self, one: _Running) -> worker.Orders | None:
        """Add up a worker's totals. Return orders for a replacement, if there should be one."""
        one.process.join(20)
        counts, seconds = one.told.get("counts", {}), one.told.get("seconds", {})
        assert isinstance(counts, dict)
        assert isinstance(seconds, dict)
        for name, number in counts.items():
            self.totals.counts[name] = self.totals.counts.get(name, 0) + number
        for name, spent in seconds.items():
            self.totals.seconds[name] = self.totals.seconds.get(name, 0.0) + spent
        kept = one.told.get("kept", 0)
        self.totals.kept += kept if isinstance(kept, int) else 0
        code = one.process.exitcode
        if code == 0:
            return None
        target, each, seed = self._at(one)
        what = f"signal {-code}" if code is not None and code < 0 else f"worker ended with {code}"
        self._found(target or "worker", f"{target} {what}", what, each, seed)
        if time.monotonic() >= one.orders.end:
            return None
        return replace(one.orders, seed=f"{one.orders.seed}+")

    def _at(self, one: _Running) -> tuple[str, Input, str]:
        data = Path(one.orders.shared).read_bytes()
        _, length, name, kind, seed = worker.NOW.unpack_from(data)
        parts = [each.rstrip(b"\0").decode() for each in (name, kind, seed)]
        return parts[0], Input(parts[1] or "bin", data[worker.NOW.size : worker.NOW.size + length]), parts[2]

    def _look(self, one: _Running) -> None:
        """End a worker that has worked on one input for too long."""
        with Path(one.orders.shared).open("rb") as file:
            case, _, _, _, _ = worker.NOW.unpack_from(file.read(worker.NOW.size))
        cpu = _cpu_seconds(one.process.pid)
        now = time.monotonic()
        if case != one.case:
            one.case, one.cpu, one.since = case, cpu, now
        elif case and (
            cpu - one.cpu > _STUCK * one.orders.case_seconds + worker.MINIMISING or now - one.since > 3 * WAIT
        ):
            target, each, seed = self._at(one)
            self._found(target, f"{target} never comes back", f"{cpu - one.cpu:.0f} s of CPU time", each, seed)
            assert one.process.pid is not None
            os.kill(one.process.pid, signal.SIGKILL)
            one.case = -1

    def _progress(self) -> None:
        print(f"{self.totals.elapsed:.0f} s, {len(self.totals.found)} findings", file=sys.stderr, flush=True)


def _cpu_seconds(pid: int | None) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def shared_memory(place: Path) -> str:
    """Return the file of the memory that a worker shares with its parent."""
    descriptor, path = tempfile.mkstemp(dir=place)
    os.ftruncate(descriptor, worker.ROOM)
    os.close(descriptor)
    return path
