"""The loop of one process: mutate, run, judge, keep. Its parent sees the present input in shared memory."""

import mmap
import os
import struct
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz import corpus, findings, space
from tests.fuzz.attempt import Bad, attempt
from tests.fuzz.corpus import RECORDING, Input
from tests.fuzz.coverage import NewLines
from tests.fuzz.limits import SECONDS
from tests.fuzz.mutate import mutated
from tests.fuzz.outside import OUTSIDE, Tool, outside
from tests.fuzz.targets import TARGETS, Target

NOW = struct.Struct("<QQ16s8s40s")
"""The beginning of the shared memory: number of the case, length, target, kind, seed; then the input."""
ROOM = 4 << 20
MOST = 500_000
"""Maximum size of an input. A larger file may take more memory: the limit depends on the stored size."""
REPORT = 1.0
"""Seconds between reports."""
MINIMISING = 6.0
"""Seconds spent on minimising a finding."""
MOST_KEPT = 4000
"""Inputs of a kind that are kept in memory."""
LARGEST = 200_000
"""Maximum size of a kept input: larger ones slow everything down."""


@dataclass
class Orders:
    """The orders to a worker."""

    number: int
    seed: str
    """Together with the number of the case it reproduces each mutation."""
    end: float
    """When to end, by the monotonic clock."""
    shared: str
    """The file of the shared memory."""
    inputs: list[Input]
    """Inputs for targets in this process."""
    recordings: list[Input]
    """Inputs for replays."""
    tools: list[Tool]
    corpus: Path | None
    outside_share: float
    """Share of its time for commands."""
    only: tuple[str, ...] = ()
    case_seconds: float = SECONDS
    """CPU time limit of an input."""
    targets: dict[str, tuple[str, Target, float]] = field(default_factory=lambda: TARGETS)


