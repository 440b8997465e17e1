"""All calls of a run for viewers of timelines: Perfetto's complete events, and speedscope's evented profiles."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering

pytestmark = pytest.mark.slow

PROGRAM = """import threading
def inner(n): return n
def outer(n):
    return inner(n) + inner(n + 1)
def numbers():
    yield outer(1)
    yield outer(2)
def work():
    return list(numbers())
thread = threading.Thread(target=work, name="worker")
thread.start(); thread.join()
print(work())
"""


def _command(folder: Path, *words: str) -> Finished:
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=env, timeout=60)


def _exported(folder: Path, viewer: str) -> dict[str, Any]:
    (folder / "program.py").write_text(PROGRAM)
    assert _command(folder, "record", "-q", "-o", "one.rdbg", "program.py").status == 0
    finished = _command(folder, "export", f"--{viewer}", "calls.json", "--json", "one.rdbg")
    assert finished.status == 0, finished.stderr.decode()
    said, found = json.loads(finished.stdout), (folder / "calls.json").read_bytes()
    assert (said["file"], said["bytes"], said["is_whole"]) == ("calls.json", len(found), True) and said["calls"] > 100
    data: dict[str, Any] = json.loads(found)
    return data


def test_perfetto_has_a_track_for_each_thread(tmp_path: Path) -> None:
    events = _exported(tmp_path, "perfetto")["traceEvents"]

    names = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    own = [each for each in events if each["ph"] == "X" and each["args"]["place"].startswith("program.py")]
    for thread in ("MainThread", "worker"):
        calls = [each["name"] for each in own if names[each["tid"]] == thread and each["name"] != "<module>"]
        assert calls.count("inner") == 4 and calls.count("outer") == 2 and calls.count("work") == 1
        # It goes on once after each value.
        assert calls.count("numbers") == 3
    assert {each["cat"] for each in own if each["name"] == "numbers"} == {"call", "goes on"}
    assert all(each["dur"] >= 0 and ":" in each["args"]["moment"] for each in own)


def test_speedscope_opens_and_closes_calls_in_pairs(tmp_path: Path) -> None:
    data = _exported(tmp_path, "speedscope")

    assert [each["name"] for each in data["profiles"]] == ["MainThread (lines)", "worker (lines)"]
    for profile in data["profiles"]:
        stack, at = [], profile["startValue"]
        for event in profile["events"]:
            assert at <= event["at"] <= profile["endValue"]
            at = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
        assert stack == []
    frames = {each["name"]: each for each in data["shared"]["frames"]}
    assert (frames["inner"]["file"], frames["inner"]["line"]) == ("program.py", 2)


def test_a_long_run_has_its_own_calls(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import json\ndef own(n): return json.dumps(n)\nfor n in range(30_000): own(n)\n"
    )
    assert _command(tmp_path, "record", "-q", "-o", "one.rdbg", "program.py").status == 0

    finished = _command(tmp_path, "export", "--perfetto", "calls.json", "one.rdbg")

    found = json.loads((tmp_path / "calls.json").read_text())["traceEvents"]
    assert sum(each["name"] == "own" for each in found) == 30_000
    assert finished.stdout == b"calls.json\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--perfetto", "a", "--speedscope", "b"], b"--perfetto and --speedscope cannot be combined"),
        (["--perfetto", "a", "--at", "@end"], b"--perfetto cannot be combined with --at"),
        (["--speedscope", "missing/a"], b"cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_written_is_said(words: list[str], sentence: bytes, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print()")
    assert _command(tmp_path, "record", "-q", "-o", "one.rdbg", "program.py").status == 0

    finished = _command(tmp_path, "export", *words, "one.rdbg")

    assert finished.status == 2 and sentence in finished.stderr
