"""Futures of several processes: they run in any order, by channels of their own, and each is a recording."""

import json
from pathlib import Path

import pytest

from tests.group_futures.made_group import MadeGroup

pytestmark = pytest.mark.slow

BUGS = {
    "account_over_pipes": "process 1: AssertionError",
    "account_over_tcp": "process 1: AssertionError",
    "tokens_in_other_orders": "deadlock: every process waits",
    "results_in_order": "process 1: AssertionError",
    "last_of_two_children": "process 1: AssertionError",
    "first_of_two_spawned": "process 1: AssertionError",
}


@pytest.mark.parametrize("name", BUGS)
@pytest.mark.timeout(300)
def test_the_bug_of_a_run_that_passed_is_found(name: str, tmp_path: Path) -> None:
    made = MadeGroup.of_fixture(tmp_path, name)

    found = made.futures(60, "-o", "kept")

    endings = {group["ending"]: group["verdict"] for group in found["groups"]}
    assert any(ending.startswith(BUGS[name]) for ending, verdict in endings.items() if verdict == "failed"), endings
    assert endings.get("exit code 0") == "passed", endings
    assert found["inconclusive"] == 0
    kept = made.kept()
    assert len(kept) >= 2
    assert all(made.replays(each) for each in kept)


def test_a_seed_is_the_same_future_again(tmp_path: Path) -> None:
    made = MadeGroup.of_fixture(tmp_path, "account_over_pipes")

    one, two = (
        {seed: group["ending"] for group in made.futures(30, "--jobs", jobs)["groups"] for seed in group["seeds"]}
        for jobs in ("1", "3")
    )

    assert one == two
    assert len(set(one.values())) >= 2


def test_what_was_sent_and_received_is_in_the_recording(tmp_path: Path) -> None:
    made = MadeGroup.of_fixture(tmp_path, "account_over_pipes")
    made.futures(1, "-o", "kept")
    (group,) = made.kept()

    rows = json.loads(made.replaydbg("channels", str(group), "--json").stdout)["channels"]
    cut = made.replaydbg("cut", str(group))

    assert len(rows) >= 4
    assert all(each["sent"] == each["received"] > 0 for each in rows)
    assert cut.status == 0, cut.stderr
    assert b"in flight: nothing" in cut.stdout


def test_it_begins_where_it_is_wanted(tmp_path: Path) -> None:
    made = MadeGroup.of_fixture(tmp_path, "account_over_pipes")
    default = made.futures(1)["cut"]
    later = made.futures(5, "--at", f"1@{default['1'] + 9}")

    assert default["1"] < later["cut"]["1"] <= default["1"] + 8
    text = made.replaydbg("futures", "one.rdbgs", "-n", "1").stdout.decode()
    assert f"after events 1@{default['1']}, 2@{default['2']}, 3@{default['3']}" in text


def test_kept_in_the_store_they_have_names(tmp_path: Path) -> None:
    made = MadeGroup.of_fixture(tmp_path, "account_over_pipes")

    text = made.replaydbg("futures", "one.rdbgs", "-n", "3", "--keep", "all").stdout.decode()

    assert "replaydbg debug run-1" in text or "replaydbg debug run-2" in text or "replaydbg debug run-3" in text
    for name in ("run-1", "run-2", "run-3"):
        ps = json.loads(made.replaydbg("ps", name, "--json").stdout)
        assert [each["number"] for each in ps["processes"]] == [1, 2, 3]
        assert made.replaydbg("verify", name).status == 0


def test_recordings_of_processes_that_had_ended_are_kept_too(tmp_path: Path) -> None:
    text = """import os, time
if (first := os.fork()) == 0:
    os._exit(3)
time.sleep(0.1)
if (second := os.fork()) == 0:
    time.sleep(0.1)
    os._exit(4)
time.sleep(0.05)
print([os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in (first, second)])
"""
    made = MadeGroup.make(tmp_path, text)
    with_both = made.replaydbg("events", "one.rdbgs/1", "--json").stdout.decode().count('"posix.fork"')
    assert with_both == 2

    group = made.one("-o", "kept")

    assert (group["verdict"], group["ending"]) == ("failed", "process 3: exit code 4")
    (kept,) = made.kept()
    assert {path.name for path in kept.glob("*.rdbg")} == {"1.rdbg", "2.rdbg", "3.rdbg"}
    assert made.replays(kept)
    assert b"[3, 4]" in made.replaydbg("replay", str(kept)).stdout
