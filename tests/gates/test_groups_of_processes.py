"""A group of processes is sealed by itself, whoever ends first, and survives whoever is killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from replaydbg.log.group import read_group, size_of_group
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.sources import sources_of
from tests.harness import tool
from tests.harness.children import CHILDREN, PROGRAMS, completed
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

# The child goes on when its parent, and whoever recorded it, have ended; it forks another one then.
_OUTLIVING = """import os, sys, time
reading, writing = os.pipe()
if os.fork() == 0:
    print("child: before", flush=True)
    os.write(writing, b"x")
    os.close(1)
    os.close(2)
    open("child", "w").write(str(os.getpid()))
    while not os.path.exists("go"):
        time.sleep(0.01)
    if os.fork() == 0:
        os._exit(6)
    status = os.wait()[1]
    sys.exit(os.waitstatus_to_exitcode(status) - 1)
os.read(reading, 1)
print("parent", flush=True)
"""
_WAITS = """
while not os.path.exists("go"):
    time.sleep(0.01)
"""
_FORKS = """import os
for number in range({}):
    if os.fork() == 0:
        os._exit(number)
    os.wait()
print("parent", flush=True)
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory; a program that still waits there when the test fails is told to end."""
    yield tmp_path
    (tmp_path / "go").touch()


def test_a_child_outlives_its_parent_and_the_launcher(place: Path) -> None:
    (place / "program.py").write_text(_OUTLIVING)

    recorded = _record(place, "program.py")
    early = {each.number: each for each in read_group(place / "r.rdbgs").processes}
    live = _replay(place, "r/2")
    (place / "go").touch()
    group = completed(place / "r.rdbgs")

    assert (recorded.status, recorded.stdout) == (0, "child: before\nparent\n"), recorded.stderr
    assert (early[1].status, early[2].has_ended) == (0, False)
    assert live.stdout == "child: before\n" and live.status == tool.ENDS_EARLY, live
    assert [each.status for each in group.processes] == [0, 5, 6]
    # Nobody waited for the second process: it reported its exit code itself.
    assert [each.status_from for each in group.processes[:2]] == ["launcher", "itself"]
    assert [_replay(place, f"r/{number}").status for number in (1, 2, 3)] == [0, 5, 6]
    names = ["1.rdbg", "2.rdbg", "3.rdbg", "group.json", DIRECTORY]
    assert sorted(path.name for path in (place / "r.rdbgs").iterdir()) == names


def test_who_is_killed_keeps_all_events(place: Path) -> None:
    (place / "program.py").write_text(_OUTLIVING)
    _record(place, "program.py")

    os.kill(int(wait_until((place / "child").read_text)), signal.SIGKILL)
    child = completed(place / "r.rdbgs").processes[1]
    replayed = _replay(place, "r/2")

    # Nobody waited for it, and nobody can know how it ended, unless it was seen before it was cleared away.
    assert child.status in (-9, None), child
    assert (replayed.stdout, replayed.status) == ("child: before\n", tool.ENDS_EARLY), replayed
    if child.status is None:
        assert "how it ended is not known" in _replay(place, "r/2", quiet=False).stderr


def test_the_launcher_is_killed(place: Path) -> None:
    (place / "program.py").write_text(_OUTLIVING + _WAITS)
    launcher = _start(place)
    wait_until((place / "child").exists)

    launcher.kill()
    launcher.wait()
    (place / "go").touch()
    group = completed(place / "r.rdbgs")

    assert [each.status for each in group.processes] == [0, 5, 6]
    assert [_replay(place, f"r/{number}").status for number in (1, 2, 3)] == [0, 5, 6]


@pytest.mark.parametrize("children", [1, 2])
def test_the_launcher_is_killed_while_it_starts_the_program(children: int, place: Path) -> None:
    """The process that seals is its first child, the program the second: it has not begun then."""
    (place / "program.py").write_text(_FORKS.format(2))
    launcher = _start(place)
    wait_until(lambda: len(_children_of(launcher.pid)) >= children)
    sealer = min(_children_of(launcher.pid))

    launcher.kill()
    launcher.wait()
    wait_until(lambda: not Path(f"/proc/{sealer}").exists())

    if (place / "r.rdbgs").exists():
        group = read_group(place / "r.rdbgs")
        assert (group.is_complete, [each.status for each in group.processes]) == (True, [0, 0, 1])
        assert [_replay(place, f"r/{number}").status for number in (1, 2, 3)] == [0, 0, 1]
    else:
        assert children == 1


def test_the_process_that_seals_is_killed(place: Path) -> None:
    (place / "program.py").write_text(_OUTLIVING + _WAITS)
    launcher = _start(place)
    wait_until((place / "child").exists)
    program = read_group(place / "r.rdbgs").processes[0].pid

    for pid in _children_of(launcher.pid) - {program}:
        os.kill(pid, signal.SIGKILL)
    (place / "go").touch()
    assert launcher.wait() == 0
    group = read_group(place / "r.rdbgs")
    wait_until(lambda: read_group(place / "r.rdbgs").processes[-1].number == 3)
    wait_until(lambda: read_group(place / "r.rdbgs").processes[1].has_ended)

    assert not group.is_complete
    assert (place / "r.rdbgs" / "2.rdbg-live").is_dir()
    # The grandchild's recording is that of two others and its own, of which only the first is sealed.
    assert [_replay(place, f"r/{number}").status for number in (1, 2, 3)] == [0, 5, 6]


@pytest.mark.parametrize(
    ("name", "reason"), [(".", "is a directory"), ("", "is a directory"), ("/dev/null", "regular")]
)
def test_a_name_that_is_something_else(name: str, reason: str, place: Path) -> None:
    (place / "program.py").write_text("print(1)")
    command = [sys.executable, "-m", "replaydbg", "record", *CHILDREN, "-o", name, "program.py"]

    recorded = _run(place, command)

    assert (recorded.status, recorded.stdout) == (2, ""), recorded
    assert reason in recorded.stderr
    assert not list(place.parent.glob(f"{place.name}.*"))


def test_a_group_is_removed_while_a_child_runs(place: Path) -> None:
    (place / "program.py").write_text(_OUTLIVING)
    _record(place, "program.py")
    sealers = _sealers(place)

    refused = _run(place, [sys.executable, "-m", "replaydbg", "rm", "r"])
    removed = _run(place, [sys.executable, "-m", "replaydbg", "rm", "--force", "r"])
    (place / "go").touch()

    assert refused.status == 2 and "is still being recorded" in refused.stderr, refused
    assert removed.status == 0, removed.stderr
    assert not (place / "r.rdbgs").exists()
    assert len(sealers) == 1
    wait_until(lambda: not _sealers(place))


def test_children_beyond_the_limit_are_counted(place: Path) -> None:
    (place / "program.py").write_text(_FORKS.format(6))
    (place / "few.py").write_text(
        "import sys, replaydbg.log.group as group\nfrom replaydbg.cli.main import main\n"
        "group.MOST_PROCESSES = 3\nsys.exit(main(sys.argv[1:]))\n"
    )

    command = [sys.executable, "few.py", *tool.record(sys.executable, Path("r"), ["program.py"], options=CHILDREN)[3:]]
    recorded = _run(place, [each for each in command if each != "-q"])
    group = completed(place / "r.rdbgs")

    assert recorded.status == 0, recorded.stderr
    assert [each.number for each in group.processes] == [1, 2, 3]
    assert group.more == 4
    assert "4 processes not recorded: too many processes" in recorded.stderr
    assert _replay(place, "r/1").status == 0


def test_a_child_that_is_killed_before_it_records_anything_is_sound(place: Path) -> None:
    (place / "program.py").write_text(
        "import os, signal\n"
        "for _ in range(20):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n        signal.pause()\n"
        "    os.kill(child, signal.SIGKILL)\n    os.waitpid(child, 0)\n"
    )

    _record(place, "program.py")
    completed(place / "r.rdbgs")

    tool_words = [sys.executable, "-m", "replaydbg", "verify"]
    verified = [_run(place, [*tool_words, f"r/{number}"]) for number in range(2, 22)]
    assert [(each.status, each.stderr) for each in verified] == [(0, "")] * 20


# abort() is called when the files of the child have been made, and the child has not.
_ENDS_IN_A_FORK = """import ctypes, os, signal
library = ctypes.CDLL(None)
library.__register_atfork(library.abort, None, None, None)
launcher = os.getppid()
with open(f"/proc/{launcher}/task/{launcher}/children") as file:
    others = [launcher, *map(int, file.read().split())]
