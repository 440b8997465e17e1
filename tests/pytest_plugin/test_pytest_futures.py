"""Tests have futures from where their bodies begin, and a table says what came of them."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.harness.plugin_runs import run_pytest
from tests.harness.process import run
from tests.harness.surroundings import without_steering

pytestmark = pytest.mark.slow

RACE = """
    import threading
    import pytest

    def test_race():
        totals = [0]
        def add():
            for _ in range(10):
                before = totals[0]
                totals[0] = before + 1
        threads = [threading.Thread(target=add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("totals", totals)
        assert totals == [20]

    @pytest.mark.replaydbg_futures(6)
    def test_marked():
        threading.Thread(target=int).start()

    @pytest.mark.replaydbg_futures(0)
    def test_without():
        pass

    def test_fixed():
        pass
"""


def rows(output: str) -> dict[str, str]:
    """Return the lines of the table by the names of the tests."""
    table = output.partition(" replaydbg futures ")[2]
    return dict(re.findall(r"^test_it\.py::(\w+) +(.*)$", table, re.M))


def test_a_race_is_found_in_a_passing_test(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, RACE, "--replaydbg-futures=40", mode="")

    found = rows(ran.output)
    assert ran.counts == {"passed": 4}, ran.output
    assert set(found) == {"test_race", "test_marked", "test_fixed"}
    failed, passed, inconclusive = map(int, found["test_race"].split()[:3])
    assert failed > 0 and passed > 0 and (failed + passed, inconclusive) == (40, 0), ran.output
    assert sum(map(int, found["test_marked"].split()[:3])) == 6
    assert found["test_fixed"].endswith("all are the same")
    assert re.search(r"^ +\d+ test_it\.py:17 AssertionError: .* \(seed \d+\)$", ran.output, re.M), ran.output


def test_the_command_that_finds_what_decides(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, RACE, "--replaydbg-futures=40", "-k", "race", mode="")

    (command,) = re.findall(r"replaydbg futures (\S+) --at (\d+) --shrink", ran.output)
    assert (tmp_path / command[0]).is_file()
    words = [sys.executable, "-m", "replaydbg", "futures", command[0], "--at", command[1], "-n", "3"]
    finished = run(words, cwd=tmp_path, env=without_steering(os.environ), timeout=60)
    said = b"Recordings are missing: a future of a test stops where the test ends, so it is no whole run.\n"
    assert said in finished.stdout and finished.status in (0, 1), finished


@pytest.mark.parametrize("count", ["x", "-1"])
def test_a_bad_number_is_a_usage_error(count: str, tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, RACE, f"--replaydbg-futures={count}", mode="")

    assert ran.status == 4 and "must be a number of futures from 0 on" in ran.output
