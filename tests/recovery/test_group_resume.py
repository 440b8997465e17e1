"""`replaydbg resume` of a group: all processes go on from the recovery line, or none does."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from replaydbg.log.files import DataFile
from replaydbg.log.group import read_group
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.blocks import FILE_HEADER, read_block
from tests.harness.process import run
from tests.harness.surroundings import without_steering
from tests.recovery.killed_groups import record_killed, replaydbg
from tests.resumes.group_rounds import group_round

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(3))
def test_the_money_adds_up_after_all_banks_were_killed(seed: int, tmp_path: Path) -> None:
    assert group_round(seed, "bank", tmp_path, kills=2).kills <= 2


# What the last child gets are secrets by the settings of the recording alone, not by those of whoever resumes it.
_SECRETS = """import os, subprocess, sys
subprocess.run([sys.executable, "-c", ""])
open("ready", "w").close()
sys.stdin.readline()
code = "import os, sys; print(len(os.environ['DOOR']), len(sys.argv[1]))"
env = {**os.environ, "DOOR": "open".ljust(14, "!") + "sesame"}
subprocess.run([sys.executable, "-c", code, "badge-" + "7" * 9], env=env)
"""


def test_processes_that_begin_later_have_the_same_secrets(tmp_path: Path) -> None:
    wishes = {"REPLAYDBG_SECRET_NAMES": "DOOR", "REPLAYDBG_SECRET_PATTERNS": "badge-[0-9]{9}"}
    record_killed(tmp_path, _SECRETS, variables=wishes)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"20 15\n"), resumed
    with open_recording(tmp_path / "two.rdbgs" / "3.rdbg", with_secrets=False) as recording:
        data = b"".join(piece for name in recording.sections for piece in recording.pieces(name))
    assert b"DOOR" in data
    assert b"!!!!!sesame" not in data
    assert b"badge-777777777" not in data


# The child has read nothing when both are killed. The second time, there is nothing to be read from standard input.
_IN_FLIGHT = """import os, sys
reads, writes = os.pipe()
told, tell = os.pipe()
ready, begin = os.pipe()
started, start = os.pipe()
child = os.fork()
if not child:
    os.close(begin), os.close(writes), os.close(told)
    os.write(start, b"x")
    assert os.read(ready, 1) == b""  # until the parent closes it
    got = b""
    while piece := os.read(reads, 1000):
        got += piece
    os.write(tell, str(len(got)).encode())
    os._exit(7)
os.close(ready), os.close(reads), os.close(tell)
os.read(started, 1)
os.write(writes, b"12345" * 1000)
os.write(writes, b"last")
open("ready", "w").close()
sys.stdin.readline()
os.close(begin), os.close(writes)
print("the child got", os.read(told, 100).decode())
pid, status = os.waitpid(child, 0)
print("ended", pid == child, os.waitstatus_to_exitcode(status))
"""


def test_bytes_that_nobody_had_received(tmp_path: Path) -> None:
    record_killed(tmp_path, _IN_FLIGHT)

    plan = json.loads(replaydbg(tmp_path, "resume", "one", "--plan", "--json").stdout)
    shown = replaydbg(tmp_path, "resume", "one", "--plan").stdout
    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert [each["bytes"] for each in plan["in_flight"]] == [5004]
    assert b"  in flight  pipe from process 1 to process 2: 5,004 bytes\n" in shown, shown.decode()
    assert b"a pipe, whose other end is closed" not in shown
    assert re.search(rb"\n  recovery   about .* m?s \([0-9]+ events, .* of CPU time\); log size .*B\n", shown), shown
    pause = rb"\n  clock      monotonic clocks: paused for [0-9]+ s( to [0-9]+ s, by process)?\n\Z"
    assert re.search(pause, shown), shown
    members = [each["plan"]["recovery"] for each in plan["processes"]]
    assert plan["recovery"]["events"] == sum(each["events"] for each in members)
    assert plan["recovery"]["seconds"] >= max(each["seconds"] for each in members)
    assert resumed.stdout == b"the child got 5004\nended True 7\n", resumed
    assert resumed.status == 0
    replayed = replaydbg(tmp_path, "replay", "two")
    assert (replayed.status, replayed.stdout) == (0, resumed.stdout)


# A thread waits within its call until the child has read, and another one sends meanwhile.
_THREADS_SEND = """import os, sys, threading
of_one, one = os.pipe()
of_two, two = os.pipe()
reads, go = os.pipe()
done, finish = os.pipe()
ready, begin = os.pipe()
told, tell = os.pipe()
if not os.fork():
    for each in (one, two, go, begin):
        os.close(each)
    os.read(reads, 1)
    left = 65536
    while left:
        left -= len(os.read(of_one, left))
    os.write(finish, b"x")
    os.read(ready, 1)
    for each in (of_one, of_two):
        got = b""
        while piece := os.read(each, 4096):
            got += piece
        os.write(tell, b"%d of %r " % (len(got), bytes(set(got))))
    os._exit(0)
