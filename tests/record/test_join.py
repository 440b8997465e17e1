"""`record --join` records a program that is started separately as a process of a group that is being recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.group import ORDERS, WAKE, Group, GroupProcess, read_group, wake_sealer
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.children import completed
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.waiting import process_fields, wait_until

pytestmark = pytest.mark.slow

SERVER = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
for _ in range(int(sys.argv[1])):
    end, _ = server.accept()
    with end:
        end.sendall(b"to " + end.recv(100))
print("served", flush=True)
"""
CLIENT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as end:
    end.sendall(sys.argv[2].encode())
    print(end.recv(100).decode())
sys.exit(int(sys.argv[2]))
"""


def environment(tmp_path: Path) -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ.get("PATH", os.defpath), "REPLAYDBG_STORE": str(tmp_path / "store")}


def join(tmp_path: Path, group: str, *words: str, options: tuple[str, ...] = ()) -> list[str]:
    return [sys.executable, "-m", "replaydbg", "record", "--join", group, *options, "--", *words]


def joined(tmp_path: Path, group: str, *words: str, options: tuple[str, ...] = ()) -> Outcome:
    return run(join(tmp_path, group, *words, options=options), cwd=tmp_path, env=environment(tmp_path))


def started(tmp_path: Path, group: str, *words: str) -> subprocess.Popen[str]:
    """Start a launcher whose program joins."""
    command = join(tmp_path, group, *words)
    return subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True)


def line(launcher: subprocess.Popen[str]) -> str:
    """Wait for the next line of its program."""
    assert launcher.stdout is not None
    return launcher.stdout.readline()


@contextmanager
def recorded(tmp_path: Path, source: str, *arguments: str, children: str = "python") -> Iterator[tuple[int, str]]:
    """Record a program as the first of a group, in the block; yields the launcher's process id and its first line."""
    (tmp_path / "server.py").write_text(source)
    (tmp_path / "client.py").write_text(CLIENT)
    command = tool.record(sys.executable, tmp_path / "r", ["server.py", *arguments], [f"--children={children}"])
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        try:
            yield launcher.pid, launcher.stdout.readline().strip()
            launcher.wait(60)
        finally:
            launcher.kill()


def group_of(tmp_path: Path) -> Group:
    return completed(tmp_path / "r.rdbgs")


@pytest.mark.parametrize("children", ["python", "fork"])
def test_a_client_that_is_started_separately(tmp_path: Path, children: str) -> None:
    with recorded(tmp_path, SERVER, "2", children=children) as (_, port):
        results = [joined(tmp_path, "r", "client.py", port, str(number)) for number in (0, 3)]

    assert [(each.status, each.stdout) for each in results] == [(0, "to 0\n"), (3, "to 3\n")]
    for number, each in zip((2, 3), results, strict=True):
        assert f"r.rdbgs/{number}.rdbg" in each.stderr
        assert "to replay it: replaydbg replay " in each.stderr
    group = group_of(tmp_path)
    rows = [(each.how, each.parent, each.status, each.recording) for each in group.processes]
    assert rows == [
        ("program", 0, 0, "1.rdbg"),
        ("joined", 0, 0, "2.rdbg"),
        ("joined", 0, 3, "3.rdbg"),
    ]
    opened = OpenedGroup(tmp_path / "r.rdbgs")
    found = [opened.matching.match(each) for each in opened.matching.channels if each.kind == "tcp"]
    assert [(each.channel.senders, each.channel.receivers) for each in found] == [
        ((2,), (1,)),
        ((1,), (2,)),
        ((3,), (1,)),
        ((1,), (3,)),
    ]
    assert not any(each.lost or each.from_nowhere or each.contradiction for each in found)
    listed = command(tmp_path, "ps", "--json", "r")
    assert [each["how"] for each in json.loads(listed.stdout)["processes"]] == ["program", "joined", "joined"]
    replayed = command(tmp_path, "replay", "-q", "r/3")
    assert (replayed.status, replayed.stdout) == (3, "to 3\n"), replayed.stderr
    together = command(tmp_path, "replay", "-q", "r")
    assert (together.status, together.stderr) == (0, "")
    assert "served\n" in together.stdout


def command(tmp_path: Path, *words: str) -> Outcome:
    return run([sys.executable, "-m", "replaydbg", *words], cwd=tmp_path, env=environment(tmp_path))


