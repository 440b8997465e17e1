"""Two runs compared as trees of calls: rows are the differences, each below its callers."""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.debugger.calls.call_tree import CallEntry
from replaydbg.debugger.compare.call_differences import CallDifference, call_differences
from replaydbg.engine.reports import CalledCode
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering


def entry(name: str, count: int = 1, entries: tuple[CallEntry, ...] = (), line: int = 1) -> CallEntry:
    return CallEntry(CalledCode("a.py", line, name), 0, goes_on=False, count=count, begun=1, ended=2, entries=entries)


def leaves(depth: int) -> st.SearchStrategy[CallEntry]:
    inner = st.just(()) if depth == 0 else st.lists(leaves(depth - 1), max_size=3).map(tuple)
    return st.builds(entry, st.sampled_from("abc"), st.integers(1, 3), inner)


def shown(rows: list[CallDifference]) -> list[tuple[int, str, int, int]]:
    return [
        (row.depth, row.entry.code.function, row.left.count if row.left else 0, row.right.count if row.right else 0)
        for row in rows
    ]


def test_only_differences_and_their_callers_are_rows() -> None:
    left = [entry("main", entries=(entry("same", entries=(entry("below"),)), entry("pay", 3), entry("gone")))]
    right = [entry("main", entries=(entry("same", entries=(entry("below"),), line=9), entry("pay", 4), entry("new")))]

    assert shown(call_differences(left, right)) == [
        (0, "main", 1, 1),
        (1, "pay", 3, 4),
        (1, "gone", 1, 0),
        (1, "new", 0, 1),
    ]


@given(st.lists(leaves(3), max_size=4))
def test_equal_trees_have_no_difference(tree: list[CallEntry]) -> None:
    assert call_differences(tree, tree) == []


@given(st.lists(leaves(2), max_size=4), st.lists(leaves(2), max_size=4))
def test_the_other_way_round_the_sides_change(left: list[CallEntry], right: list[CallEntry]) -> None:
    rows, turned = call_differences(left, right), call_differences(right, left)

    assert bool(rows) == bool(turned) == (left != right)
    assert all(row.depth <= before.depth + 1 for before, row in pairwise(rows))
    assert rows == [] or (rows[0].depth == 0 and any(row.differs for row in rows))


def test_trees_as_deep_as_a_stack() -> None:
    left, right = entry("end"), entry("other end")
    for _ in range(20_000):
        left, right = entry("f", entries=(left,)), entry("f", entries=(right,))

    assert len(call_differences([left], [right])) == 20_002


PROGRAM = """import sys, threading
def fee(x): return x * 0.1
def refuse(x): return 0
def pay(x):
    return refuse(x) if x > int(sys.argv[1]) else fee(x)
def main():
    for x in range(6): pay(x)
thread = threading.Thread(target=main)
thread.start(); thread.join()
"""


def _command(folder: Path, *words: str) -> Finished:
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=env, timeout=60)


@pytest.mark.slow
def test_two_recordings_at_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "pay.py").write_text(PROGRAM)
    for name, limit in (("one", "3"), ("two", "9")):
        assert _command(tmp_path, "record", "-q", "-o", f"{name}.rdbg", "pay.py", limit).status == 0

    text = _command(tmp_path, "diff", "--calls", "one.rdbg", "two.rdbg")
    data = _command(tmp_path, "diff", "--calls", "one.rdbg", "two.rdbg", "--json")
    everything = _command(tmp_path, "diff", "--calls", "--which", "all", "--limit", "2", "one.rdbg", "two.rdbg")
    same = _command(tmp_path, "diff", "--calls", "one.rdbg", "one.rdbg")

    assert (text.status, same.status) == (1, 0)
    lines = text.stdout.decode().splitlines()
    assert lines[0] == "- only in one.rdbg, + only in two.rdbg"
    assert [" ".join(line.split()[:4]) for line in lines[1:]][-2:] == ["fee x4 -> x6", "- refuse x2 pay.py:3"]
    rows = json.loads(data.stdout)["calls"]
    assert [(row["function"], row["differs"]) for row in rows][-2:] == [("fee", True), ("refuse", True)]
    assert rows[-1]["right"] is None and rows[-1]["left"]["calls"] == 2 and ":" in rows[-1]["left"]["moment"]
    assert b"more rows: --all shows them" in everything.stdout and b"threading.py" in everything.stdout
    assert same.stdout == b"Both runs made the same calls.\n"


@pytest.mark.parametrize("words", [["one.rdbg", "@end"], ["one.rdbg", "two.rdbg", "--at", "71%"]])
def test_it_takes_two_recordings(words: list[str], tmp_path: Path) -> None:
    finished = _command(tmp_path, "diff", "--calls", *words)

    assert finished.status == 2 and b"--calls compares two recordings" in finished.stderr
