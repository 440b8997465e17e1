"""Run the commands of which the trials of wheels are made."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_TIMEOUT = 900


class Failed(Exception):
    """A step did not do what it should."""


def run(command: Sequence[str], env: Mapping[str, str], place: Path, expected: Sequence[int] = (0,)) -> str:
    """Run a command, and return what it printed. Raises Failed."""
    done = subprocess.run(
        command,
        env=env,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode not in expected:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout or done.stderr
