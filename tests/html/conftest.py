"""Pages of recorded programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.process import run
from tests.harness.replays import Outcome, passed_on
from tests.harness.replays import run as run_command
from tests.harness.surroundings import key_beside, without_steering

FIXTURES = Path(__file__).parents[2] / "fixtures" / "pages"

Export = Callable[..., Outcome]
Record = Callable[..., Path]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Record a program given as text; returns the recording."""

    def record(source: str, *, name: str = "prog.py", options: tuple[str, ...] = (), **env: str) -> Path:
        program = tmp_path / name
        program.write_text(source, encoding="utf-8")
        recording = tmp_path / f"{program.stem}.rdbg"
        command = tool.record(sys.executable, recording, [name], options=options)
        run(command, cwd=tmp_path, env={**without_steering(os.environ), **key_beside(tmp_path), **env}, timeout=100)
        return recording

    return record


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Run `replaydbg export` with some words in the directory of the test."""

    def export(*words: str | Path, **env: str) -> Outcome:
        command = [sys.executable, "-m", "replaydbg", "export", *map(str, words)]
        return run_command(command, cwd=tmp_path, env={**passed_on(), **key_beside(tmp_path), **env})

    return export
