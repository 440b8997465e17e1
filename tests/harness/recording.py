"""Recordings of programs for tests."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from replaydbg.debugger import Session
from tests.harness import tool
from tests.harness.process import run
from tests.harness.surroundings import without_steering


def record_file(program: Path, folder: Path, *argv: str, status: int = 0, timeout: float = 60.0) -> Path:
    """Record `program` in `folder` and return the recording; the program must end with `status`."""
    recording = folder / f"{program.stem}.rdbg"
    command = tool.record(sys.executable, recording, [str(program), *argv])
    recorded = run(command, cwd=folder, env=without_steering(os.environ), timeout=timeout)
    assert recorded.status == status, (recorded.status, recorded.stderr)
    return recording


def record_failure(program: Path, folder: Path, *, runs: int = 100, timeout: float = 60.0) -> Path:
    """Record `program`, whose threads fail intermittently, until it fails; the seeds are always the same."""
    recording = folder / f"{program.stem}.rdbg"
    options = ["--chaos", "1", "--chaos-runs", str(runs)]
    command = tool.record(sys.executable, recording, [str(program)], options=options)
    recorded = run(command, cwd=folder, env=without_steering(os.environ), timeout=timeout)
    assert recorded.status == 1, (recorded.status, recorded.stderr)
    return recording


def at_exception(text: str, folder: Path) -> Iterator[Session]:
    """Record a program that ends with an exception, and yield a session that stands there."""
    program = folder / "program.py"
    program.write_text(text)
    with Session(record_file(program, folder, status=1)) as session:
        session.seek("@exc")
        yield session
