"""From a moment of a run that passed, futures find a race of the program; each that is kept replays equal."""

from collections import Counter
from pathlib import Path

import pytest

from tests.futures.made import Ground

pytestmark = pytest.mark.slow

RACES = Path(__file__).parents[2] / "fixtures" / "races"
PUBLISHED = Path(__file__).parents[2] / "fixtures" / "futures"


def races() -> list[Path]:
    return [path for folder in (RACES, PUBLISHED) for path in sorted(folder.glob("*.py"))]


@pytest.mark.parametrize("program", races(), ids=lambda path: path.stem)
def test_a_race_is_found_from_a_passing_run(program: Path, tmp_path: Path) -> None:
    ground = Ground.passing(tmp_path, program.read_text())

    found = ground.futures(ground.first_thread(), 200, "-o", "kept")

    assert found["inconclusive"] == 0
    assert found["failed"] > 0 and found["passed"] > 0
    assert found["share"]["low"] <= found["failed"] / 200 <= found["share"]["high"]
    failing = next(group for group in found["groups"] if group["verdict"] == "failed")
    (first, *_) = failing["recordings"]
    assert failing["open"] == ["replaydbg", "debug", first]
    assert ground.replay(first).status == failing["status"] != 0


def test_each_future_replays_equal(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, (PUBLISHED / "bank_transfer.py").read_text())

    found = ground.futures(ground.first_thread(), 20, "--keep", "all", "-o", "kept")

    kept = [(name, group["status"]) for group in found["groups"] for name in group["recordings"]]
    assert len(kept) == 20
    assert Counter(status for _, status in kept) == {0: found["passed"], 1: found["failed"]}
    assert all(ground.replay(name).status == status for name, status in kept)
    assert ground.replaydbg("verify", kept[0][0]).status == 0


def test_a_seed_says_which_future_it_is(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, (PUBLISHED / "bank_transfer.py").read_text())
    at = ground.first_thread()

    once, again = (ground.futures(at, 12, "--seed", "7")["groups"] for _ in range(2))

    assert [(group["ending"], group["seeds"]) for group in once] == [
        (group["ending"], group["seeds"]) for group in again
    ]
    assert sorted(seed for group in once for seed in group["seeds"]) == list(range(7, 19))


def test_a_future_can_be_debugged(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, (PUBLISHED / "bank_transfer.py").read_text())
    found = ground.futures(ground.first_thread(), 20)
    failing = next(group["recordings"][0] for group in found["groups"] if group["verdict"] == "failed")

    why = ground.replaydbg("why", failing, "paid", is_strict=False)

    assert why.status == 0 and b"paid = paid + 1" in why.stdout, why


def test_futures_of_a_future(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, (PUBLISHED / "bank_transfer.py").read_text())
    at = ground.first_thread()
    first = ground.futures(at, 1, "-o", ".")["groups"][0]["recordings"][0]
    (tmp_path / first).rename(tmp_path / "one.rdbg")

    found = ground.futures(at, 8, "--keep", "all", "-o", "kept")

    assert found["inconclusive"] == 0
    kept = [(name, group["status"]) for group in found["groups"] for name in group["recordings"]]
    assert [ground.replay(name).status for name, _ in kept] == [status for _, status in kept]
