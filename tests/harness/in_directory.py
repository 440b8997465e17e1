"""Record a program in a directory, and run commands about its recording `r.rdbg` there."""

import os
import sys
from pathlib import Path

from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run


def record_in(directory: Path, *argv: str) -> Outcome:
    """Record a program as `r.rdbg`; `argv` are its words after `python`."""
    return run(tool.record(sys.executable, directory / "r.rdbg", list(argv)), cwd=directory, env=_env())


def tool_in(directory: Path, *args: str) -> Outcome:
    """Run a command of replaydbg."""
    return run([sys.executable, "-m", "replaydbg", *args], cwd=directory, env=_env())


def _env() -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
