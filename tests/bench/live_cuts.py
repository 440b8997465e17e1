"""The throughput of programs of several processes with and without a live cut each second, paired."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from replaydbg.log.group import read_group
from tests.bench.cuts import BANK, ROOT
from tests.bench.report import verdict
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.children import CHILDREN, PROGRAMS, completed
from tests.harness.process import run
from tests.harness.waiting import wait_until

NAME = "live-cuts"
# The share of the throughput that must be left.
TARGET = 0.98
EVERY = "--cut-every=1s"
BANK_ROUNDS = 10_000
CLIENTS, REQUESTS = 4, 3_000
_SITE = ROOT / "tests" / "real_groups" / "programs" / "site.py"
_TIMED_BANK = f"""import runpy, sys, time
sys.argv[1:] = ["{BANK_ROUNDS}"]
began = time.perf_counter()
runpy.run_path({str(BANK)!r}, run_name="__main__")
print({BANK_ROUNDS} / (time.perf_counter() - began))
"""


class LiveCutsFailed(Exception):
    """A program failed, or no cut was taken, so its throughput has no meaning."""


@dataclass(frozen=True, slots=True)
class LiveCutCosts:
    """Throughput by the name of the program, a second, recorded, in each round."""

    without: dict[str, list[float]]
    with_cuts: dict[str, list[float]]
    # Live cuts in all rounds.
    cuts: dict[str, int]
    # Why a program was not measured.
    missing: dict[str, str]

    def ratio(self, name: str) -> float:
        """Return the median of the ratios of each round: with cuts against without."""
        pairs = zip(self.with_cuts[name], self.without[name], strict=True)
        return median(more / less for more, less in pairs)

    def as_text(self) -> str:
        """Return it as lines for people."""
        lines = [f"throughput with a live cut each second against without (target at least {TARGET:.2f})"]
        for name, without in self.without.items():
            ratio = self.ratio(name)
            pairs = [more / less for more, less in zip(self.with_cuts[name], without, strict=True)]
            lines.append(
                f"  {name:<15} {median(without):,.0f} a second, with {self.cuts[name]} cuts "
                f"{median(self.with_cuts[name]):,.0f}: {ratio:.3f} ({verdict(TARGET, ratio)}), "
                f"rounds {min(pairs):.3f} to {max(pairs):.3f}"
            )
        lines += [f"  {name:<15} {reason}" for name, reason in self.missing.items()]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_live_cuts(runs: int, timeout: float) -> LiveCutCosts:
    """Measure each program in `runs` paired rounds, which alternate in their order. Raises LiveCutsFailed."""
    programs: dict[str, Callable[[Path, list[str], float], float]] = {"bank, rounds": _bank}
    missing = {}
    if find_spec("uvicorn") is None:
        missing["uvicorn"] = "not installed: uvicorn"
    else:
        programs["uvicorn, requests"] = _uvicorn
    costs = LiveCutCosts({}, {}, {}, missing)
    for name, measure in programs.items():
        without, with_cuts = costs.without.setdefault(name, []), costs.with_cuts.setdefault(name, [])
        costs.cuts[name] = 0
        for number in range(max(runs, 1)):
            for has_cuts in (False, True) if number % 2 else (True, False):
                with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as directory:
                    found = measure(Path(directory), [EVERY] if has_cuts else [], timeout)
                    costs.cuts[name] += len(completed(Path(directory) / "made.rdbgs").cuts)
                    (with_cuts if has_cuts else without).append(found)
        if not costs.cuts[name]:
            raise LiveCutsFailed(f"{name}: no live cut was taken")
    return costs


def _bank(directory: Path, options: list[str], timeout: float) -> float:
    """Return the rounds of the bank in a second."""
    (directory / "timed.py").write_text(_TIMED_BANK)
    command = tool.record(sys.executable, directory / "made", ["timed.py"], options=(*CHILDREN, *options))
    done = run(command, cwd=directory, env=environment(), timeout=timeout)
    if done.status != 0:
        raise LiveCutsFailed(done.stderr.decode(errors="replace"))
    return float(done.stdout)


def _uvicorn(directory: Path, options: list[str], timeout: float) -> float:
    """Return the requests in a second that two workers answer."""
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
        began = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = sum(pool.map(_ask, [port] * CLIENTS))
        found = answers / (time.perf_counter() - began)
        os.kill(read_group(directory / "made.rdbgs").processes[0].pid, signal.SIGTERM)
        server.wait(timeout)
    finally:
        if server.poll() is None:
            server.terminate()
            server.wait(30)
    return found


def _answers(port: int) -> bool:
    try:
        return _ask(port, 1) == 1
    except (OSError, HTTPException):
        return False


def _ask(port: int, requests: int = REQUESTS) -> int:
    """Ask that often, each time through a new connection; return how many answers came.

    In a connection that is kept, uvicorn's workers send the body only when the client has acknowledged the head.
    """
    for number in range(requests):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", f"/?{number}", headers={"Connection": "close"})
            answer = connection.getresponse()
            if answer.status != 200 or not answer.read():
                raise LiveCutsFailed(f"request {number} was answered with {answer.status}")
        finally:
            connection.close()
    return requests
