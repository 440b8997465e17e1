"""All schedules with up to so many preemptions are tried, and it is said whether any is left."""

from pathlib import Path

import pytest

from replaydbg.futures.schedules.decisions import PreemptionPoint, ThreadChoice, ThreadPlace
from replaydbg.futures.schedules.given import Deviation, DeviationKind
from replaydbg.futures.searches.local_lines import LocalLines
from replaydbg.futures.searches.systematic import SystematicSearch
from tests.futures.made import LOST_UPDATE, Ground

_HERE = ThreadPlace("program.py", 3, "add")


@pytest.mark.slow
def test_no_preemption_and_no_bug(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, LOST_UPDATE)

    found = ground.futures(ground.first_thread(), 100, "--systematic", "0")

    assert found["systematic"] == {"preemptions": 0, "left": 0, "equal": 0}
    assert (found["failed"], found["inconclusive"]) == (0, 0)


@pytest.mark.slow
def test_one_preemption_finds_a_lost_update(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, LOST_UPDATE)

    found = ground.futures(ground.first_thread(), 2000, "--systematic", "1", "--shrink", "-o", "kept")

    assert (found["systematic"]["preemptions"], found["systematic"]["left"]) == (1, 0)
    assert found["failed"] > 0 and found["passed"] > 0
    (deciding,) = found["deciding"]
    assert deciding["is_confirmed"] and len(deciding["switches"]) == 1


@pytest.mark.slow
def test_a_bug_of_more_preemptions_is_not_found_with_one(tmp_path: Path) -> None:
    text = """import threading
steps = []
def first():
    steps.append("a")
    steps.append("c")
    steps.append("e")
def second():
    steps.append("b")
    steps.append("d")
threads = [threading.Thread(target=first), threading.Thread(target=second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert steps != ["a", "b", "c", "d", "e"]
"""
    ground = Ground.make(tmp_path, text)
    at = ground.first_thread()

    one = ground.futures(at, 5000, "--systematic", "1")
    three = ground.futures(at, 3000, "--systematic", "3")

    assert (one["failed"], one["systematic"]["left"]) == (0, 0)
    assert three["failed"] > 0 and three["systematic"]["left"] == 0


@pytest.mark.slow
def test_what_was_not_tried_is_counted(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, LOST_UPDATE)

    at = str(ground.first_thread())
    finished = ground.replaydbg("futures", "one.rdbg", "--at", at, "-n", "5", "--systematic", "1")

    assert b"Schedules with up to 1 preemption: at least " in finished.stdout, finished
    assert b"Try more with -n." in finished.stdout


@pytest.mark.slow
def test_few_changes_of_priority_find_it(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, LOST_UPDATE)
    at = ground.first_thread()

    none, one = (ground.futures(at, 64, "--depth", str(depth)) for depth in (1, 2))

    assert (none["failed"], none["inconclusive"]) == (0, 0)
    assert one["failed"] > 0 == one["inconclusive"]


def test_alternatives_come_after_the_last_deviation() -> None:
    search = SystematicSearch(1, LocalLines({}))
    (usual,) = search.take(10)
    choice = ThreadChoice(0, 1, 5, 9, 3, False, False, 1, 0, False, (1, 2), _HERE, _HERE)
    point = PreemptionPoint(1, 0, 4, 20, 3, (2,), _HERE, frozenset(), frozenset())
    later = choice._replace(lane=1, marks=2, ready=(0,))

    search.add(usual, [choice, point, later])

    first, second = search.take(1) + search.take(10)
    assert first.deviations == (Deviation(DeviationKind.CHOICE, 0, 1, 5, 2),)
    assert second.deviations == (Deviation(DeviationKind.PREEMPTION, 1, 0, 4, 2),)
    search.add(second, [choice, point._replace(marks=0)])
    assert search.take(10) == [] and search.count.left == 0