for pid in others if %r else []:
    if pid != os.getpid():
        os.kill(pid, signal.SIGKILL)
os.fork()
"""


def test_a_process_that_ends_in_a_fork_has_no_child(place: Path) -> None:
    (place / "program.py").write_text(_ENDS_IN_A_FORK % False)

    recorded = _record(place, "program.py")
    group = completed(place / "r.rdbgs")

    assert recorded.status == 128 + signal.SIGABRT, recorded
    assert [(each.number, each.status) for each in group.processes] == [(1, -signal.SIGABRT)]
    assert sorted(path.name for path in (place / "r.rdbgs").iterdir()) == ["1.rdbg", "group.json"]


def test_a_process_ends_in_a_fork_when_nobody_seals(place: Path) -> None:
    (place / "program.py").write_text(_ENDS_IN_A_FORK % True)

    _record(place, "program.py")
    wait_until((place / "r.rdbgs" / "2.rdbg-live").exists)
    listed = _run(place, [sys.executable, "-m", "replaydbg", "ps", "--json", "r"])

    assert listed.status == 0, listed
    assert [each["number"] for each in json.loads(listed.stdout)["processes"]] == [1]
    assert _replay(place, "r").status == tool.ENDS_EARLY


def test_the_commands_of_all_processes_are_listed(place: Path) -> None:
    (place / "program.py").write_text(
        "import os, subprocess\n"
        "subprocess.run(['true', 'a b'])\n"
        "os.system('exit 3')\n"
        "os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', ':'], os.environ), 0)\n"
        "if os.fork() == 0:\n    os._exit(0)\n"
        "os.wait()\n"
    )
    command = tool.record(sys.executable, place / "r", ["-m", "program", "x"], options=CHILDREN)

    _run(place, command)
    completed(place / "r.rdbgs")
    listed = _run(place, [sys.executable, "-m", "replaydbg", "ps", "--json", "r"])

    module = ["-m", "program", "x"]
    commands = [each["argv"] for each in json.loads(listed.stdout)["processes"]]
    assert commands == [module, ["true", "a b"], ["sh", "-c", "exit 3"], ["sh", "-c", ":"], module]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, place: Path) -> None:
    (place / "program.py").write_text("import os\nif os.fork() == 0:\n    os._exit(3)\nos.wait()\n")
    command = tool.record(sys.executable, place / "r", ["program.py"], options=CHILDREN)

    _run(place, ["sh", "-c", f'exec "$@" {closed}', "sh", *command])

    assert [each.status for each in completed(place / "r.rdbgs").processes] == [0, 3]
    assert [_replay(place, f"r/{number}").status for number in (1, 2)] == [0, 3]


def test_the_size_of_a_group_is_limited(place: Path) -> None:
    (place / "program.py").write_text(_FORKS.format(6))

    recorded = _record(place, "program.py", "--max-size=400K")
    group = completed(place / "r.rdbgs")

    assert recorded.status == 0, recorded.stderr
    # 128 KiB each.
    assert [bool(each.recording) for each in group.processes] == [True, True, True, True, False, False, False]
    assert group.processes[-1].why_not == "the recordings of the group had reached --max-size"
    assert [_replay(place, f"r/{number}").status for number in (1, 2, 4)] == [0, 0, 2]


def test_a_child_whose_recording_cannot_be_created(place: Path) -> None:
    (place / "program.py").write_text(
        "import os, resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "held = []\n"
        "def fork(code):\n"
        "    if os.fork() == 0:\n        os._exit(code)\n"
        "    return os.waitstatus_to_exitcode(os.wait()[1])\n"
        "try:\n    while True:\n        held.append(os.open('/', os.O_RDONLY))\n"
        "except OSError:\n    codes = [fork(3)]\n"
        "for fd in held:\n    os.close(fd)\n"
        "print(codes, fork(4))\n"
    )

    recorded = _record(place, "program.py")
    group = completed(place / "r.rdbgs")

    assert recorded.stdout == "[3] 4\n", recorded
    why = ["", "its recording could not be created", ""]
    assert [(each.status, each.why_not) for each in group.processes] == list(zip([0, 3, 4], why, strict=True))
    assert [_replay(place, f"r/{number}").status for number in (1, 3)] == [0, 4]
    assert not (place / "r.rdbgs" / "2.rdbg").exists()


def test_forks_nested_too_deeply(place: Path) -> None:
    (place / "program.py").write_text(
        "import os\nfor depth in range(52):\n    if os.fork():\n        os.wait()\n        break\n"
    )

    _record(place, "program.py")
    group = completed(place / "r.rdbgs")

    assert [each.recording is None for each in group.processes] == [False] * 51 + [True]
    assert group.processes[-1].why_not == "forked more than 50 levels deep"
    assert [_replay(place, f"r/{number}").status for number in (1, 30, 51)] == [0, 0, 0]


def test_children_that_are_not_recorded_are_named(place: Path) -> None:
    (place / "program.py").write_text(
        "import os, subprocess\n"
        "subprocess.run(['true'], check=True)\n"
        "subprocess.run(['false'], preexec_fn=lambda: os.getpid())\n"
        "os.system('exit 3')\n"
        "if os.fork() == 0:\n    os._exit(0)\n"
        "os.wait()\n"
    )

    recorded = _record(place, "program.py", quiet=False)
    group = completed(place / "r.rdbgs")

    programs = "another program"
    assert [(each.how, each.why_not, each.status) for each in group.processes[1:]] == [
        ("other", programs, 0),
        ("other", programs, 1),
        ("other", programs, 3),
        ("fork", "", 0),
    ]
    assert f"3 processes not recorded: {programs}" in recorded.stderr
    assert sorted(path.name for path in (place / "r.rdbgs").iterdir() if path.is_file()) == [
        "1.rdbg",
        "5.rdbg",
        "group.json",
    ]
    assert _replay(place, "r").status == 0


def test_a_child_that_becomes_another_program(place: Path) -> None:
    (place / "program.py").write_text(
        "import os\nif os.fork() == 0:\n    print('child', flush=True)\n"
        "    os.execv('/bin/true', ['true'])\nos.wait()\n"
    )

    _record(place, "program.py")
    completed(place / "r.rdbgs")
    replayed = _replay(place, "r/2", quiet=False)

    assert (replayed.stdout, replayed.status) == ("child\n", tool.ENDS_EARLY), replayed


def test_a_program_that_does_not_start_leaves_nothing(place: Path) -> None:
    recorded = _record(place, "missing.py")

    assert recorded.status == 2
    assert list(place.iterdir()) == []


# The started program goes on when the first one, and whoever recorded it, have ended; it starts another one then.
_STARTED = """import os, subprocess, sys
code = '''
import os, subprocess, sys, time
print("child", flush=True)
os.dup2(os.open(os.devnull, os.O_RDWR), 1)
open("child", "w").write(str(os.getpid()))
while not os.path.exists("go"):
    time.sleep(0.01)
sys.exit(subprocess.run([sys.executable, "-c", "raise SystemExit(6)"]).returncode - 1)
'''
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
child.stdout.read()
child.returncode = 0
"""


def test_a_started_program_outlives_the_first_one_and_the_launcher(place: Path) -> None:
    (place / "program.py").write_text(_STARTED)

    recorded = _record(place, "program.py", *PROGRAMS)
    early = read_group(place / "r.rdbgs").processes
    live = _replay(place, "r/2")
    (place / "go").touch()
    group = completed(place / "r.rdbgs")

    assert recorded.status == 0, recorded.stderr
    assert [(each.how, each.has_ended) for each in early] == [("program", True), ("python", False)]
    assert early[1].argv and early[1].argv[1] == "-c"
    assert (live.stdout, live.status) == ("child\n", tool.ENDS_EARLY), live
    assert [(each.how, each.parent, each.status) for each in group.processes[1:]] == [
        ("python", 1, 5),
        ("python", 2, 6),
    ]
    assert [_replay(place, f"r/{number}").status for number in (1, 2, 3)] == [0, 5, 6]
    names = ["1.rdbg", "2.rdbg", "3.rdbg", "group.json", DIRECTORY]
    assert sorted(path.name for path in (place / "r.rdbgs").iterdir()) == names


def test_the_launcher_of_a_started_program_is_killed(place: Path) -> None:
    (place / "program.py").write_text(_STARTED + "import time" + _WAITS)
    launcher = _start(place, PROGRAMS)
    wait_until((place / "child").exists)

    launcher.kill()
    launcher.wait()
    (place / "go").touch()
    group = completed(place / "r.rdbgs")

    assert [each.status for each in group.processes] == [0, 5, 6]
    assert [_replay(place, f"r/{number}").status for number in (1, 2, 3)] == [0, 5, 6]


def test_a_group_is_removed_while_a_started_program_runs(place: Path) -> None:
    (place / "program.py").write_text(_STARTED)
    _record(place, "program.py", *PROGRAMS)
    child = int(wait_until((place / "child").read_text))

    refused = _run(place, [sys.executable, "-m", "replaydbg", "rm", "r"])
    removed = _run(place, [sys.executable, "-m", "replaydbg", "rm", "--force", "r"])
    (place / "go").touch()

    assert refused.status == 2 and "is still being recorded" in refused.stderr, refused
    assert removed.status == 0, removed.stderr
    wait_until(lambda: not Path(f"/proc/{child}").exists())
    assert not (place / "r.rdbgs").exists()


def test_children_beyond_the_limit_run_unrecorded(place: Path) -> None:
    (place / "program.py").write_text(
        "import subprocess, sys\nfor number in range(6):\n    subprocess.run([sys.executable, '-c', 'print(1)'])\n"
    )
    (place / "few.py").write_text(
        "import sys, replaydbg.log.group as group\nfrom replaydbg.cli.main import main\n"
        "group.MOST_PROCESSES = 3\nsys.exit(main(sys.argv[1:]))\n"
    )

    command = tool.record(sys.executable, Path("r"), ["program.py"], options=PROGRAMS)
    recorded = _run(place, [sys.executable, "few.py", *command[3:]])
    group = completed(place / "r.rdbgs")

    assert recorded.stdout == "1\n" * 6
    assert [each.recording for each in group.processes] == ["1.rdbg", "2.rdbg", "3.rdbg"]
    assert group.more >= 4


def test_the_size_of_a_group_of_programs_is_limited(place: Path) -> None:
    (place / "program.py").write_text(
        "import subprocess, sys\nfor number in range(4):\n    subprocess.run([sys.executable, '-c', 'print(1)'])\n"
    )

    recorded = _record(place, "program.py", *PROGRAMS, "--max-size=5M")
    group = completed(place / "r.rdbgs")

    assert recorded.stdout == "1\n" * 4
    assert [bool(each.recording) for each in group.processes][-1] is False
    assert group.processes[-1].why_not == "the recordings of the group had reached --max-size"


def _record(place: Path, program: str, *options: str, quiet: bool = True) -> Outcome:
    command = tool.record(sys.executable, place / "r", [program], options=[*CHILDREN, *options])
    return _run(place, [each for each in command if quiet or each != "-q"])


def _replay(place: Path, name: str, *, quiet: bool = True) -> Outcome:
    command = tool.replay(sys.executable, Path(name))
    return _run(place, [each for each in command if quiet or each != "-q"])


def _run(place: Path, command: Sequence[str]) -> Outcome:
    return run(command, cwd=place, env=_env(place))


def _env(place: Path) -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ["PATH"], "HOME": str(place.parent), "REPLAYDBG_TEST_STRICT": "1"}


def _start(place: Path, options: Sequence[str] = CHILDREN) -> "subprocess.Popen[bytes]":
    command = tool.record(sys.executable, Path("r"), ["program.py"], options=options)
    return subprocess.Popen(command, cwd=place, env=_env(place), stdout=subprocess.DEVNULL)


def _sealers(place: Path) -> list[str]:
    """The processes that seal, named by the command line of the launcher that they were forked from."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if b"--children=fork" in words and os.fsencode(place / "r") in words:
            found.append(path.name)
    return found


