"""`cut --heap` writes the heap that a replay has at the position of each process, for `heap` and `diff`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.retention.path_lookup import find
from replaydbg.heap.storage.recorded_snapshots import read_snapshot
from replaydbg.log.group import read_group
from tests.harness import tool
from tests.harness.children import CHILDREN, completed
from tests.harness.recorded_group import record_program
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

PROGRAM = """\
import os
import sys
import replaydbg

asked, ask = os.pipe()
answered, answer = os.pipe()
kept = []
if os.fork() == 0:
    for _ in range(5):
        kept.append(os.read(asked, 1))
        os.write(answer, b"x")
    os._exit(0)
for number in range(5):
    kept.append(number)
    if number == 3:
        replaydbg.cut("three")
        if len(sys.argv) > 1:
            print("ready", flush=True)
            sys.stdin.readline()
    os.write(ask, b"%d" % number)
    os.read(answered, 1)
os.wait()
"""


def cut(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = main(["cut", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def files(data: Any) -> dict[int, Path]:
    return {each["process"]: Path(each["file"]) for each in data["heaps"]}


def lengths(data: Any) -> dict[int, int]:
    """Return how many items the list `kept` has in each process."""
    held = {process: Holding(read_snapshot(path)) for process, path in files(data).items()}
    return {process: sum(1 for _ in each.snapshot.edges(find(each, "kept"))) for process, each in held.items()}


def test_a_live_cut_has_the_heap_of_each_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = record_program(tmp_path, PROGRAM)

    code, data = cut(capsys, str(group), "--live-cut", "three", "--heap", str(tmp_path / "heaps"))

    assert code == 0
    assert set(files(data)) == {1, 2}
    assert lengths(data) == {1: 4, 2: 3}


def test_heap_and_diff_take_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = record_program(tmp_path, PROGRAM)
    _, early = cut(capsys, str(group), "--live-cut", "three", "--heap", str(tmp_path / "three"))
    _, late = cut(capsys, str(group), "--heap", str(tmp_path / "end"))

    assert main(["heap", str(files(early)[2]), "--of", "kept", "--json"]) == 0
    assert main(["diff", str(files(early)[1]), str(files(late)[1]), "--json"]) in (0, 1)
    assert "kept" in capsys.readouterr().out


def test_a_process_that_had_not_begun_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = record_program(tmp_path, PROGRAM)

    _, data = cut(capsys, str(group), "1@1", "--heap", str(tmp_path / "heaps"))

    assert list(files(data)) == [1]


def test_a_running_group_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM)
    command = tool.record(sys.executable, tmp_path / "made", ["prog.py", "waits"], options=CHILDREN)
    group = tmp_path / "made.rdbgs"
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as launcher:
        assert launcher.stdin is not None
        assert launcher.stdout is not None
        launcher.stdout.readline()
        wait_until(lambda: all(process.recording for process in read_group(group).processes))
        code, data = cut(capsys, str(group), "--now", "--heap", str(tmp_path / "heaps"))
        launcher.stdin.write(b"\n")
        launcher.stdin.close()
        assert launcher.wait(60) == 0
    completed(group)

    assert code == 0
    assert lengths(data) == {1: 4, 2: 3}


@pytest.mark.parametrize("words", [["--live", "--heap", "x"], ["--heap", "made.rdbgs/group.json"]])
def test_a_bad_use_gets_one_sentence(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = record_program(tmp_path, PROGRAM)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()

    code = main(["cut", str(group), *words])

    written = capsys.readouterr()
    assert (code, len(written.err.splitlines())) == (2, 1)
