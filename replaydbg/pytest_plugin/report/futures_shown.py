"""Run futures of the tests that are to have some, and show what came of them as a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest

from replaydbg.pytest_plugin.shared import shared_names

# Bound now: tests replace functions of modules.
_sleep, _now, _run = time.sleep, time.monotonic, subprocess.run
_LOOK_EVERY = 0.02
_START = (
    "import sys;del sys.path[0];from replaydbg.pytest_plugin.examination.futures_of_test import main;"
    "main(*sys.argv[1:])"
)
_LONGEST = 70
"""Characters of a test's name or of how it failed."""


def write_futures(
    reporter: pytest.TerminalReporter, wanted: Mapping[str, tuple[str, int]], *, since: float, wait: float
) -> None:
    """Run them, and write a line for each test: `wanted` has the directories and numbers by node id.

    `since`: when the session began; `wait`: for how many seconds a recording may still be missing.
    """
    reporter.section("replaydbg futures")
    names = [shown(each) for each in wanted]
    width = max(map(len, names))
    reporter.write_line(f"{'test'.ljust(width)}  failed  passed  inconclusive  share")
    for name, (folder, count) in zip(names, wanted.values(), strict=True):
        path = os.path.join(folder, shared_names.RECORDING)  # noqa: PTH118
        if not _is_written(path, since, _now() + wait):
            reporter.write_line(f"{name.ljust(width)}  no futures: its recording was not finished within {wait:g} s")
            continue
        for number, line in enumerate(_lines(_futures(path, count), path)):
            reporter.write_line(f"{(name if number == 0 else '').ljust(width)}  {line}")


def shown(nodeid: str) -> str:
    """Return a test's name, or its end if it is long."""
    return nodeid if len(nodeid) <= _LONGEST else f"...{nodeid[3 - _LONGEST :]}"


def _is_written(path: str, since: float, until: float) -> bool:
    """Wait until the recording of this session is there."""
    while True:
        try:
            if os.stat(path).st_mtime >= since:  # noqa: PTH116
                return True
        except OSError:
            pass
        if _now() >= until:
            return False
        _sleep(_LOOK_EVERY)


def _futures(path: str, count: int) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name != shared_names.VARIABLE}
    command = [sys.executable, "-c", _START, path, str(count)]
    done = _run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        text = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return {"problem": text or f"their process ended with exit code {done.returncode}"}
    return found


def _lines(found: dict[str, Any], path: str) -> list[str]:
    if "problem" in found:
        return [f"no futures: {found['problem']}"]
    numbers = f"{found['failed']:6,}  {found['passed']:6,}  {found['inconclusive']:12,}"
    decided = found["failed"] + found["passed"]
    if found["is_fixed"]:
        share = "all are the same"
    elif decided:
        low, high = found["share"]
        share = f"{found['failed'] / decided:.0%} ({low:.0%} to {high:.0%})"
    else:
        share = "none has a verdict"
    lines = [f"{numbers}  {share}"]
    lines += [f"  {count:,} {_shortened(ending)} (seed {seed})" for count, ending, seed in found["groups"]]
    if found["failed"]:
        lines.append(f"  what decides: replaydbg futures {path} --at {found['event'] + 1} --shrink")
    return lines


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
