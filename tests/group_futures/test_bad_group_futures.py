"""Wishes that no group can fulfil get a clear sentence."""

from pathlib import Path

import pytest

from tests.group_futures.made_group import MadeGroup

pytestmark = pytest.mark.slow

BAD = {
    ("--at", "44"): "an event of a process, such as 2@105",
    ("--at", "2@"): "an event of a process, such as 2@105",
    ("--at", "9@5"): "The group has no recording of process 9. Recorded: 1, 2, 3.",
    ("--at", "1@99999"): "No such moment '1@99999': process 1 has",
    ("--at", "1@exc"): "must be an event from 1 on, 1@start, 1@t+SECONDS, or a snapshot such as 1@#3 (got '1@exc')",
    ("--at", "1@#7"): "No such moment '1@#7'",
    ("--at", "2@5"): "Process 2 was forked at event ",
    ("--at", "1@100,1@101"): "--at names process 1 twice.",
    ("--curve",): "--curve cannot be used here: ",
    ("--shrink",): "--shrink cannot be used here: ",
    ("--systematic", "0"): "--systematic cannot be used here: ",
    ("--depth", "2"): "--depth cannot be used here: ",
    ("--set", "x = 1"): "--set cannot be used here: ",
    ("--faults", "write:ENOSPC"): "--faults cannot be used here: ",
    ("-n", "0"): "N must be at least 1",
}


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> MadeGroup:
    return MadeGroup.of_fixture(tmp_path_factory.mktemp("group"), "account_over_pipes")


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_it_says_what_is_wrong(words: tuple[str, ...], group: MadeGroup) -> None:
    finished = group.replaydbg("futures", "one.rdbgs", *words)

    assert finished.status == 2
    assert BAD[words] in finished.stderr.decode()


def test_one_process_of_a_group_has_none(group: MadeGroup) -> None:
    finished = group.replaydbg("futures", "one.rdbgs/2")

    assert finished.status == 2
    assert b"name the whole group, without /N" in finished.stderr


def test_a_member_that_is_missing(group: MadeGroup, tmp_path: Path) -> None:
    for path in (group.folder / "one.rdbgs").iterdir():
        if path.is_file() and path.name != "2.rdbg":
            (tmp_path / "cut.rdbgs").mkdir(exist_ok=True)
            (tmp_path / "cut.rdbgs" / path.name).write_bytes(path.read_bytes())

    finished = group.replaydbg("futures", str(tmp_path / "cut.rdbgs"))

    assert finished.status == 2
    assert b"recordings of its processes cannot be read" in finished.stderr
