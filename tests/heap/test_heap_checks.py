"""Invariants: evaluated at each snapshot while a program is recorded, in a copy of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import replaydbg
from replaydbg.heap.storage.recorded_snapshots import snapshots_of
from tests.heap.test_heap_record import end_of, record, tool

PROGRAM = Path(__file__).parents[2] / "fixtures" / "heap" / "breaks_its_invariants.py"


def checks(path: Path) -> list[dict[str, Any]]:
    return [{each["name"]: each for each in taken["checks"]} for taken in end_of(path)["snapshots"]["listed"]]


def holding(path: Path, name: str) -> list[bool | None]:
    return [each[name]["holds"] for each in checks(path)]


def test_what_the_program_says_is_to_hold(tmp_path: Path) -> None:
    path = record(tmp_path, program=PROGRAM)

    assert holding(path, "cache_is_small") == [True, True, True, False, False, False]
    assert checks(path)[3]["cache_is_small"]["text"] == "AssertionError: 4 in the cache"
    assert holding(path, "no debts") == [True, True, True, True, True, False]
    assert holding(path, "returns_nothing") == [True] * 6
    # The copy has no outside: nothing of it would be recorded.
    assert holding(path, "outside") == [None] * 6
    assert "asks for something outside" in checks(path)[0]["outside"]["text"]


def test_nobody_notices(tmp_path: Path) -> None:
    path = record(tmp_path, program=PROGRAM)

    for _ in range(2):
        assert tool("replay", "-q", str(path), cwd=tmp_path).stdout == "0 True\n"


def test_those_of_the_command_line(tmp_path: Path) -> None:
    path = record(
        tmp_path, "--check", "len(cache) < 2", "--check", "nothing", "--snapshot-every", "1s", program=PROGRAM
    )

    assert holding(path, "len(cache) < 2") == [True, False, False, False, False, False]
    assert holding(path, "nothing") == [None] * 6
    assert "NameError" in checks(path)[0]["nothing"]["text"]
    tool("replay", "-q", str(path), cwd=tmp_path)


def test_there_is_room_for_them_near_the_recursion_limit(tmp_path: Path) -> None:
    program = tmp_path / "deep.py"
    program.write_text(
        "import sys, replaydbg\nsys.setrecursionlimit(100)\n"
        "def walk(n):\n    return walk(n + 1) if n < 80 else replaydbg.snapshot('deep')\nwalk(0)\n"
    )
    deep = "(lambda f: f(f, 60))(lambda f, n: n == 0 or f(f, n - 1))"

    held = holding(record(tmp_path, "--check", deep, program=program), deep)

    # A slow machine takes another one, when the interval is over.
    assert held and all(each is True for each in held)


@pytest.mark.parametrize("what", ["lock", "crash"])
def test_one_that_ends_the_copy_costs_no_snapshot(tmp_path: Path, what: str) -> None:
    path = record(tmp_path, program=PROGRAM, arguments=(what,))

    assert len(snapshots_of(path)) == 6
    # The report says that they were not evaluated.
    assert holding(path, "the invariants") == [None] * 6
    assert "ended the copy" in checks(path)[0]["the invariants"]["text"]
    tool("replay", "-q", str(path), cwd=tmp_path)


def test_what_is_said_of_them(tmp_path: Path) -> None:
    path = tmp_path / "x.rdbg"
    said = tool("record", "-o", str(path), "--", str(PROGRAM), cwd=tmp_path).stderr
    assert "cache_is_small did not hold at snapshot @#4, event" in said
    assert "(AssertionError: 4 in the cache)." in said
    assert said.count("did not hold") == 2
    assert said.count("outside could not be evaluated at snapshot @#1") == 1
    shown = tool("snapshots", str(path), cwd=tmp_path).stdout
    assert "does not hold: cache_is_small" in shown
    told = json.loads(tool("snapshots", "--json", str(path), cwd=tmp_path).stdout)
    assert told["snapshots"][5]["checks"][1] == {"name": "no debts", "holds": False, "text": ""}


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    done = tool("record", "--check", "len(", "--", str(PROGRAM), cwd=tmp_path, status=2)
    assert "--check 'len(' is not a valid expression" in done.stderr


def test_without_a_recording_nothing_happens() -> None:
    before = len(replaydbg.invariants)
    try:
        assert replaydbg.check("1 / 0") == "1 / 0"
        replaydbg.snapshot("x")
        assert replaydbg.invariants[before:] == [("1 / 0", "1 / 0")]
    finally:
        del replaydbg.invariants[before:]
