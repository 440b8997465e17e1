"""Where nothing of replaydbg is compiled, recordings are read as elsewhere, and nothing else is tried.

The systems are pretended: see `tests/harness/pretended.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.harness.replays import Outcome, passed_on, run

ROOT = Path(__file__).parents[2]
KINDS = ("pure", "darwin")
PROGRAM = """
import os, replaydbg, socket, subprocess, sys
class Order:
    def __init__(self, number):
        self.number, self.items = number, [number] * 3
kept = {number: Order(number) for number in range(5)}
replaydbg.snapshot("early")
kept |= {number: Order(number) for number in range(5, 50)}
with open(__file__) as file, socket.socket() as server:
    server.bind(("127.0.0.1", 0))
    print(len(file.read()), os.environ["DB_PASSWORD"])
    replaydbg.snapshot("late")
subprocess.run([sys.executable, "-c", "print(len(input()))"], input=b"through a pipe")
os.kill(os.getpid(), 15)
"""
READS = [
    "ls",
    "info run-1/1",
    "info run-1/1 --json",
    "events run-1/1",
    "events run-1/2 --json",
    "snapshots run-1/1",
    "verify run-1",
    "diff run-1/1 @#1 @#2",
    "heap run-1/1 @#2",
    "resources run-1/1 --json",
    "ps run-1",
    "channels run-1",
    "order run-1 1@3 2@3",
    "config",
    "completion bash",
    "gc --recordings --keep last --dry-run",
]
"""Command lines that replay nothing."""
RUNS = ["record prog.py", "replay run-1/1", "why run-1/1 kept", "diff run-1/1 3 9", "redact run-1"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recorded")
    (place / "prog.py").write_text(PROGRAM)
    made = run([sys.executable, "-m", "replaydbg", "record", "-q", "prog.py"], cwd=place, env=_environment(place))
    assert made.status in (143, -15), made
    return place


@pytest.mark.parametrize("command", READS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_command_reads_as_elsewhere(recorded: Path, kind: str, command: str) -> None:
    here = run([sys.executable, "-m", "replaydbg", *command.split()], cwd=recorded, env=_environment(recorded))
    there = _pretended(kind, recorded, *command.split())

    assert here.stdout and not here.stderr, here
    assert (there.status, there.stdout) == (here.status, here.stdout), there


@pytest.mark.parametrize("command", RUNS)
@pytest.mark.parametrize(("kind", "reason"), [("pure", "is not built"), ("darwin", "it runs on darwin")])
def test_what_has_to_run_the_program_says_so_in_a_line(recorded: Path, kind: str, reason: str, command: str) -> None:
    done = _pretended(kind, recorded, *command.split())

    assert (done.status, done.stdout) == (1, ""), done
    assert done.stderr.startswith("replaydbg: ") and done.stderr.count("\n") == 1
    assert reason in done.stderr


def test_doctor_names_what_is_missing(recorded: Path) -> None:
    done = _pretended("darwin", recorded, "doctor")

    assert done.status == 1
    assert "it runs on darwin, and recording needs Linux" in done.stdout
    assert "This machine cannot record and replay." in done.stdout


def test_without_the_library_of_age_no_key_is_looked_for(recorded: Path) -> None:
    done = _pretended("without age", recorded, "info", "run-1/1")
    refused = _pretended("without age", recorded, "key")

    assert done.status == 0, done
    assert "this Python lacks the package pyrage, which a key needs" in done.stdout
    assert (refused.status, refused.stderr.count("\n")) == (2, 1), refused
    assert "pyrage" in refused.stderr


def _environment(place: Path) -> dict[str, str]:
    data = {name: str(place / name) for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    return {**passed_on(), **data, "DB_PASSWORD": "hunter-2-Secret9"}


def _pretended(kind: str, place: Path, *words: str) -> Outcome:
    env = {**_environment(place), "PYTHONPATH": str(ROOT)}
    return run([sys.executable, "-m", "tests.harness.pretended", kind, *words], cwd=place, env=env)
