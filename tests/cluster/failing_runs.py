"""A repository whose commits break and repair a program, and recordings of the program at one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.harness.history import Change, git, make_history

RUN = "import sys\nimport shop\nprint(shop.total(int(sys.argv[1])))\n"
# Each breaks it for the arguments from there on: verdicts differ between recordings.
BROKEN_FROM = (9, 9, 6, 6, 3, 9, 3, 1)


def make_repository(directory: Path, commits: int = 8) -> Path:
    """Create a repository with commits `v1` to `vN`; each raises ZeroDivisionError from another argument on."""
    changes = []
    for number in range(1, commits + 1):
        limit = BROKEN_FROM[(number - 1) % len(BROKEN_FROM)]
        shop = f"# {number}\ndef total(count):\n    return count // (count < {limit})\n"
        changes.append(Change(f"v{number}", {"shop.py": shop, "run.py": RUN}))
    return make_history(directory, changes)


def names_of(repository: Path) -> list[str]:
    """Return the full names of its commits, the oldest first."""
    return git(repository, "rev-list", "--reverse", "main").split()


def record_runs(repository: Path, directory: Path, count: int) -> list[Path]:
    """Record the program of the checkout with the arguments 1 to `count`."""
    directory.mkdir(parents=True, exist_ok=True)
    made = [directory / f"run-{number}.rdbg" for number in range(1, count + 1)]
    for number, path in enumerate(made, 1):
        command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", str(path), "run.py", str(number)]
        subprocess.run(command, cwd=repository, capture_output=True, check=False, timeout=100)
        assert path.exists()
    return made
