"""The recordings that the monkey plays with: each shows other parts of the terminal UI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.harness.recorded_group import BANK, record_program
from tests.harness.recording import record_failure, record_file

_FIXTURES = Path(__file__).parents[2] / "fixtures"


def _travel(name: str, folder: Path, *, status: int = 0) -> list[str]:
    return [str(record_file(_FIXTURES / "travel" / f"{name}.py", folder, status=status))]


def _race(folder: Path) -> list[str]:
    return [str(record_failure(_FIXTURES / "races" / "till.py", folder))]


def _pair(folder: Path) -> list[str]:
    one = _race(folder)[0]
    other = Path(one).with_name("other.rdbg")
    other.write_bytes(Path(one).read_bytes())
    return [one, str(other)]


def _leak(folder: Path) -> list[str]:
    return [str(record_file(_FIXTURES / "heap" / "keeps_every_request.py", folder))]


def _group(folder: Path) -> list[str]:
    return [str(record_program(folder, BANK) / "1.rdbg")]


RECORDINGS: dict[str, Callable[[Path], list[str]]] = {
    "failure": lambda folder: _travel("ends_by_an_exception", folder, status=1),
    "tasks": lambda folder: _travel("lanes_and_tasks", folder),
    "race": _race,
    "leak": _leak,
    "loop": lambda folder: _travel("long_loop", folder),
    "group": _group,
    "pair": _pair,
}
"""The words after `replaydbg tui` for each."""
