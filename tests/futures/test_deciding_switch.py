"""The schedule of a failing future is shrunk to the fewest deviations from the usual one, each of which is needed."""

from pathlib import Path

import pytest

from replaydbg.errors import ForgedMessage
from replaydbg.futures.schedules.decisions import read_decisions
from tests.futures.made import Ground

RACES = Path(__file__).parents[2] / "fixtures" / "races"
PUBLISHED = Path(__file__).parents[2] / "fixtures" / "futures"

PROGRAM = """import threading
total = 0
go = threading.Event()
def add():
    global total
    go.wait()
    for _ in range(3):
        before = total
        total = before + 1
threads = [threading.Thread(target=add, name=f"adder-{number}") for number in (1, 2)]
for thread in threads:
    thread.start()
go.set()
for thread in threads:
    thread.join()
assert total == 6, total
"""


@pytest.mark.slow
def test_few_switches_decide_a_lost_update(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, PROGRAM)

    (deciding,) = ground.futures(ground.first_thread(), 200, "--shrink", "-o", "kept")["deciding"]

    assert deciding["ending"].startswith("AssertionError at ") and deciding["ending"].endswith("program.py:16")
    assert (deciding["is_confirmed"], deciding["usual"]) == (True, "passed")
    assert 1 <= len(deciding["switches"]) <= 2
    switch = deciding["switches"][0]
    assert (switch["kind"], switch["without"]) == ("preemption", "passed")
    assert {switch["thread"], switch["to_thread"]} == {"adder-1", "adder-2"}
    assert switch["place"]["line"] == 9 and switch["place"]["text"] == "total = before + 1"
    assert ground.replay(deciding["recording"]).status == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [PUBLISHED / "bank_transfer.py", PUBLISHED / "order_violation.py", PUBLISHED / "lost_wake_up.py"],
    ids=lambda path: path.stem,
)
def test_few_deviations_decide_a_published_race(program: Path, tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, program.read_text())

    found = ground.futures(ground.first_thread(), 48, "--shrink", "-o", "kept")["deciding"]

    assert found and all(each["is_confirmed"] for each in found)
    assert all(len(each["switches"]) <= 3 for each in found)
    assert all(ground.replay(each["recording"]).status != 0 for each in found)


@pytest.mark.slow
def test_the_switch_in_words(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, PROGRAM)

    at = str(ground.first_thread())
    finished = ground.replaydbg("futures", "one.rdbg", "--at", at, "-n", "200", "--shrink", "-o", "kept", "-q")

    text = finished.stdout.decode()
    assert finished.status == 1, finished
    assert "         The usual schedule, except (" in text
    assert "program.py:9 in add: total = before + 1" in text
    assert "         Confirmed: with " in text


@pytest.mark.slow
def test_nothing_decides_where_the_usual_schedule_fails_too(tmp_path: Path) -> None:
    text = """import random, threading
threading.Thread(target=int).start()
raise SystemExit(1 if random.Random(5).random() >= 0 else 0)
"""
    ground = Ground.make(tmp_path, text, status=1)

    (deciding,) = ground.futures(ground.first_thread(), 4, "--shrink")["deciding"]

    assert (deciding["switches"], deciding["usual"]) == ([], "failed")


@pytest.mark.parametrize(
    "data", [b"X\x00\x00\x00\x00\x00", b"S\x01", b"P\xff\xff", b"O\x00\x00\x00\x00\x00\x01\x02\x03\xffa"]
)
def test_damaged_decisions_are_refused(data: bytes) -> None:
    with pytest.raises(ForgedMessage):
        read_decisions(data)
