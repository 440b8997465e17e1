"""`resume` refuses a recording that was already resumed: everything would be done twice."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.surroundings import without_steering
from tests.recovery.killed_groups import record_killed, replaydbg
from tests.resume.going_on import KILLED, own_events, record_in, resume_in, run_in
from tests.resumes.group_rounds import kill_group

pytestmark = pytest.mark.slow

# It has nothing open, so nothing but the headers shows that it went on; it is killed again after it was resumed.
_PROGRAM = """
import os, signal
for step in range(6):
    print(step, flush=True)
    if step % 2 and step < 5:
        if os.path.exists("kills-parent"):
            os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
"""
# The pipe that the child waits for, and its parent's wait for a line, are where the group goes on.
_GROUP = """
import os, sys
reader, writer = os.pipe()
if os.fork() == 0:
    os.read(reader, 1)
    os._exit(0)
open("ready", "w").close()
sys.stdin.readline()
print("went on", flush=True)
os.write(writer, b"x")
os.wait()
sys.stdin = open("/dev/zero")
while True:
    sys.stdin.read(1)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a recording `one`, and `one-on`, in which its program went on and was killed again."""
    (tmp_path / "program.py").write_text(_PROGRAM)
    assert record_in(tmp_path, "one").status in KILLED
    assert resume_in(tmp_path, "one", "--in-flight=skip").status in KILLED
    return tmp_path


def test_the_newest_continuation_is_named(folder: Path) -> None:
    assert resume_in(folder, "one-on", "--in-flight=skip").stdout == b"4\n5\n"

    first, second = resume_in(folder, "one"), resume_in(folder, "one-on")

    for name, refused in (("one", first), ("one-on", second)):
        advice = "resume that one (--force would do everything since then twice)"
        reason = f"it was already resumed, as 'one-on-on.rdbg': {advice}"
        assert refused.status == 2
        assert f"Cannot resume '{name}.rdbg': {reason}.\n" in refused.stderr.decode()


def test_the_newest_one_can_be_resumed(folder: Path) -> None:
    assert resume_in(folder, "one-on", "--in-flight=skip").stdout == b"4\n5\n"


def test_info_shows_each_resumption(folder: Path) -> None:
    resume_in(folder, "one-on", "--in-flight=skip")
    info = [sys.executable, "-m", "replaydbg", "info"]

    shown = run_in(folder, [*info, "one-on-on.rdbg"]).stdout.decode()

    lines = [each for each in shown.splitlines() if each.startswith("resumed:")]
    of = [re.fullmatch(r"resumed: +from (.*), after event ([0-9]+), [0-9-]+T[0-9:]+Z", each) for each in lines]
    lasts = [own_events(folder / f"{name}.rdbg")[-1] + 1 for name in ("one", "one-on")]
    assert [(each[1], int(each[2])) for each in of if each] == list(zip(("one", "one-on"), lasts, strict=True)), shown
    assert "resumed:" not in run_in(folder, [*info, "one.rdbg"]).stdout.decode()


def test_force_resumes_it_again(folder: Path) -> None:
    (folder / "one-on.rdbg").rename(folder / "first.rdbg")

    assert resume_in(folder, "one", "--in-flight=skip", "--force").stdout == b"2\n3\n"


def test_another_moment_resumes_it_again(folder: Path) -> None:
    (folder / "one-on.rdbg").rename(folder / "first.rdbg")
    last = own_events(folder / "one.rdbg")[-1]

    assert b"already resumed" not in resume_in(folder, "one", f"--at={last}").stderr


def test_one_in_the_store_is_found(folder: Path) -> None:
    (folder / "store").mkdir()
    (folder / "one-on.rdbg").rename(folder / "store" / "run-7.rdbg")

    assert b"already resumed, as 'run-7': " in resume_in(folder, "one").stderr


def test_a_live_directory_of_the_same_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    assert record_in(tmp_path, "one").status in KILLED
    (tmp_path / "kills-parent").touch()
    assert resume_in(tmp_path, "one", "--in-flight=skip").status in KILLED
    (tmp_path / "one-on.rdbg-live").rename(tmp_path / "one.rdbg-live")

    assert b"already resumed, as 'one.rdbg-live': " in resume_in(tmp_path, "one").stderr


def test_one_that_runs_is_not_resumed_beside_it(tmp_path: Path) -> None:
    waits = "if os.path.exists('resumed'):\n    print(os.getpid(), flush=True)\n    sys.stdin.read()\n"
    (tmp_path / "program.py").write_text(f"import os, sys\nos.kill(os.getpid(), 9)\n{waits}")
    assert record_in(tmp_path, "one").status in KILLED
    (tmp_path / "resumed").touch()
    command = [sys.executable, "-m", "replaydbg", "resume", "-q", "--in-flight=skip", "-o", "two", "one.rdbg"]
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        # The recording itself is locked meanwhile; a copy of it is not.
        shutil.copy(tmp_path / "one.rdbg", tmp_path / "copy.rdbg")
        refused = resume_in(tmp_path, "copy")
        planned = run_in(tmp_path, [sys.executable, "-m", "replaydbg", "resume", "--plan", "one.rdbg"])
        running.communicate(timeout=60.0)

    assert b"Cannot resume 'copy.rdbg': its program is running again, as 'two' (process " in refused.stderr
    assert b"  resumed    its program is running again, as 'two' (process " in planned.stdout


def test_the_plan_names_it(folder: Path) -> None:
    words = [sys.executable, "-m", "replaydbg", "resume", "--plan", "one.rdbg"]

    assert b"  resumed    it was already resumed, as 'one-on.rdbg'" in run_in(folder, words).stdout
    assert json.loads(run_in(folder, [*words, "--json"]).stdout)["resumed_as"] == "one-on.rdbg"


def test_a_group_is_refused_as_well(tmp_path: Path) -> None:
    record_killed(tmp_path, _GROUP)
    command = [sys.executable, "-m", "replaydbg", "resume", "-q", "-o", "two", "one.rdbgs"]
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"went on\n"
    kill_group(tmp_path / "two.rdbgs")
    process.communicate(timeout=60.0)

    refused = replaydbg(tmp_path, "resume", "one.rdbgs")
    planned = replaydbg(tmp_path, "resume", "one.rdbgs", "--plan")

    assert refused.status == 2
    assert b"Cannot resume 'one.rdbgs': it was already resumed, as 'two.rdbgs': " in refused.stderr
    assert b"  resumed    it was already resumed, as 'two.rdbgs'" in planned.stdout
