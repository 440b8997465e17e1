"""Snapshots taken during a recording: they are in the recording, and the program is unaffected."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replaydbg.debugger import Session
from replaydbg.errors import NoSuchMoment, UsageError
from replaydbg.heap.snapshot import Snapshot
from replaydbg.heap.storage.recorded_snapshots import load_stored, snapshots_of, stored_snapshots
from replaydbg.log.reader import open_recording
from replaydbg.record.snapshot_orders import parse_every, parse_signal
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until

PROGRAM = Path(__file__).parents[2] / "fixtures" / "heap" / "asks_for_snapshots.py"


def tool(*words: str, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replaydbg", *words]
    done = subprocess.run(
        command, cwd=cwd, env=without_steering(os.environ), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == status, done.stderr
    return done


def record(
    folder: Path, *options: str, program: Path = PROGRAM, arguments: tuple[str, ...] = (), status: int = 0
) -> Path:
    path = folder / "x.rdbg"
    tool("record", "-q", "-o", str(path), *options, "--", str(program), *arguments, cwd=folder, status=status)
    return path


def loaded(path: Path) -> list[Snapshot]:
    with open_recording(path) as recording:
        assert not recording.problems
        return [load_stored(recording, taken.number) for taken in stored_snapshots(recording)]


def end_of(path: Path) -> dict[str, Any]:
    with open_recording(path) as recording:
        assert recording.end is not None
        return dict(recording.end.raw)


def addresses(snapshot: Snapshot, kind: str) -> dict[int, int]:
    return {
        snapshot.address[node]: snapshot.since[node]
        for node in range(len(snapshot))
        if snapshot.type_name(node) == kind
    }


def test_the_program_names_its_snapshots(tmp_path: Path) -> None:
    before, half, everything = loaded(record(tmp_path))

    assert [each.taken.name for each in (before, half, everything)] == ["before", "half", "all"]
    assert {each.taken.reason for each in (before, half, everything)} == {"named"}
    assert before.taken.event <= half.taken.event <= everything.taken.event
    assert 0 < before.taken.time_ns < everything.taken.time_ns
    kind = "__main__.Request"
    assert [len(addresses(each, kind)) for each in (before, half, everything)] == [0, 30, 59]


def test_objects_are_known_in_all_snapshots_of_a_run(tmp_path: Path) -> None:
    _, half, everything = loaded(record(tmp_path))

    assert half.taken.run == everything.taken.run != ""
    earlier, later = (addresses(each, "__main__.Request") for each in (half, everything))
    same = {address for address, since in later.items() if address in earlier and since <= half.taken.number}
    assert len(same) == 29


def test_one_that_was_cut_says_so(tmp_path: Path) -> None:
    path = record(tmp_path, "--snapshot-objects", "20")

    assert all(len(each) <= 20 and each.cut for each in loaded(path))
    assert all(each["is_cut"] for each in end_of(path)["snapshots"]["listed"])
    assert (
        "must be at least 1 (got -1)"
        in tool("record", "--snapshot-objects", "-1", str(PROGRAM), cwd=tmp_path, status=2).stderr
    )


def test_replays_do_not_know_of_them(tmp_path: Path) -> None:
    path = record(tmp_path, "--snapshot-every", "20", "--snapshot-at-exceptions", arguments=("fail",), status=1)

    assert len(snapshots_of(path)) >= 5
    for _ in range(2):
        tool("replay", "-q", str(path), cwd=tmp_path, status=1)


def test_the_output_is_that_of_a_run_without_them(tmp_path: Path) -> None:
    def output(*options: str) -> str:
        done = tool("record", "-q", "-o", "x.rdbg", *options, "--", str(PROGRAM), cwd=tmp_path)
        (tmp_path / "x.rdbg").unlink()
        return re.sub("0x[0-9a-f]+|[0-9]{13,}", "N", done.stdout)

    assert output() == output("--snapshot-every", "10")
    plain = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=True, timeout=60).stdout
    assert plain.startswith("no children\n59 True True ")


def test_one_is_taken_when_an_exception_ends_the_program(tmp_path: Path) -> None:
    path = record(tmp_path, "--snapshot-at-exceptions", arguments=("fail",), status=1)

    last = loaded(path)[-1]
    assert (last.taken.reason, last.taken.name) == ("exception", "LookupError")
    (root,) = (each for each in last.roots if each.label == "exception")
    assert last.type_name(root.node) == "builtins.LookupError"


def test_one_is_taken_when_an_exception_ends_a_thread(tmp_path: Path) -> None:
    path = record(tmp_path, "--snapshot-at-exceptions", program=PROGRAM.with_name("fails_in_threads.py"))

    snapshots = loaded(path)
    assert [each.taken.name for each in snapshots] == ["LookupError", "KeyError", "ValueError"]
    assert {each.taken.reason for each in snapshots} == {"exception"}
    for each in snapshots:
        (root,) = (root for root in each.roots if root.label == "exception")
        assert each.type_name(root.node) == f"builtins.{each.taken.name}"
    for _ in range(2):
        tool("replay", "-q", str(path), cwd=tmp_path)


def test_they_are_taken_every_so_many_events(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import time\nkept = []\nfor i in range(2000):\n    kept.append(time.time())\n")
    path = record(tmp_path, "--snapshot-every", "500", program=program)

    taken = snapshots_of(path)
    told = end_of(path)["snapshots"]
    assert taken
    assert all(each.reason == "interval" for each in taken)
    assert taken[0].event % 500 == 0
    assert len(taken) + told["left_out"] == end_of(path)["events"] // 500
    assert told["failed"] == 0
    assert [each["number"] for each in told["listed"]] == [each.number for each in taken]


def test_they_are_left_out_where_they_cost_too_much(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import time\nkept = [[i] for i in range(100_000)]\nbegan = time.perf_counter()\n"
        "while time.perf_counter() < began + 1: sum(range(1000))\n"
    )
    path = record(tmp_path, "--snapshot-every", "5ms", program=program)

    told = end_of(path)["snapshots"]
    assert told["left_out"] > 10
    # The first one shows the cost, and the heap may have grown since.
    assert 1 <= len(told["listed"]) <= 4


def test_one_is_taken_at_a_signal(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time\nprint(os.getpid(), flush=True)\nopen('ready', 'w').close()\n"
        "while not os.path.exists('go'): time.sleep(0.005)\n"
    )
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "x.rdbg", "--snapshot-at-signal", "usr2"]
    running = subprocess.Popen(
        [*command, "--", str(program)],
        cwd=tmp_path,
        env=without_steering(os.environ),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdout is not None
        os.kill(int(running.stdout.readline()), signal.SIGUSR2)
        live = tmp_path / "x.rdbgs" / "1.rdbg-live"
        wait_until(lambda: list(live.glob("heap/0*[0-9]")))
        (tmp_path / "go").touch()
        assert running.wait(timeout=30) == 0
    finally:
        running.kill()
        running.communicate()
    assert not live.exists()
    assert [each.reason for each in snapshots_of(tmp_path / "x.rdbg")] == ["signal"]
    tool("replay", "-q", "x.rdbg", cwd=tmp_path)


def test_many_at_once_are_all_there(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import replaydbg\nfor i in range(40): replaydbg.snapshot(f'number {i}')\n")
    path = record(tmp_path, program=program)

    assert [each.name for each in snapshots_of(path)] == [f"number {i}" for i in range(40)]
    assert end_of(path)["snapshots"]["failed"] == 0


def test_threads_and_their_frames_are_in_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import threading, replaydbg\ngo, ready = threading.Event(), threading.Event()\n"
        "def work(kept):\n    ready.set(); go.wait()\n"
        "t = threading.Thread(target=work, args=(['kept'],)); t.start(); ready.wait()\n"
        "replaydbg.snapshot('x'); go.set(); t.join()\n"
    )
    (snapshot,) = loaded(record(tmp_path, program=program))

    assert [each.label for each in snapshot.roots if "work()" in each.label] == [
        "thread 1 (Thread-1 (work)): work() line 4"
    ]


def test_the_debugger_goes_to_the_moment_of_one(tmp_path: Path) -> None:
    path = record(tmp_path)
    with Session(path) as session:
        assert [each.name for each in session.heap.taken] == ["before", "half", "all"]
        here = session.seek("@#2")
        stored, live = session.heap.stored(2), session.heap.at("@#2")
        with pytest.raises(NoSuchMoment):
            session.heap.stored(4)
        with pytest.raises(NoSuchMoment):
            session.seek("@#4")

    assert here.moment.event == stored.taken.event
    assert [frame.function for frame in here.stack[:2]] == ["_take_snapshot", "snapshot"]
    kind = "__main__.Request"
    assert len(addresses(stored, kind)) == len(addresses(live, kind)) == 30
    assert stored.roots[0].label.startswith("thread 0 (MainThread): _take_snapshot() line ")
    assert [root.label for root in stored.roots] == [root.label for root in live.roots]
    assert len(stored) == len(live)


def test_the_moment_of_a_consistent_one_is_behind_its_callbacks(tmp_path: Path) -> None:
    text = """import os, replaydbg