os.write(one, bytes(65536))
thread = threading.Thread(target=os.write, args=(one, b"a" * 4096))
thread.start()
os.write(two, b"b" * 4096)
os.write(go, b"x")
os.read(done, 1)
thread.join()
open("ready", "w").close()
sys.stdin.readline()
for each in (begin, one, two):
    os.close(each)
os.wait()
print(os.read(told, 100).decode())
"""


def test_bytes_of_a_thread_that_gave_way_within_its_call(tmp_path: Path) -> None:
    record_killed(tmp_path, _THREADS_SEND)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"4096 of b'a' 4096 of b'b' \n"), resumed


_OWN_GROUP = """import os, sys
reads, writes = os.pipe()
told, tell = os.pipe()
child = os.fork()
if not child:
    os.setsid()
    os.close(writes)
    os.write(tell, b"x")
    os.read(reads, 1)
    os._exit(3)
os.read(told, 1)
open("ready", "w").close()
sys.stdin.readline()
for call in (lambda: os.killpg(child, 0), lambda: os.kill(-child, 0), lambda: os.waitpid(-child, 0)):
    try:
        print(call())
    except OSError as error:
        print(type(error).__name__)
os.kill(child, 0)
os.close(writes)
print(os.waitpid(child, 0) == (child, 3 << 8))
"""


def test_a_process_group_is_not_there_and_no_other_one_is_reached(tmp_path: Path) -> None:
    record_killed(tmp_path, _OWN_GROUP)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert resumed.stdout.decode().splitlines() == [
        "ProcessLookupError",
        "ProcessLookupError",
        "ChildProcessError",
        "True",
    ], resumed


# Standard input ends at once when they go on.
_SIGNALS = """import os, signal
got = []
signal.signal(signal.SIGUSR1, lambda *args: got.append(1))
parent, children = os.getpid(), []
told, tell = os.pipe()
for _ in range(3):
    child = os.fork()
    if not child:
        os.write(tell, b"x")
        os.read(0, 1)
        os.kill(parent, signal.SIGUSR1)
        os._exit(0)
    children.append(child)
for _ in children:
    os.read(told, 1)
open("ready", "w").close()
os.read(0, 1)
print([os.waitpid(child, 0)[1] for child in children], len(got) > 0)
"""


def test_a_signal_of_one_that_is_live_already_finds_the_handler(tmp_path: Path) -> None:
    record_killed(tmp_path, _SIGNALS)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"[0, 0, 0] True\n"), resumed


_COMMITS = """import os, sqlite3, sys
if not os.fork():
    database = sqlite3.connect("rows.db", isolation_level=None)
    database.execute("create table rows (number)")
    for number in range(20):
        database.execute("insert into rows values (?)", (number,))
    open("ready", "w").close()
    os.read(0, 1)
    os._exit(0)
os.wait()
print(sqlite3.connect("rows.db").execute("select count(*) from rows").fetchall())
"""


def test_a_database_that_is_ahead_of_the_line_is_refused(tmp_path: Path) -> None:
    record_killed(tmp_path, _COMMITS)

    early = replaydbg(tmp_path, "resume", "one", "--at-cut", "2@5", "-o", "early")
    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert early.status == 2 and b"rows.db was written to after this moment, at event" in early.stderr, early
    assert (resumed.status, resumed.stdout) == (0, b"[(20,)]\n"), resumed


_WITH_FILE = """import os, sys
reads, writes = os.pipe()
told, tell = os.pipe()
if not os.fork():
    with open("out", "a") as file:
        file.write("one\\n")
        file.flush()
        os.write(tell, b"x")
        os.read(reads, 1)
    os._exit(0)
os.read(told, 1)
open("ready", "w").close()
sys.stdin.readline()
os.write(writes, b"x")
os.wait()
print("done")
"""


def test_none_goes_live_if_one_cannot(tmp_path: Path) -> None:
    record_killed(tmp_path, _WITH_FILE)
    (tmp_path / "out").write_text("On\n")

    refused = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert refused.status == 2
    assert b"out is shorter: 3 bytes, recorded 4" in refused.stderr
    assert b"Traceback" not in refused.stderr
    assert not (tmp_path / "two.rdbgs").exists() and not (tmp_path / "two.rdbg").exists()
    (tmp_path / "out").write_text("one\n")
    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")
    assert (resumed.status, resumed.stdout) == (0, b"done\n"), resumed


# Its first child has ended, and was not waited for; the second one is killed.
_ENDED = """import os, sys
told, tell = os.pipe()
first = os.fork()
if not first:
    os._exit(5)
second = os.fork()
if not second:
    os.write(tell, b"x")
    sys.stdin.readline()
    os._exit(6)
