"""Run pytest, with the plugin, on a few lines of tests in a directory of their own."""

import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaydbg.debugger import Session
from tests.harness.sanitizer import SLOWER
from tests.harness.surroundings import is_steering

TIMEOUT = 100.0 * SLOWER

WAIT = str(60 * SLOWER)
"""Seconds to wait for the analyses of failures."""

ORDERED_AND_APART = [
    option for name in ("randomly", "random_order", "asyncio", "faker") for option in ("-p", f"no:{name}")
]
"""Options without the plugins, where they are installed, that shuffle tests or give each one a session-wide fixture.

Such a fixture is set up in the first test, which then cannot be left out of the recordings of later ones.
"""

RANDOM = """
    import random
    def test_good():
        assert True
    def test_bad():
        drawn = random.random()
        doubled = 2 * drawn
        assert doubled == 3
    def test_after():
        assert True
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """The results of a run of pytest."""

    folder: Path
    output: str
    status: int
    # The counts in pytest's last line: `{"failed": 1, "passed": 2}`.
    counts: dict[str, int]

    def kept(self) -> list[str]:
        """The directories with recordings, by name."""
        return sorted(path.parent.name for path in (self.folder / "test-results").glob("*/rec.rdbg"))

    def recording(self, name: str) -> Path:
        return self.folder / "test-results" / name / "rec.rdbg"

    def meta(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "test-results" / name / "meta.json").read_text())
        return found


def run_pytest(
    folder: Path, source: str, *options: str, mode: str = "retain-on-failure", wait: str = WAIT, **env: str
) -> Ran:
    """Run the tests in `source`, with `*options` besides `--replaydbg=mode`; no mode: without that option."""
    (folder / "test_it.py").write_text(textwrap.dedent(source), encoding="utf-8")
    return rerun_pytest(folder, *options, mode=mode, wait=wait, **env)


def rerun_pytest(
    folder: Path, *options: str, mode: str = "retain-on-failure", wait: str = WAIT, stdin: str = "", **env: str
) -> Ran:
    """Run the tests that exist in the directory again."""
    inherited = {name: value for name, value in os.environ.items() if not is_steering(name)}
    environment = {name: value for name, value in inherited.items() if not name.startswith(("PYTEST", "COV_"))}
    environment.pop("GITHUB_STEP_SUMMARY", None)
    command = [sys.executable, "-m", "pytest", f"--rootdir={folder}", *options]
    if mode:
        command += [f"--replaydbg={mode}", f"--replaydbg-wait={wait}"]
    ran = subprocess.run(
        command,
        cwd=folder,
        env=environment | env,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",
        timeout=TIMEOUT,
        check=False,
    )
    last = ran.stdout.rstrip().rpartition("\n")[2]
    counts = {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", last)}
    return Ran(folder, ran.stdout, ran.returncode, counts)


def line_of_failure(recording: Path) -> str:
    """Return the text of the line at which a session on `recording` opens."""
    with Session(recording) as session:
        top = session.here.stack[0]
        assert session.here.why == "exception", session.here
        return session.source_line(top.file, top.line)
