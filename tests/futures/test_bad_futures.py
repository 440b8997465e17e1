"""What `futures` cannot do, it says in one sentence; and where nothing can differ, it runs one."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.futures.made import LOST_UPDATE, TIMEOUT, Ground, environment
from tests.harness import tool
from tests.harness.process import run
from tests.harness.small_disk import small_disk

pytestmark = pytest.mark.slow

_TEXT = "import time\ntime.monotonic()\nprint('one')\ntime.sleep(0.001)\nprint('two')\n"


def refusal(ground: Ground, *words: str) -> str:
    """Return the sentence with which it refuses."""
    finished = ground.replaydbg("futures", "one.rdbg", *words)
    assert finished.status == 2 and finished.stdout == b"", finished
    assert b"Traceback" not in finished.stderr
    return finished.stderr.decode().strip()


def test_bad_options(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, _TEXT)
    at = ("--at", str(ground.event("time.monotonic")))

    assert refusal(ground, *at, "-n", "0") == "replaydbg: N must be at least 1 (got 0)"
    assert "--jobs must be at least 1 (got 0)" in refusal(ground, *at, "--jobs", "0")
    assert "--timeout must be a number of seconds above 0" in refusal(ground, *at, "--timeout", "nan")
    assert "--seed must be from 0" in refusal(ground, *at, "--seed", "-1")
    assert refusal(ground, *at, "--curve", "-n", "0") == "replaydbg: N must be at least 1 (got 0)"
    assert "--depth must be at least 1 (got 0)" in refusal(ground, *at, "--depth", "0")
    assert "--systematic must be at least 0 (got -1)" in refusal(ground, *at, "--systematic", "-1")
    assert "--at must be an event" in refusal(ground, "--at", "12:30")
    assert "No such moment '100000'" in refusal(ground, "--at", "100000")
    assert "--no-fence cannot be used here" in refusal(ground, *at, "--no-fence")
    assert not (tmp_path / "store").exists()


def test_where_nothing_can_differ_one_is_run(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, _TEXT)

    finished = ground.replaydbg("futures", "one.rdbg", "--at", str(ground.event("time.monotonic")), "-n", "50")

    lines = finished.stdout.decode().splitlines()
    assert finished.status == 0 and lines[0].startswith("1 future of one.rdbg after event "), finished
    why = "no threads were switched, no random numbers drawn, and no event loop ran."
    assert f"Every future is the same, 1 was run: {why}" in lines


def test_random_numbers_can_differ(tmp_path: Path) -> None:
    text = "import random, time\ntime.monotonic()\nraise SystemExit(random.Random().random() < 0.5)\n"
    ground = Ground.make(tmp_path, text, status=None)

    found = ground.futures(ground.event("time.monotonic"), 32)

    assert not found["is_fixed"] and found["futures"] == 32
    assert found["failed"] > 0 and found["passed"] > 0


def test_a_program_that_has_ended_has_no_futures(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, "import os\nos._exit(0)\n")

    assert "No such moment" in refusal(ground, "--at", "@end") or "makes no call after" in refusal(
        ground, "--at", "@end"
    )


def test_a_process_of_a_group_is_refused(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os, time\nif os.fork() == 0: os._exit(0)\nos.wait()\ntime.time()\n")
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "one.rdbg", "program.py"]
    assert run(command, cwd=tmp_path, env=environment(tmp_path), timeout=TIMEOUT).status == 0
    ground = Ground(tmp_path, 0)
    name = next(path.relative_to(tmp_path) for path in tmp_path.rglob("*1.rdbg") if path.is_file())

    finished = ground.replaydbg("futures", str(name), "--at", "@start")

    assert finished.status == 2 and b"one process of a group" in finished.stderr, finished


def test_a_durable_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_TEXT)
    command = tool.record(sys.executable, Path("one.rdbg"), ["program.py"], ["--durable"])
    assert run(command, cwd=tmp_path, env=environment(tmp_path), timeout=TIMEOUT).status == 0

    assert "it was made with --durable" in refusal(Ground(tmp_path, 0), "--at", "@start")


def test_what_the_program_changed_is_not_answered_as_before(tmp_path: Path) -> None:
    text = """import os, signal, time
def stop(*_): raise SystemExit(0)
signal.signal(signal.SIGALRM, stop)
signal.alarm(1)
assert not os.path.exists("made")
with open("made", "w") as file:
    file.write("x")
time.sleep(60)
assert os.path.exists("made") and open("made").read() == "x"
"""
    ground = Ground.make(tmp_path, text)

    group = ground.one(ground.event("time.sleep"))

    assert group["verdict"] == "passed", group


def test_a_full_disk_costs_recordings_and_not_the_answer(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, LOST_UPDATE, status=None)
    with small_disk(tmp_path / "small", "3m"):
        finished = ground.replaydbg(
            "futures", "one.rdbg", "--at", str(ground.first_thread()), "-n", "100", "--keep", "all", "-o", "small/kept"
        )
        left = [each for each in (tmp_path / "small" / "kept").iterdir() if not each.is_file()]
        kept = list((tmp_path / "small" / "kept").glob("*.rdbg"))
        replayed = [ground.replay(f"small/kept/{each.name}").status for each in kept]

    text = finished.stdout.decode()
    assert text.startswith("100 futures of "), finished
    assert re.search(r"Recordings are missing: .*No space left on device\)?\.\n", text), text
    assert left == [] and 0 < len(kept) < 100 and set(replayed) <= {0, 1}


def test_a_full_disk_costs_recordings_of_faults_and_not_the_table(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, "import time\ntime.monotonic()\nopen('new', 'w').write('x')\n")
    with small_disk(tmp_path / "small", "4k"):
        finished = ground.replaydbg(
            "futures", "one.rdbg", "--at", "1", "--faults", "open:EACCES", "--json", "-o", "small/kept"
        )

    found = json.loads(finished.stdout)
    assert found["failed"] > 0 and found["unkept"] == "No space left on device", found
    assert {each["recording"] for each in found["trials"]} == {None}
