"""`replaydbg demo`: the bundled program fails intermittently, and the demonstration reports the results correctly."""

import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest
from rich.console import Console

from replaydbg.cli.running import demo as demonstration
from replaydbg.demo import checkout
from replaydbg.errors import Divergence
from tests.harness.build import example

ORDERS = str(files("replaydbg.demo") / "orders.csv")


@pytest.mark.parametrize("free", [1, 2, 4, 5])
def test_program_passes_when_the_parcels_share_evenly(
    free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(random, "randint", lambda low, high: free)

    checkout.main(ORDERS, str(tmp_path / "books.db"))

    assert "4 items, 4340 cents" in capsys.readouterr().out


def test_program_fails_for_one_of_five_numbers_of_parcels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "randint", lambda low, high: 3)

    with pytest.raises(ValueError, match=r"receipt \d+: the shares add up to 999 cents, shipping costs 1000"):
        checkout.main(ORDERS, str(tmp_path / "books.db"))


@dataclass
class FakeRecording:
    path: Path
    status: int
    events: int = 18
    size: int = 4096


@dataclass
class FakeReplay:
    status: int = 1
    divergence: Divergence | None = None
    events: int = 18


class FakeModes:
    """A recorder whose program ends with the given exit codes in turn, and a replayer with prepared results."""

    def __init__(self, place: Path, statuses: list[int], replay: Callable[[int], FakeReplay]) -> None:
        self.statuses: Iterator[int] = iter(statuses)
        self.place = place
        self.result = replay
        self.recorded: list[Path] = []
        self.inputs: list[Path] = []

    def record(self, argv: list[str], *, stdout: int, stderr: int) -> FakeRecording:
        self.inputs = [Path(argument) for argument in argv[:2]]
        assert all(path.is_file() for path in self.inputs)
        number = len(self.recorded) + 1
        self.recorded.append(example().write(self.place, f"run-{number}"))
        os.write(stdout, b"receipt %d\n" % number)
        return FakeRecording(self.recorded[-1], next(self.statuses))

    def replay(self, path: Path, *, stdout: int, stderr: int) -> FakeReplay:
        assert path == self.recorded[-1]
        assert not any(recorded.exists() for recorded in self.inputs)
        return self.result(stdout)


Stage = Callable[[list[int], Callable[[int], FakeReplay]], tuple[int, str, FakeModes]]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    def run(statuses: list[int], replay: Callable[[int], FakeReplay]) -> tuple[int, str, FakeModes]:
        modes = FakeModes(tmp_path, statuses, replay)
        monkeypatch.setattr(demonstration, "record", modes.record)
        monkeypatch.setattr(demonstration, "replay", modes.replay)
        screen = io.StringIO()
        status = demonstration.demo(console=Console(file=screen, width=200), attempts=len(statuses))
        return status, screen.getvalue(), modes

    return run


def test_the_first_failure_is_kept_and_the_passing_runs_are_not(stage: Stage) -> None:
    def replay(stdout: int) -> FakeReplay:
        os.write(stdout, b"receipt 3\n")
        return FakeReplay()

    status, screen, modes = stage([0, 0, 1], replay)

    assert status == 0
    assert [path.exists() for path in modes.recorded] == [False, False, True]
    assert screen.count("passed") == 2
    assert "The same 10 bytes of output" in screen
    assert "replaydbg replay run-3" in screen


def test_a_program_that_never_fails_is_inconclusive(stage: Stage) -> None:
    def replay(stdout: int) -> FakeReplay:
        raise AssertionError("there is nothing to replay")

    status, screen, modes = stage([0, 0], replay)

    assert status == 3
    assert "passed 2 times in a row" in screen
    assert not any(path.exists() for path in modes.recorded)


def test_a_divergence_is_shown_as_it_is(stage: Stage) -> None:
    divergence = Divergence(recording="run-1", event=7, recorded="time.time()", observed="os.getpid()")

    status, screen, _ = stage([1], lambda stdout: FakeReplay(4, divergence))

    assert status == 4
    assert str(divergence) in screen
    assert "The same" not in screen


def test_other_output_is_no_success(stage: Stage) -> None:
    def replay(stdout: int) -> FakeReplay:
        os.write(stdout, b"receipt 2\n")
        return FakeReplay()

    status, screen, _ = stage([1], replay)

    assert status == 4
    assert "replay differed from the recorded run" in screen


@pytest.mark.slow
def test_the_whole_demonstration(tmp_path: Path) -> None:
    environment = os.environ | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "COLUMNS": "80"}
    environment.pop("REPLAYDBG_STORE", None)

    done = subprocess.run(
        [sys.executable, "-m", "replaydbg", "demo"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=110,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.count("ValueError: receipt") == 2
    assert len(set(re.findall(r"ValueError: receipt (\d+)", done.stdout))) == 1
    assert re.search(r"^ *\d+ .*checkout\.py:\d+", done.stdout, re.M), done.stdout
    assert "\x1b" not in done.stdout, "no escape sequences without a terminal"
