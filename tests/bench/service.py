"""A recorded uvicorn service with two workers: ask it, and measure what live cuts cost it in CPU time."""

from __future__ import annotations

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import median
from typing import NamedTuple

from replaydbg.log.group import read_group
from replaydbg.log.live_cuts import take_live_cut
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.children import PROGRAMS, completed
from tests.harness.waiting import wait_until

ROOT = Path(__file__).parents[2]
_SITE = ROOT / "tests" / "real_groups" / "programs" / "site.py"
# Short blocks: what else the machine does changes from second to second, and then hits both blocks of a pair.
BLOCK, PAIRS = 20, 1_000
BETWEEN_CUTS = 0.05


class ServiceFailed(Exception):
    """The service did not answer as it should, so its figures have no meaning."""


class Interval(NamedTuple):
    """A median with the bounds between which the true one is, with a confidence of 95 %."""

    median: float
    low: float
    high: float


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median and its interval by order statistics: the number of values below it is binomial."""
    count, ordered = len(values), sorted(values)
    below, least = 0.0, 0
    while (below := below + math.comb(count, least) / 2**count) <= 0.025:
        least += 1
    at = max(least - 1, 0)
    return Interval(median(ordered), ordered[at], ordered[count - 1 - at])


@contextmanager
def recorded_service(directory: Path, options: Sequence[str], timeout: float) -> Iterator[int]:
    """Run the service, recorded as `made` in `directory`; yield its port."""
    shutil.copyfile(_SITE, directory / "site_of_two.py")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    words = ["-m", "uvicorn", "--workers", "2", "--port", str(port), "--log-level", "warning", "site_of_two:asgi"]
    command = tool.record(sys.executable, directory / "made", words, options=(*PROGRAMS, *options))
    with (directory / "printed").open("wb") as out:
        server = subprocess.Popen(command, cwd=directory, env=environment(), stdout=out, stderr=out)
    try:
        wait_until(lambda: _answers(port), timeout=60)
        yield port
        os.kill(read_group(directory / "made.rdbgs").processes[0].pid, signal.SIGTERM)
        server.wait(timeout)
    finally:
        if server.poll() is None:
            server.terminate()
            server.wait(30)


@dataclass(frozen=True, slots=True)
class CutCost:
    """The cost of live cuts for a service."""

    # The CPU time per request with cuts, by that without, for each pair of blocks.
    ratios: list[float]
    cuts: int
    # How long the blocks with cuts took.
    seconds: float

    @property
    def of_one_a_second(self) -> Interval:
        """The ratio for one cut in a second: the cost is proportional to their number."""
        each = self.seconds / self.cuts
        return Interval(*(1 + (value - 1) * each for value in median_interval(self.ratios)))


def cost_of_cuts(directory: Path, timeout: float) -> CutCost:
    """Compare blocks of requests with live cuts, many in a second, with blocks without.

    Both blocks of a pair are of the same running service, and their order alternates. CPU time is that of all its
    processes; it does not depend on what else the machine does as much as time does.
    """
    found: list[float] = []
    seconds = 0.0
    with recorded_service(directory, (), timeout) as port:
        group = directory / "made.rdbgs"
        ask(port, BLOCK)
        pids = [each.pid for each in read_group(group).processes if Path(f"/proc/{each.pid}").exists()]
        for number in range(PAIRS):
            costs = {has_cuts: _block(port, pids, group, has_cuts) for has_cuts in (number % 2 == 0, number % 2 == 1)}
            found.append(costs[True].cpu / costs[False].cpu)
            seconds += costs[True].wall
    return CutCost(found, len(completed(group).cuts), seconds)


class _Block(NamedTuple):
    cpu: float
    wall: float


def _block(port: int, pids: Sequence[int], group: Path, has_cuts: bool) -> _Block:
    """Return the seconds of a block of requests, with a cut at its beginning and then at intervals."""
    is_over = threading.Event()

    def take() -> None:
        take_live_cut(group)
        while not is_over.wait(BETWEEN_CUTS):
            take_live_cut(group)

    taking = threading.Thread(target=take)
    before, began = _cpu_seconds(pids), time.perf_counter()
    if has_cuts:
        taking.start()
    ask(port, BLOCK)
    is_over.set()
    if has_cuts:
        taking.join()
    return _Block(_cpu_seconds(pids) - before, time.perf_counter() - began)


def _cpu_seconds(pids: Sequence[int]) -> float:
    # The clock of a process by its number, as clock_getcpuclockid(3) makes it: in nanoseconds.
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def _answers(port: int) -> bool:
    try:
        return ask(port, 1) == 1
    except (OSError, HTTPException):
        return False


def ask(port: int, requests: int) -> int:
    """Ask that often, each time through a new connection; return how many answers came.

    In a connection that is kept, uvicorn's workers send the body only when the client has acknowledged the head.
    """
    for number in range(requests):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", f"/?{number}", headers={"Connection": "close"})
            answer = connection.getresponse()
            if answer.status != 200 or not answer.read():
                raise ServiceFailed(f"request {number} was answered with {answer.status}")
        finally:
            connection.close()
    return requests