os.read(told, 1)
open("ready", "w").close()
sys.stdin.readline()
for child in (second, first):
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), os.getpid() != child)
"""


def test_a_child_that_had_ended_can_be_waited_for(tmp_path: Path) -> None:
    directory = record_killed(tmp_path, _ENDED)

    plan = replaydbg(tmp_path, "resume", "one", "--plan").stdout
    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    for line in (b"process 2: has ended\n", b"process 2 of the group, which had ended (exit code 5)\n"):
        assert line in plan, plan.decode()
    assert (resumed.status, resumed.stdout) == (0, b"6 True\n5 True\n"), resumed
    before, after = (read_group(each).processes for each in (directory, tmp_path / "two.rdbgs"))
    assert [each.status for each in before] == [-9, 5, -9]
    assert [each.status for each in after] == [0, 5, 6]
    replayed = replaydbg(tmp_path, "replay", "two")
    assert (replayed.status, replayed.stdout) == (0, resumed.stdout)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--at", "5"], "--at is for one process"),
        (["--follow", "--in-flight=skip"], "--follow is for one process"),
        (["--follow"], "--follow is for one process"),
        (["--after-power-loss"], "--after-power-loss is for one process"),
        (["--at-cut", "nowhere"], "--at-cut needs `latest`, or PROCESS@EVENT such as 2@898 or 2@end (got 'nowhere')."),
        (["--at-cut", "9@1"], "No such process in the group: 9 (recorded: 1, 2)."),
        (["--at-cut", "2@99999"], "No such moment '2@99999': process 2 has "),
    ],
)
def test_bad_input_gets_a_sentence(words: list[str], sentence: str, recorded: Path) -> None:
    refused = replaydbg(recorded, "resume", "one", *words)

    assert refused.status == 2
    assert sentence in refused.stderr.decode()
    assert b"Traceback" not in refused.stderr


def test_one_process_alone_is_refused(recorded: Path) -> None:
    refused = replaydbg(recorded, "resume", "one/2", "--in-flight=skip")

    assert refused.status == 2
    (command,) = re.findall(r"recorded together: resume the group: `replaydbg (resume .*)`", refused.stderr.decode())
    assert replaydbg(recorded, *command.split(), "--plan").stdout.startswith(b"recovery line\n")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("group")
    record_killed(folder, _WITH_FILE)
    return folder


def test_a_plan_of_somebody_elses_group_needs_no_force(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))  # another user's key

    planned = replaydbg(recorded, "resume", "one", "--plan")
    refused = replaydbg(recorded, "resume", "one", "-o", "two")

    assert (planned.status, refused.status) == (0, 2), (planned, refused)
    assert b"(--force goes on).\n  one/1\n  one/2\n" in refused.stderr


def test_a_recording_that_lacks_modules(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded / "one.rdbgs", tmp_path / "one.rdbgs")
    recording = tmp_path / "one.rdbgs" / "1.rdbg"
    with DataFile(recording) as file:
        block = read_block(file, FILE_HEADER)
        while block is not None and block.section != "world":
            block = read_block(file, block.end)
    assert block is not None
    data = bytearray(recording.read_bytes())
    data[block.end - 1] ^= 4
    recording.write_bytes(data)

    refused = replaydbg(tmp_path, "resume", "one", "--force", "--at-cut", "1@1", "-o", "two")

    assert refused.status == 1, refused
    assert b"a part of the modules that it imported is missing" in refused.stderr
    assert not (tmp_path / "two.rdbgs").exists()


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """No file gets longer than a part of what the modules take."""
    record_killed(tmp_path, f"import asyncio\n{_WITH_FILE}")
    command = f"ulimit -f 300; exec {sys.executable} -m replaydbg resume one -o two"
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}

    refused = run(["bash", "-c", command], cwd=tmp_path, env=env, timeout=60)

    assert refused.status == 2, refused
    assert b"Cannot record to" in refused.stderr and b"File too large" in refused.stderr
    assert not (tmp_path / "two.rdbgs").exists()


_WATCHED = """import os, select, signal, sys
go, ready = os.pipe()
if not (child := os.fork()):
    os.close(ready)
    os.read(go, 1)
    os._exit(7)
os.close(go)
watched = os.pidfd_open(child)
poller = select.epoll()
poller.register(watched, select.EPOLLIN)
open("ready", "w").close()
sys.stdin.readline()
print(poller.poll(0), select.select([os.pidfd_open(child)], [], [], 0))
signal.pidfd_send_signal(watched, 0)
os.close(ready)
print(poller.poll() == [(watched, select.EPOLLIN)], os.waitid(os.P_PIDFD, watched, os.WEXITED).si_status)
"""


def test_pidfds_are_those_of_the_processes_that_go_on(tmp_path: Path) -> None:
    record_killed(tmp_path, _WATCHED)

    planned = replaydbg(tmp_path, "resume", "one", "--plan")
    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")
    replayed = replaydbg(tmp_path, "replay", "two")

    assert b"a pidfd of process 2 of the group, which goes on" in planned.stdout, planned
    assert (resumed.status, resumed.stdout) == (0, b"[] ([], [], [])\nTrue 7\n"), resumed
    assert (replayed.status, replayed.stdout) == (0, resumed.stdout), replayed