class Worker:
    """The state of the loop."""

    def __init__(self, orders: Orders, to_parent: Connection) -> None:
        self.orders = orders
        self.to_parent = to_parent
        self.by_kind: dict[str, list[Input]] = {}
        for each in orders.inputs:
            self.by_kind.setdefault(each.kind, []).append(each)
        self.replayed = [*orders.recordings]
        self.seen: set[str] = set()
        self.known: set[str] = set()
        self.counts: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.kept = 0
        self.case = 0
        self.lines = NewLines()
        names = {name: row[2] for name, row in orders.targets.items() if row[0] in self.by_kind}
        self.weights = {name: each for name, each in names.items() if not orders.only or name in orders.only}
        self.tools = [
            (name, tool) for tool in orders.tools for name in OUTSIDE if not orders.only or name in orders.only
        ]

    def run(self) -> None:
        """Run until the time is over."""
        orders = self.orders
        with Path(orders.shared).open("r+b") as file, mmap.mmap(file.fileno(), ROOM) as shared:
            self._warm_up()
            self.lines.install()
            self.lines.take()
            reported = time.monotonic()
            began = time.monotonic()
            spent_outside = 0.0
            while time.monotonic() < orders.end:
                start = time.monotonic()
                is_outside = self.tools and (not self.weights or spent_outside < orders.outside_share * (start - began))
                if is_outside:
                    self._outside(shared)
                    spent_outside += time.monotonic() - start
                elif self.weights:
                    self._inside(shared)
                else:
                    return
                if time.monotonic() - reported > REPORT:
                    self._report()
                    reported = time.monotonic()
        self._report()

    def _warm_up(self) -> None:
        """Import modules that are loaded late, and record the signatures of valid inputs."""
        for name in self.weights:
            kind, target, _ = self.orders.targets[name]
            for each in self.by_kind[kind][:8]:
                for number in range(40 if name in ("commands", "lone") else 1):
                    ran = attempt(name, target, each.data, f"warm {number}")
                    self.seen.add(ran.signature)

    def _begin(self, shared: mmap.mmap, name: str, each: Input, seed: str) -> None:
        length = min(len(each.data), ROOM - NOW.size)  # of a replay's input, which is longer, its beginning
        shared[NOW.size : NOW.size + length] = each.data[:length]
        shared[: NOW.size] = NOW.pack(
            self.case, length, name.encode()[:16], each.kind.encode()[:8].ljust(8, b"\0"), seed.encode()[:40]
        )

    def _next(self) -> tuple[str, Random]:
        self.case += 1
        seed = f"{self.orders.seed}/{self.orders.number}/{self.case}"
        return seed, Random(seed)

    def _inside(self, shared: mmap.mmap) -> None:
        seed, rng = self._next()
        spent = self.seconds
        # The target with the largest deficit in its share.
        name = min(self.weights, key=lambda each: spent.get(each, 0.0) / self.weights[each])
        kind, target, _ = self.orders.targets[name]
        start = time.monotonic()
        pool = self.by_kind[kind]
        # The seeds and recent inputs are tried more often.
        of = pool[-rng.randint(1, min(20, len(pool)))] if rng.randrange(3) == 0 else rng.choice(pool)
        each = Input(kind, mutated(of, rng)[:MOST])
        self._begin(shared, name, each, seed)
        ran = attempt(name, target, each.data, seed, seconds=self.orders.case_seconds)
        self.counts[name] = self.counts.get(name, 0) + 1
        spent[name] = spent.get(name, 0.0) + time.monotonic() - start
        if ran.bad is not None:
            self._found(name, ran.bad, each, seed, target)
            return
        is_new_line = self.lines.take() > 0
        if is_new_line or (ran.signature not in self.seen and len(self.seen) < 200_000):
            self.seen.add(ran.signature)
            if len(each.data) <= LARGEST and len(pool) < MOST_KEPT:
                self._keep(pool, each)

    def _outside(self, shared: mmap.mmap) -> None:
        seed, rng = self._next()
        name, tool = min(self.tools, key=lambda each: self.seconds.get(_way(*each), 0.0))
        way = _way(name, tool)
        start = time.monotonic()
        each = Input(RECORDING, mutated(rng.choice(self.replayed), rng, for_replay=True))
        self._begin(shared, way, each, seed)
        ran = outside(name, tool, each.data, rng)
        self.counts[way] = self.counts.get(way, 0) + 1
        self.seconds[way] = self.seconds.get(way, 0.0) + time.monotonic() - start
        if ran.bad is not None:
            if ran.bad.key not in self.known:
                self.known.add(ran.bad.key)
                self._send_finding(way, ran.bad, each, seed)
            return
        if ran.signature not in self.seen:
            self.seen.add(ran.signature)
            if len(self.replayed) < 400:
                self._keep(self.replayed, each, is_written=False)

    def _keep(self, pool: list[Input], each: Input, *, is_written: bool = True) -> None:
        pool.append(each)
        self.kept += 1
        if is_written and self.orders.corpus is not None:
            corpus.keep(self.orders.corpus, each)

    def _found(self, name: str, bad: Bad, each: Input, seed: str, target: Target) -> None:
        if bad.key in self.known:
            return
        self.known.add(bad.key)
        is_quick = " hang " not in bad.key and " memory " not in bad.key

        def is_same(data: bytes) -> bool:
            ran = attempt(name, target, data, seed, seconds=self.orders.case_seconds)
            return ran.bad is not None and ran.bad.key == bad.key

        small = findings.minimised(each, is_same, seconds=MINIMISING, most=3000 if is_quick else 5)
        self._send_finding(name, bad, small, seed)

    def _send_finding(self, name: str, bad: Bad, each: Input, seed: str) -> None:
        self.to_parent.send(("found", name, bad.key, bad.text, each.kind, each.data, seed))

    def _report(self) -> None:
        told: dict[str, Any] = {
            "counts": dict(self.counts),
            "seconds": dict(self.seconds),
            "kept": self.kept,
            "case": self.case,
        }
        self.to_parent.send(("report", self.orders.number, told))


def _way(name: str, tool: Tool) -> str:
    return f"{name}-asan" if tool.is_sanitized else name


def main(orders: Orders, to_parent: Connection) -> None:
    """Be a worker."""
    os.environ["XDG_DATA_HOME"] = str(space.scratch(os.getpid()))
    os.environ["COLUMNS"] = "100"
    try:
        Worker(orders, to_parent).run()
    finally:
        space.clear()
        to_parent.close()
