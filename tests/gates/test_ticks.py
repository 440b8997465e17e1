"""Ticks, the count behind the slices of lanes: equal at each crossing of recording and replay, and of two replays."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from replaydbg.replay.clock import read_varints
from tests.harness import tool
from tests.harness.replay_cases import FIXTURES
from tests.harness.replays import passed_on

pytestmark = pytest.mark.slow

FD = 150
SLICE = 7
PROGRAMS = ("crossings_everywhere", "one_liners", "recursion_limit", "greenlets", "own_settrace", "own_monitoring")


def ticks_of(command: list[str], directory: Path, more: dict[str, str] | None = None) -> list[tuple[int, int]]:
    """Run `command`; return ticks and used slices at each event."""
    env = passed_on() | {"PATH": "/usr/bin:/bin", "HOME": str(directory), "LANG": "C.UTF-8"} | (more or {})
    env |= {"REPLAYDBG_TEST_TICKS": str(SLICE), "REPLAYDBG_TEST_TICKS_FD": str(FD)}
    file = os.memfd_create("ticks")
    os.dup2(file, FD)
    try:
        done = subprocess.run(command, pass_fds=(FD,), env=env, cwd=directory, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        numbers = list(read_varints(os.pread(file, os.fstat(file).st_size, 0)))
    finally:
        os.close(FD)
        os.close(file)
    return list(zip(numbers[::2], numbers[1::2], strict=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_ticks_are_equal_at_each_event(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.rdbg"
    program = FIXTURES / "steps" / f"{name}.py"

    recorded = ticks_of(tool.record(sys.executable, path, [str(program), "on"]), tmp_path)
    replayed = [ticks_of(tool.replay(sys.executable, path), tmp_path) for _ in range(2)]

    assert len(recorded) > 50
    assert replayed == [recorded, recorded]
    # Every slice was used up after exactly its number of ticks.
    assert all(slices == ticks // SLICE for ticks, slices in recorded)
    assert sorted(recorded) == recorded
    assert recorded[-1][0] > len(recorded)


@pytest.mark.parametrize("name", PROGRAMS)
def test_ticks_are_equal_while_lines_are_counted(tmp_path: Path, name: str) -> None:
    """The interpreter runs other forms of the same instructions then, and 3.11 checks twice where a function begins."""
    path = tmp_path / "a.rdbg"
    program = FIXTURES / "steps" / f"{name}.py"

    recorded = ticks_of(tool.record(sys.executable, path, [str(program), "on"]), tmp_path)
    last = len(recorded) - 1
    replayed = ticks_of([*tool.replay(sys.executable, path), "--to", f"{last}:1"], tmp_path)

    assert replayed == recorded[:last]


def test_ticks_do_not_depend_on_cached_byte_code(tmp_path: Path) -> None:
    """The importer compiles in one run and reads byte code in the other; its own Python code does not tick."""
    (tmp_path / "imported.py").write_text("def f(n):\n    return [n for _ in range(n)]\n")
    program = tmp_path / "program.py"
    program.write_text("import time\nimport imported\ntime.time()\nfor i in range(9): imported.f(i)\ntime.time()\n")
    caches = {"PYTHONPYCACHEPREFIX": str(tmp_path / "caches")}
    command = tool.record(sys.executable, tmp_path / "a.rdbg", ["-S", str(program)])

    cold = ticks_of(command, tmp_path, caches)
    (tmp_path / "a.rdbg").unlink()
    warm = ticks_of(command, tmp_path, caches)

    assert list((tmp_path / "caches").rglob("imported*.pyc"))
    assert cold == warm


@pytest.mark.parametrize("loop", ["while n: n -= 1", "for i in range(n): pass", "[0 for i in range(n)]", "f(n)"])
def test_everything_that_can_go_on_for_long_ticks(tmp_path: Path, loop: str) -> None:
    program, path = tmp_path / "program.py", tmp_path / "a.rdbg"
    program.write_text(
        f"import time\ndef f(n):\n    if n: f(n - 1)\ndef work(n):\n    {loop}\ntime.time()\nwork(500)\ntime.time()\n"
    )

    ticks = [each for each, _ in ticks_of(tool.record(sys.executable, path, ["-S", str(program)]), tmp_path)]

    assert any(after - before >= 499 for before, after in pairwise(ticks))
