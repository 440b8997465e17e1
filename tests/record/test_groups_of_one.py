"""A recording begins as a group of one process, and becomes an ordinary one if no other process was recorded."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.harness.children import completed
from tests.harness.denied import denied
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

_ALONE = "print('alone', flush=True)\n"
_PIPES = """import os
reading, writing = os.pipe()
os.write(writing, b"x")
print(os.read(reading, 1))
"""
_STARTS_A_PROGRAM = "import subprocess\nsubprocess.run(['sh', '-c', 'echo from a shell'])\n"
_FORKS = """import os
if os.fork() == 0:
    print("child", flush=True)
    os._exit(0)
os.wait()
print("parent", flush=True)
"""
_STARTS_PYTHON = """import subprocess, sys
subprocess.run([sys.executable, "-c", "print('child', flush=True)"])
print("parent", flush=True)
"""
_WAITS = """import os, time
open("begun", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory; a program that still waits there when the test fails ends."""
    yield tmp_path
    (tmp_path / "go").touch()


@pytest.mark.parametrize("program", [_ALONE, _PIPES, _STARTS_A_PROGRAM], ids=["alone", "pipes", "other program"])
def test_a_program_alone_leaves_one_file(program: str, place: Path) -> None:
    recorded = _record(place, program)

    assert recorded.status == 0, recorded.stderr
    assert _recordings(place) == ["r.rdbg"]
    with open_recording(place / "r.rdbg") as recording:
        recording.check()
        assert recording.problems == ()
        assert recording.name == "r"
        assert recording.header.group == ""
        assert "transfers" not in recording.sections
    replayed = _tool(place, "replay", "-q", "r")
    assert replayed.status == 0, replayed.stderr
    assert _tool(place, "ps", "r").status == 2


def test_programs_that_are_never_recorded_are_counted(place: Path) -> None:
    (place / "program.py").write_text(
        "import subprocess, sys\n"
        "for words in (['true'], ['true'], [sys.executable, '-V']):\n"
        "    subprocess.run(words, check=True)\n"
    )

    recorded = _tool(place, "record", "-o", "r", "program.py")
    as_json = _tool(place, "record", "--json", "-o", "r", "program.py")

    assert _recordings(place) == ["r.rdbg"]
    assert "replaydbg: 2 processes not recorded: another program\n" in recorded.stderr, recorded.stderr
    assert json.loads(as_json.stderr)["not_recorded"] == {
        "another program": 2,
        "it is a Python without a program to run": 1,
    }


def test_a_python_whose_recording_is_missed_makes_a_group(place: Path) -> None:
    _record(place, "import subprocess, sys\nsubprocess.run([sys.executable], input=b'print(1)')\n")

    assert _recordings(place) == ["r.rdbgs"]
    assert "its program comes from a terminal or from standard input" in _tool(place, "ps", "r").stderr


def test_a_name_in_the_store(place: Path) -> None:
    (place / "program.py").write_text(_ALONE)
    for _ in range(2):
        assert _tool(place, "record", "-q", "program.py").status == 0
    (place / "program.py").write_text(_FORKS)
    assert _tool(place, "record", "-q", "program.py").status == 0

    assert _recordings(place / "store") == ["run-1.rdbg", "run-2.rdbg", "run-3.rdbgs"]


@pytest.mark.parametrize("program", [_FORKS, _STARTS_PYTHON], ids=["forks", "starts Python"])
def test_children_are_recorded_without_an_option(program: str, place: Path) -> None:
    recorded = _record(place, program, name="r.rdbg")
    group = completed(place / "r.rdbgs")

    assert recorded.status == 0, recorded.stderr
    assert _recordings(place) == ["r.rdbgs"]
    assert [each.recording for each in group.processes] == ["1.rdbg", "2.rdbg"]
    assert _tool(place, "replay", "-q", "r.rdbg").stdout == recorded.stdout == "child\nparent\n"


@pytest.mark.parametrize("children", ["none", "fork"])
def test_the_setting(children: str, place: Path) -> None:
    _record(place, _STARTS_PYTHON, env={"REPLAYDBG_CHILDREN": children})

    assert _recordings(place) == ["r.rdbg"]


def test_a_setting_that_does_not_exist(place: Path) -> None:
    recorded = _record(place, _ALONE, env={"REPLAYDBG_CHILDREN": "all"})

    assert recorded.status == 2
    assert "children cannot be 'all'" in recorded.stderr and "it is python, fork or none" in recorded.stderr


@pytest.mark.parametrize("children", [(), ("--children=none",)])
def test_a_group_is_not_replaced(children: tuple[str, ...], place: Path) -> None:
    for program, left in ((_ALONE, "r.rdbg"), (_ALONE, "r.rdbg"), (_FORKS, "r.rdbgs")):
        recorded = _record(place, program)

        assert recorded.status == 0, recorded.stderr
        assert _recordings(place) == [left]
        assert _tool(place, "replay", "-q", "r").stdout == recorded.stdout
    again = _tool(place, "record", "-q", *children, "-o", "r", "program.py")
    assert (again.status, again.stdout) == (2, "")
    assert "r.rdbgs': it exists: a group of processes is not replaced; remove it" in again.stderr, again.stderr
    assert _tool(place, "rm", "r").status == 0
    assert _tool(place, "record", "-q", *children, "-o", "r", "program.py").status == 0
    assert sorted(path.name for path in place.iterdir()) == ["program.py", "r.rdbg" if children else "r.rdbgs"]


def test_a_file_that_was_not_named_is_not_replaced(place: Path) -> None:
    (place / "r.rdbg").write_text("mine")

    refused = _record(place, _ALONE, name="r.rdbgs")

    assert (refused.status, refused.stdout) == (2, "")
    assert "r.rdbg': it exists, and -o has another name" in refused.stderr
    assert _recordings(place) == ["r.rdbg"]


@pytest.mark.parametrize("options", [(), ("--children=fork",)])
def test_a_file_system_without_fifos(options: tuple[str, ...], place: Path) -> None:
    (place / "program.py").write_text(_FORKS)
    changed = (
        "import errno, os, sys\n"
        "def refuse(*args):\n    raise PermissionError(errno.EPERM, 'Operation not permitted')\n"
        "os.mkfifo = refuse\n"
    )

    recorded = _record_changed(place, changed, *options)

    assert recorded.status == (2 if options else 0), recorded
    assert _recordings(place) == ([] if options else ["r.rdbg"])


@pytest.mark.parametrize("options", [(), ("--children=fork",)])
def test_a_system_without_descriptors_of_processes(options: tuple[str, ...], place: Path) -> None:
    """Nobody could find out when a child ends: only the first process is recorded, unless children are asked for."""
    (place / "program.py").write_text(_FORKS)
    command = [sys.executable, "-m", "replaydbg", "record", *options, "-o", "r", "program.py"]

    recorded = run(denied("pidfd_open", command), cwd=place, env=passed_on())

    assert recorded.status == (2 if options else 0), recorded
    assert _recordings(place) == ([] if options else ["r.rdbg"])
    assert not options or "Operation not permitted" in recorded.stderr


def test_a_limit_of_size_is_that_of_one_process_until_there_are_others(place: Path) -> None:
    (place / "program.py").write_text("import time\nfor _ in range(40_000):\n    time.time()\n")
    sizes = set()
    for children in ("python", "none"):
        recorded = _tool(
            place, "record", "--json", f"--children={children}", "--max-size=1300K", "-o", "r", "program.py"
        )
        sizes.add((json.loads(recorded.stderr)["events"], json.loads(recorded.stderr)["reason"]))

    assert len(sizes) == 1, sizes


def test_a_python_that_starts_while_the_others_are_looked_at_is_recorded(place: Path) -> None:
    """The page is there for it as long as there is a group."""
    (place / "program.py").write_text(
        "import os, subprocess, sys, time\n"
        "if os.fork() == 0:\n"
        "    while not os.path.exists('seen'):\n        time.sleep(0.001)\n"
        "    os._exit(subprocess.run([sys.executable, '-c', 'pass']).returncode)\n"
    )
    changed = (
        "import os, sys, time\n"
        "import replaydbg.record.group as group\n"
        "look = group._has_others\n"
        "def slowly(*args):\n    open('seen', 'w').close()\n    time.sleep(0.5)\n    return look(*args)\n"
        "group._has_others = slowly\n"
    )

    _record_changed(place, changed)

    assert [each.recording for each in completed(place / "r.rdbgs").processes] == ["1.rdbg", "2.rdbg", "3.rdbg"]


def test_a_symbolic_link_is_not_replaced(place: Path) -> None:
    _record(place, _FORKS)
    (place / "s.rdbgs").symlink_to("r.rdbgs")

    assert _record(place, _ALONE, name="s").status == 2
    assert _tool(place, "replay", "-q", "r").status == 0


@pytest.mark.parametrize("name", ["/", ".", "..", "a/"])
def test_names_of_directories(name: str, place: Path) -> None:
    (place / "a").mkdir()
    recorded = _record(place, _ALONE, name=name)

    assert (recorded.status, recorded.stdout) == (2, ""), recorded
    assert recorded.stderr.startswith("replaydbg: Cannot record to"), recorded.stderr


def test_a_debugger_has_it_open_while_it_is_recorded(place: Path) -> None:
    (place / "program.py").write_text(_WAITS)
    launcher = subprocess.Popen(_command("record", "-q", "-o", "r", "program.py"), cwd=place, env=_env(place))
    wait_until((place / "begun").exists)

    debugged = subprocess.run(
        _command("debug", "r"),
        cwd=place,
        env=_env(place),
        input=b"quit\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    (place / "go").touch()

    assert debugged.returncode == 0, debugged
    assert launcher.wait(60) == 0
    assert _recordings(place) == ["r.rdbg"]
    assert _tool(place, "replay", "-q", "r").status == 0


def test_other_files_in_a_directory_with_its_name_hide_nothing(place: Path) -> None:
    recorded = _record(place, "import os\nif os.path.exists('r.rdbgs'):\n    open('r.rdbgs/mine', 'w').close()\n")

    assert (place / "r.rdbgs" / "mine").exists()
    assert recorded.status == 0, recorded.stderr
    assert _tool(place, "info", "r").status == 0
    assert _tool(place, "replay", "-q", "r").status == 0


@pytest.mark.parametrize("left", ["page renamed", "moved"])
def test_the_launcher_is_killed_while_a_group_becomes_a_file(left: str, place: Path) -> None:
    """The process that seals ends what it had begun."""
    calls = {"page renamed": "Path.rename", "moved": "Path.unlink"}[left]
    hidden = ".page"
    (place / "program.py").write_text(_ALONE)
    changed = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        f"before, launcher = {calls}, os.getpid()\n"
        f"def changed(self, *args, **kw):\n"
        f"    result = before(self, *args, **kw)\n"
        f"    if {hidden!r} in (self.name, *(each.name for each in args if isinstance(each, Path))):\n"
        f"        if os.getpid() == launcher:\n            os.kill(launcher, signal.SIGKILL)\n    return result\n"
        f"{calls} = changed\n"
    )

    killed = _record_changed(place, changed)

    assert killed.status == 137, killed
    expected = ["r.rdbgs"] if left == "page renamed" else ["r.rdbg-live"]
    wait_until(lambda: _recordings(place) == expected, message=lambda: sorted(place.rglob("*")))
    if left == "page renamed":
        assert [each.recording for each in completed(place / "r.rdbgs").processes] == ["1.rdbg"]
    assert _tool(place, "replay", "-q", "r").stdout == "alone\n"
    assert _tool(place, "rm", "r").status == 0
    assert _recordings(place) == []


def test_what_is_being_recorded_is_not_replaced(place: Path) -> None:
    (place / "program.py").write_text(_WAITS)
    launcher = subprocess.Popen(_command("record", "-q", "-o", "r", "program.py"), cwd=place, env=_env(place))
    wait_until((place / "begun").exists)

    again = _record(place, _ALONE)

    assert (again.status, again.stdout) == (2, "")
    assert "r.rdbgs': it exists: a group of processes is not replaced" in again.stderr
    (place / "go").touch()
    assert launcher.wait(60) == 0


def test_an_interrupt_before_the_program_runs_leaves_nothing(place: Path) -> None:
    (place / "program.py").write_text(_ALONE)
    changed = (
        "import os, signal, sys\nmade = os.mkfifo\n"
        "def changed(*args):\n    made(*args)\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "os.mkfifo = changed\n"
    )

    ended = _record_changed(place, changed)

    assert ended.status in (130, -2), ended
    assert _recordings(place) == []


def test_a_program_that_another_one_replaces_is_shown_in_its_group(place: Path) -> None:
    _record(place, "import os\nos.execvp('true', ['true'])\n")

    assert _recordings(place) == ["r.rdbgs"]
    assert [each.how for each in completed(place / "r.rdbgs").processes] == ["program", "exec"]


def test_a_program_that_is_still_starting_is_not_said_to_have_ended(place: Path) -> None:
    (place / "program.py").write_text(
        "import os, subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(0.3)'])\nos._exit(4)\n"
    )

    recorded = _tool(place, "record", "-o", "r", "program.py")

    assert recorded.status == 4
    assert "1 child process recorded" in recorded.stderr and "it ended before" not in recorded.stderr, recorded.stderr
    assert [each.recording for each in completed(place / "r.rdbgs").processes] == ["1.rdbg", "2.rdbg"]


def test_a_child_that_ends_with_the_code_of_a_divergence(place: Path) -> None:
    _record(place, "import os\nif os.fork() == 0:\n    os._exit(4)\nos.wait()\n")

    assert _tool(place, "replay", "-q", "r").status == 0


@pytest.mark.parametrize("before", [_ALONE, _FORKS], ids=["alone", "group"])
def test_a_program_that_cannot_run_replaces_nothing(before: str, place: Path) -> None:
    _record(place, before)
    kept = _recordings(place)

    command = ["sh", "-c", 'ulimit -f 100; exec "$@"', "sh", *_command("record", "-q", "-o", "r", "program.py")]
    again = run(command, cwd=place, env=_env(place))

    assert (again.status, again.stdout) == (2, ""), again
    assert _recordings(place) == kept
    assert _tool(place, "replay", "-q", "r").status == 0


def test_the_launcher_is_killed(place: Path) -> None:
    (place / "program.py").write_text(_WAITS)
    launcher = subprocess.Popen(_command("record", "-q", "-o", "r", "program.py"), cwd=place, env=_env(place))
    wait_until((place / "begun").exists)

    launcher.kill()
    launcher.wait()
    assert _tool(place, "info", "r").status == 0
    (place / "go").touch()
    group = completed(place / "r.rdbgs")

    assert [(each.number, each.recording, each.status) for each in group.processes] == [(1, "1.rdbg", 0)]
    assert _tool(place, "replay", "-q", "r").status == 0


def test_files_of_others_with_the_names_of_ours_stay(place: Path) -> None:
    for name in ("page", "wake", "group.json", "orders.json", ".group.json.1"):
        (place / name).write_text(name)

    recorded = _record(place, _ALONE)

    assert recorded.status == 0, recorded.stderr
    assert all((place / name).read_text() == name for name in ("page", "wake", "group.json", "orders.json"))
    assert (place / ".group.json.1").exists()


def _recordings(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if ".rdbg" in path.name)


def _record(place: Path, program: str, *, name: str = "r", env: dict[str, str] | None = None) -> Outcome:
    (place / "program.py").write_text(program)
    return run(_command("record", "-q", "-o", name, "program.py"), cwd=place, env=_env(place) | (env or {}))


def _record_changed(place: Path, changed: str, *options: str) -> Outcome:
    """Record `program.py` by a launcher that executes `changed` first."""
    (place / "launch.py").write_text(
        f"{changed}import sys\nfrom replaydbg.cli.main import main\n"
        "sys.orig_argv = [sys.executable, '-m', 'replaydbg', *sys.argv[1:]]\nsys.exit(main())\n"
    )
    command = [sys.executable, "launch.py", "record", "-q", *options, "-o", "r", "program.py"]
    return run(command, cwd=place, env=_env(place))


def _tool(place: Path, *words: str) -> Outcome:
    return run(_command(*words), cwd=place, env=_env(place))


def _command(*words: str) -> Sequence[str]:
    return [sys.executable, "-m", "replaydbg", *words]


def _env(place: Path) -> dict[str, str]:
    return passed_on() | {"REPLAYDBG_STORE": str(place / "store")}
