"""Record a group of processes, kill all of it, and run commands on what is left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.log.group import GroupProcess, page_rows, read_group
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.resumes.group_rounds import kill_group

_TIMEOUT = 60.0


def replaydbg(folder: Path, *words: str) -> Finished:
    """Run a command that finds its recordings, and makes new ones, in `folder`."""
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=env, timeout=_TIMEOUT)


def record_killed(
    folder: Path, text: str, *words: str, killed_at: int = 0, variables: Mapping[str, str] | None = None
) -> Path:
    """Record a program until it has made the file `ready`, and kill its group; return the group's directory.

    `killed_at`: processes that come to this event are killed after it. `variables` are added to its environment.
    """
    (folder / "program.py").write_text(text)
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")} | dict(variables or {})
    if killed_at:
        env["REPLAYDBG_TEST_KILLED_AT"] = str(killed_at)
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "one", *words, "program.py"]
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.PIPE, start_new_session=True)
    wait_until(lambda: (folder / "ready").exists() or process.poll() is not None)
    wait_until(lambda: all(waits(each.pid) for each in page_rows(folder / "one.rdbgs")[0]))
    kill_group(folder / "one.rdbgs")
    process.communicate(timeout=_TIMEOUT)
    wait_until(lambda: read_group(folder / "one.rdbgs").is_complete)
    return folder / "one.rdbgs"


def waits(pid: int) -> bool:
    """Whether a process waits, or has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"S", b"Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


def rows_of(directory: Path) -> list[GroupProcess]:
    """Return the rows of a group that is recorded; none while it is made."""
    try:
        return page_rows(directory)[0]
    except (FileNotFoundError, Corrupt):  # it is there, and has no head yet
        return []