def test_forms_of_programs(tmp_path: Path) -> None:
    """A module with options of the interpreter, and a command; of a group in the store, by its name and as latest."""
    (tmp_path / "waits.py").write_text("print(1, flush=True)\ninput()\n")
    (tmp_path / "shown.py").write_text("import sys, os\nprint(sys.argv[1:], sys.flags.optimize, sys.orig_argv[1:])\n")
    first = [sys.executable, "-m", "replaydbg", "record", "-q", "--children=fork", "waits.py"]
    with subprocess.Popen(
        first, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdin is not None and launcher.stdout is not None
        launcher.stdout.readline()
        module = joined(tmp_path, "run-1", "-O", "-m", "shown", "a")
        code = joined(tmp_path, "latest", "-c", "import os; print(os.getpid())", options=("-q",))
        facts = joined(tmp_path, "run-1/1", "shown.py", options=("--json",))
        launcher.stdin.write("x\n")
    group = completed(tmp_path / "store" / "run-1.rdbgs")

    assert module.stdout == "['a'] 1 ['-O', '-m', 'shown', 'a']\n", module.stderr
    assert (code.status, code.stderr, int(code.stdout)) == (0, "", group.processes[2].pid)
    assert json.loads(facts.stderr)["path"].endswith("run-1.rdbgs/4.rdbg")
    assert [each.how for each in group.processes] == ["program", "joined", "joined", "joined"]
    replayed = command(tmp_path, "replay", "-q", "run-1/2")
    assert (replayed.status, replayed.stdout) == (0, module.stdout), replayed.stderr


FORKS = """
import os, subprocess, sys
if os.fork() == 0:
    print("child", flush=True)
    os._exit(0)
os.wait()
subprocess.run([sys.executable, "-c", "print('program')"], check=True)
"""


@pytest.mark.parametrize(("children", "expected"), [("python", "python"), ("fork", "other")])
def test_children_of_a_joined_program_are_recorded_as_the_groups(tmp_path: Path, children: str, expected: str) -> None:
    (tmp_path / "forks.py").write_text(FORKS)
    with recorded(tmp_path, SERVER, "1", children=children) as (_, port):
        done = joined(tmp_path, "r", "forks.py")
        joined(tmp_path, "r", "client.py", port, "0")

    assert done.stdout == "child\nprogram\n", done.stderr
    rows = [(each.how, each.parent) for each in group_of(tmp_path).processes]
    assert rows == [("program", 0), ("joined", 0), ("fork", 2), (expected, 2), ("joined", 0)]


def test_several_programs_join_at_once(tmp_path: Path) -> None:
    count = 6
    with recorded(tmp_path, SERVER, str(count)) as (_, port):
        launchers = [started(tmp_path, "r", "client.py", port, str(number)) for number in range(count)]
        answers = [each.communicate(timeout=100) for each in launchers]

    assert [each.returncode for each in launchers] == list(range(count)), answers
    group = group_of(tmp_path)
    assert [each.number for each in group.processes] == list(range(1, count + 2))
    assert sorted(each.status for each in group.processes[1:] if each.status is not None) == list(range(count))
    assert {each.how for each in group.processes[1:]} == {"joined"}
    for each in group.processes:
        with open_recording(tmp_path / "r.rdbgs" / f"{each.number}.rdbg") as recording:
            recording.check()
            assert recording.problems == ()


WAITS = """
import os, signal, sys, time
print(os.getpid(), flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""


def test_a_joined_program_outlives_the_first_one(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    go = str(tmp_path / "go")
    with recorded(tmp_path, WAITS, str(tmp_path / "first")):
        launcher = started(tmp_path, "r", "waits.py", go)
        line(launcher)
        (tmp_path / "first").touch()
    with launcher:
        assert not read_group(tmp_path / "r.rdbgs").is_complete
        third = joined(tmp_path, "r", "-c", "print('also')")
        (tmp_path / "go").touch()

    assert third.stdout == "also\n", third.stderr
    group = group_of(tmp_path)
    assert [(each.how, each.status) for each in group.processes] == [("program", 0), ("joined", 0), ("joined", 0)]


@pytest.mark.parametrize("victim", ["launcher", "program"])
def test_a_joined_program_whose_launcher_is_killed(tmp_path: Path, victim: str) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    go = tmp_path / "go"
    with recorded(tmp_path, WAITS, str(tmp_path / "first")):
        with started(tmp_path, "r", "waits.py", str(go)) as launcher:
            pid = int(line(launcher))
            os.kill(pid if victim == "program" else launcher.pid, signal.SIGKILL)
        go.touch()
        (tmp_path / "first").touch()

    group = group_of(tmp_path)
    assert [(each.how, each.status) for each in group.processes] == [
        ("program", 0),
        ("joined", -9 if victim == "program" else 0),
    ]
    assert launcher.returncode in (-9, 137)


def test_the_launcher_of_the_first_program_is_killed(tmp_path: Path) -> None:
    with recorded(tmp_path, SERVER, "1") as (pid, port):
        os.kill(pid, signal.SIGKILL)
        done = joined(tmp_path, "r", "client.py", port, "4")

    assert done.status == 4, done.stderr
    assert [(each.how, each.status) for each in group_of(tmp_path).processes] == [("program", 0), ("joined", 4)]


def test_a_program_joins_while_the_group_ends(tmp_path: Path) -> None:
    """It is a process of the group, or is not started at all."""
    outcomes = []
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        with recorded(folder, "print(1, flush=True)\n"):
            outcomes.append((folder, joined(folder, "r", "-c", "print('runs')")))

    for folder, done in outcomes:
        is_alone = (folder / "r.rdbg").exists()
        recordings = 0 if is_alone else len(group_of(folder).processes) - 1
        assert (done.stdout, recordings) in (("runs\n", 1), ("", 0)), done.stderr
        assert done.status == (0 if recordings else 2)


def refused(tmp_path: Path, group: str, *options: str) -> str:
    done = joined(tmp_path, group, "-c", "print('runs')", options=options)
    assert (done.status, done.stdout) == (2, "")
    return done.stderr


@pytest.mark.parametrize("source", ["print(1)\n", "import os\nif os.fork():\n    print(os.wait())\n"])
def test_a_group_that_has_ended(source: str, tmp_path: Path) -> None:
    with recorded(tmp_path, source):
        pass
    if not (tmp_path / "r.rdbg").exists():
        group_of(tmp_path)

    assert refused(tmp_path, "r") == (
        "replaydbg: Cannot join 'r': its recording has ended. The program was not started.\n"
    )


def test_no_group(tmp_path: Path) -> None:
    done = run(tool.record(sys.executable, tmp_path / "one.rdbg", ["-c", ""]), cwd=tmp_path, env=environment(tmp_path))
    assert done.status == 0

    assert "No recording 'nowhere'" in refused(tmp_path, "nowhere")
    assert "Cannot join './one.rdbg': its recording has ended." in refused(tmp_path, "./one.rdbg")


def test_a_recording_of_one_process(tmp_path: Path) -> None:
    with recorded(tmp_path, WAITS, str(tmp_path / "first"), children="none"):
        assert "Cannot join 'r.rdbg': it is recorded with --children=none." in refused(tmp_path, "r.rdbg")
        (tmp_path / "r.rdbg-live" / "boot").write_bytes(b"damaged")
        assert "Cannot join 'r.rdbg': its recording has ended." in refused(tmp_path, "r.rdbg")
        (tmp_path / "first").touch()


@pytest.mark.parametrize(
    "option", ["--max-size=1G", "--children=fork", "--chaos=1", "-o=x", "--keep-checkpoints", "--on-deadlock=stop"]
)
def test_options_that_are_the_groups(tmp_path: Path, option: str) -> None:
    assert "--join cannot be combined with --" in refused(tmp_path, "r", option)


def test_groups_that_nobody_can_join(tmp_path: Path) -> None:
    with recorded(tmp_path, WAITS, str(tmp_path / "first")):
        directory = tmp_path / "r.rdbgs"
        orders = json.loads((directory / ORDERS).read_text())

        (directory / ORDERS).write_text(json.dumps(orders | {"boot": "another"}))
        assert "before this one was restarted" in refused(tmp_path, "r")
        (directory / ORDERS).write_text(json.dumps({key: orders[key] for key in orders if key != "joins"}))
        assert "by another version of replaydbg" in refused(tmp_path, "r")
        (directory / ORDERS).write_text("[" * 100_000)
        assert "its files cannot be read" in refused(tmp_path, "r")
        (directory / ORDERS).write_text(json.dumps(orders))
        done = joined(tmp_path, "r", "nowhere.py")
        assert (done.status, "nowhere.py" in done.stderr) == (2, True)
        assert joined(tmp_path, "r", "-c", "print(1)").stdout == "1\n"
        (tmp_path / "first").touch()
    assert len(group_of(tmp_path).processes) == 2


def test_a_group_whose_sealer_was_killed(tmp_path: Path) -> None:
    with recorded(tmp_path, WAITS, str(tmp_path / "first")) as (launcher, _):
        (sealer,) = [pid for pid in _processes() if _parent(pid) == launcher and _session(pid) == pid]
        os.kill(sealer, signal.SIGKILL)
        wait_until(lambda: not wake_sealer(tmp_path / "r.rdbgs"))

        assert "the process that seals its recordings has ended" in refused(tmp_path, "r")
        (tmp_path / "first").touch()
    assert (tmp_path / "r.rdbg").exists()


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _parent(pid: int) -> int:
    try:
        return int(process_fields(pid)[1])
    except OSError:
        return 0


def _session(pid: int) -> int:
    try:
        return int(process_fields(pid)[3])
    except OSError:
        return 0


def test_a_row_has_a_status_when_its_launcher_knows_it(tmp_path: Path) -> None:
    """A program that a signal ends does not report its end itself."""
    with recorded(tmp_path, WAITS, str(tmp_path / "first")):
        done = joined(tmp_path, "r", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
        (tmp_path / "first").touch()

    assert done.status == 128 + signal.SIGTERM
    row: GroupProcess = group_of(tmp_path).processes[1]
    assert row.status == -signal.SIGTERM
    assert row.status_from in ("parent", "system")  # whichever came first


def test_a_sealer_that_ends_at_this_moment_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / WAKE)
    reader = os.open(tmp_path / WAKE, os.O_RDONLY | os.O_NONBLOCK)
    assert wake_sealer(tmp_path)
    write = os.write

    def ends_before(fd: int, data: bytes) -> int:
        os.close(reader)
        return write(fd, data)

    monkeypatch.setattr(os, "write", ends_before)
    assert not wake_sealer(tmp_path)