def _children_of(pid: int) -> set[int]:
    return {int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


_WORKERS = """import json, os, subprocess, sys
for number in range(3):
    subprocess.run([sys.executable, "worker.py", str(number)], check=True)
    if os.fork() == 0:
        print("forked", number, flush=True)
        os._exit(number)
    os.wait()
print("parent", flush=True)
"""
_WORKER = """import asyncio, email, helper, json, sys
print("worker", sys.argv[1], helper.NUMBER)
"""


@pytest.fixture
def workers(place: Path) -> Path:
    """A recorded group of seven: three workers, three forked children."""
    (place / "program.py").write_text(_WORKERS)
    (place / "worker.py").write_text(_WORKER)
    (place / "helper.py").write_text("NUMBER = 7\n" + "".join(f"# {number}\n" for number in range(5000)))
    recorded = _record(place, "program.py", *PROGRAMS)
    assert recorded.status == 0, recorded
    group = completed(place / "r.rdbgs")
    assert [each.how for each in group.processes] == ["program", *["python", "fork"] * 3]
    return place


def _expected(number: int) -> tuple[str, int]:
    if number == 1:
        return "parent\n", 0
    turn = (number - 2) // 2
    return (f"forked {turn}\n", turn) if number % 2 else (f"worker {turn} 7\n", 0)


def _assert_replays(place: Path, name: str) -> None:
    for number in range(1, 8):
        replayed = _replay(place, f"{name}/{number}")
        assert (replayed.stdout, replayed.status) == _expected(number), (number, replayed)


def test_what_they_have_in_common_is_stored_once(workers: Path) -> None:
    directory = workers / "r.rdbgs"
    own = sorted(each.stat().st_size for each in directory.glob("*.rdbg"))
    size = size_of_group(directory)

    _assert_replays(workers, "r")
    alone = _run(workers, tool.record(sys.executable, workers / "alone", ["worker.py", "0"]))
    assert alone.status == 0, alone

    assert own[-1] < 60_000, own
    # Alone, each of the seven has as much.
    assert size < 3.5 * (workers / "alone.rdbg").stat().st_size, size
    with open_recording(directory / "2.rdbg") as recording:
        assert sources_of(recording)[str(workers / "helper.py")] == (workers / "helper.py").read_bytes()
    verified = [_run(workers, [sys.executable, "-m", "replaydbg", "verify", f"r/{number}"]) for number in range(1, 8)]
    assert [(each.status, each.stderr) for each in verified] == [(0, "")] * 7
    removed = _run(workers, [sys.executable, "-m", "replaydbg", "rm", "r"])
    assert removed.status == 0 and not directory.exists(), removed


def test_a_recording_is_moved_out_of_its_group(workers: Path) -> None:
    (workers / "elsewhere").mkdir()
    (workers / "r.rdbgs" / "3.rdbg").rename(workers / "elsewhere" / "3.rdbg")

    refused = _replay(workers, "elsewhere/3")
    (workers / "elsewhere" / "3.rdbg").rename(workers / "r.rdbgs" / "3.rdbg")
    packed = _run(workers, [sys.executable, "-m", "replaydbg", "pack", "r/3", "-o", "elsewhere/3.rdbg"])
    replayed = _replay(workers, "elsewhere/3")

    assert refused.status == 1 and "`replaydbg pack`" in refused.stderr, refused
    assert packed.status == 0, packed
    assert (replayed.stdout, replayed.status) == _expected(3)


def test_a_group_whose_recordings_are_complete_each(workers: Path) -> None:
    """As earlier versions wrote them."""
    (workers / "old.rdbgs").mkdir()
    (workers / "old.rdbgs" / "group.json").write_bytes((workers / "r.rdbgs" / "group.json").read_bytes())
    for number in range(1, 8):
        words = ["pack", f"r/{number}", "-o", f"old.rdbgs/{number}.rdbg"]
        assert _run(workers, [sys.executable, "-m", "replaydbg", *words]).status == 0
    _run(workers, [sys.executable, "-m", "replaydbg", "rm", "r"])

    _assert_replays(workers, "old")
    assert _run(workers, [sys.executable, "-m", "replaydbg", "ps", "old"]).status == 0


def test_a_group_with_one_recording_shares_nothing(place: Path) -> None:
    (place / "program.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, '-'], stdin=subprocess.DEVNULL)\n"
    )

    recorded = _record(place, "program.py", *PROGRAMS)
    completed(place / "r.rdbgs")

    assert recorded.status == 0, recorded
    assert sorted(path.name for path in (place / "r.rdbgs").iterdir()) == ["1.rdbg", "group.json"]


def test_a_group_is_sent_as_one_file(workers: Path) -> None:
    def command(*words: str) -> Outcome:
        return _run(workers, [sys.executable, "-m", "replaydbg", *words])

    assert command("pack", "r", "-o", "r.rdbgs.tar").status == 0
    assert command("rm", "r").status == 0
    assert command("unpack", "r.rdbgs.tar", "-o", "again").stdout == "again.rdbgs\n"

    _assert_replays(workers, "again")
    whole = command("replay", "-q", "again")
    lines = [_expected(number)[0] for number in range(2, 8)] + ["parent\n"]
    assert (whole.stdout, whole.status) == ("".join(lines), 0), whole
    assert command("ps", "again").status == 0