paused = []
@replaydbg.quiesce
def pause():
    os.getpid()
    paused.append(1)
replaydbg.snapshot("here", quiesce=True)
"""
    (tmp_path / "paused.py").write_text(text)

    with Session(record(tmp_path, program=tmp_path / "paused.py")) as session:
        here = session.seek("@#here")
        stored, live = session.heap.stored(1), session.heap.at("@#here")

    assert stored.taken.reason == "consistent"
    assert here.stack[0].function == "_take_snapshot"
    assert [root.label for root in stored.roots] == [root.label for root in live.roots]


def test_it_does_nothing_without_a_recording() -> None:
    code = "import replaydbg as r, sys; r.snapshot('x'); print([n for n in sys.modules if n.startswith('replaydbg')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert json.loads(done.stdout.replace("'", '"')) == ["replaydbg"]


def test_distances_and_signals_are_understood() -> None:
    assert parse_every("500") == (500, 0)
    assert parse_every("200ms") == (0, 200_000_000)
    assert parse_every("2s") == (0, 2_000_000_000)
    assert parse_signal("usr2") == parse_signal("SIGUSR2") == signal.SIGUSR2
    for wrong in ("", "0", "-1", "1.5s", "ms", "x", "9" * 40):
        with pytest.raises(UsageError):
            parse_every(wrong)
    with pytest.raises(UsageError):
        parse_signal("nothing")
