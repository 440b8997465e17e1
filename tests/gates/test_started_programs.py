"""Python programs that are started are recordings of their own in the group: each replays alone, exactly."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import replaydbg
from replaydbg.log.group import GroupProcess
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.children import PROGRAMS, assert_group_replays, completed
from tests.harness.replay_cases import Case, cases
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.sanitizer import IS_SANITIZED

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory for a program and its recordings."""
    return tmp_path


_HAS_ITS_OWN = "the sanitizer's runtime has to be in LD_PRELOAD, which these programs look at, or take away"
needs_no_preload = pytest.mark.skipif(IS_SANITIZED, reason=_HAS_ITS_OWN)


@pytest.mark.parametrize("case", cases("programs"))
def test_each_process_replays_alone(case: Case) -> None:
    if IS_SANITIZED and case.program.stem in ("environments", "replaced_programs"):
        pytest.skip(_HAS_ITS_OWN)
    group = assert_group_replays(case, PROGRAMS)

    assert any(each.how in ("python", "exec") and each.recording for each in group.processes)


@pytest.mark.parametrize("case", cases("children", "daemons", "fork_in_a_thread", "killed_children", "pools"))
def test_forked_children_are_recorded_as_before(case: Case) -> None:
    group = assert_group_replays(case, PROGRAMS)

    assert any(each.how == "fork" and each.recording for each in group.processes)


_SHOW = """import os, signal, sys, sysconfig
fds = [(fd, os.get_inheritable(fd)) for fd in range(64) if os.path.exists(f"/proc/self/fd/{fd}")]
ignored = [int(n) for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN]
mask = os.umask(0)
os.umask(mask)
for each in (sys.argv, sys.orig_argv, sys.executable, sys.prefix, sys.exec_prefix, sys.base_prefix, sys.path,
             sys.flags, sys._xoptions, sys.warnoptions, sys.stdout.encoding, sys.getfilesystemencoding(),
             list(os.environ.items()), fds, ignored, mask, os.getcwd(), signal.pthread_sigmask(signal.SIG_BLOCK, []),
             __name__, globals().get("__file__"), os.getppid() == PARENT, sys.stdin.encoding, sys.dont_write_bytecode):
    print(repr(each))
"""
_SHOWS = """import os, subprocess, sys
program = sys.argv[1] + "/show.py"
with open(program, "w") as file:
    file.write(os.environ.pop("SHOW").replace("PARENT", str(os.getpid())))
for options, more in [
    ([], {}), (["-I"], {}), (["-X", "utf8=1"], {"env": {}}),
    (["-S", "-E"], {"env": {"PYTHONPATH": "/x", "PYTHONUTF8": "1"}}),
    (["-X", "utf8=0"], {"env": {"LC_ALL": "POSIX"}}), ([], {"env": {"PYTHONUTF8": "1", "LC_ALL": "POSIX"}}),
    ([], {"env": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}}), ([], {"env": {"LC_ALL": "C"}, "umask": 0o777}),
    ([], {"env": {"PYTHONPATH": ":/y:", "PYTHONHOME": sys.base_prefix}}),
    (["-Walways", "-OO"], {"executable": sys.executable}),
    ([], {"env": {"PYTHONINSPECT": "", "PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"}, "start_new_session": True}),
    ([], {"restore_signals": False, "close_fds": False}),
]:
    name = "python" if "executable" in more else sys.executable
    done = subprocess.run([name, *options, program, "a", "\\udcff", b"\\xc3\\xa9"], capture_output=True, **more)
    print(done.returncode, done.stdout.decode(errors="replace").replace(str(os.getpid()), "PID"), done.stderr.decode())
"""


@needs_no_preload
def test_a_program_finds_what_it_finds_in_a_plain_start(place: Path) -> None:
    (place / "program.py").write_text(_SHOWS)
    (place / "show").mkdir()
    env = _env(place) | {"SHOW": _SHOW}

    plain_env = {name: value for name, value in env.items() if name != "REPLAYDBG_TEST_STRICT"}
    plain = run([sys.executable, "program.py", "show"], cwd=place, env=plain_env)
    recorded = _record(place, "program.py", "show", env=env)
    group = completed(place / "r.rdbgs")

    assert plain.status == 0 and plain.stderr == ""
    assert recorded.stdout.splitlines() == plain.stdout.splitlines()
    assert recorded.stderr == ""
    assert [each.how for each in group.processes] == ["program", *["python"] * 12]
    assert all(each.recording for each in group.processes), group.processes
    assert [_replay(place, f"r/{each.number}").status for each in group.processes] == [0] * 13


def test_the_processes_behind_a_shell(place: Path) -> None:
    (place / "a.py").write_text("import os, subprocess\nsubprocess.run([os.sys.executable, '-c', 'pass'])\n")
    (place / "program.py").write_text(
        "import os, subprocess, sys\n"
        "os.system(f'{sys.executable} a.py; {sys.executable} -c 1')\n"
        "subprocess.run(f'exec {sys.executable} -c 2', shell=True)\n"
        "subprocess.run(['env', sys.executable, '-c', '3'])\n"
    )

    recorded = _record(place, "program.py", quiet=False)
    group = completed(place / "r.rdbgs")

    assert recorded.status == 0, recorded.stderr
    assert [(each.number, each.parent, each.how, bool(each.recording)) for each in group.processes] == [
        (1, 0, "program", True),
        (2, 1, "other", False),
        (3, 2, "python", True),
        (4, 3, "python", True),
        (5, 2, "python", True),
        (6, 1, "python", True),
        (7, 1, "python", True),
    ]
    assert group.processes[2].event == 0 and group.processes[5].event > 0
    assert [_argv(each) for each in group.processes[2:]] == [
        ["a.py"],
        ["-c", "pass"],
        ["-c", "1"],
        ["-c", "2"],
        ["-c", "3"],
    ]
    assert "5 child processes recorded" in recorded.stderr, recorded.stderr
    listed = _run(place, [sys.executable, "-m", "replaydbg", "ps", "r"])
    assert [line.split("\t")[2].split(" at ")[0] for line in listed.stdout.splitlines()][1:4] == [
        "other of 1",
        "python of 2",
        "python of 3",
    ]


def _argv(process: GroupProcess) -> list[str]:
    assert process.argv is not None
    return process.argv[1:]


def test_a_program_that_replaces_itself(place: Path) -> None:
    (place / "program.py").write_text(
        "import os, sys\nprint('first', flush=True)\n"
        'code = \'import os, sys; print("second", flush=True); os.execv("/bin/sh", ["sh", "-c", "exit 4"])\'\n'
        "os.execv(sys.executable, [sys.executable, '-c', code])\n"
    )

    recorded = _record(place, "program.py", quiet=False)
    group = completed(place / "r.rdbgs")

    assert (recorded.stdout, recorded.status) == ("first\nsecond\n", 4), recorded
    assert [(each.how, each.parent, bool(each.recording)) for each in group.processes] == [
        ("program", 0, True),
        ("exec", 1, True),
        ("exec", 2, False),
    ]
    assert len({each.pid for each in group.processes}) == 1
    assert group.processes[1].status == 4
    replayed = [_replay(place, f"r/{number}") for number in (1, 2)]
    assert [(each.stdout, each.status) for each in replayed] == [
        ("first\n", tool.ENDS_EARLY),
        ("second\n", tool.ENDS_EARLY),
    ]


def test_programs_that_are_not_recorded_have_a_reason(place: Path) -> None:
    (place / "program.py").write_text(
        "import subprocess, sys\n"
        "run = lambda *words: subprocess.run([sys.executable, *words], input=b'', capture_output=True)\n"
        "run(); run('-'); run('-V'); run('missing.py'); run('-i', '-c', '1'); run('-c'); subprocess.run(['true'])\n"
    )

    recorded = _record(place, "program.py", quiet=False)
    group = completed(place / "r.rdbgs")

    typed = "its program comes from a terminal or from standard input"
    nothing = "it is a Python without a program to run"
    assert [(each.how, each.why_not) for each in group.processes[1:]] == [
        ("python", typed),
        ("python", typed),
        ("python", nothing),
        ("python", nothing),
        ("python", typed),
        ("python", nothing),
        ("other", "another program"),
    ]
    assert f"3 processes not recorded: {typed}" in recorded.stderr, recorded.stderr
    assert sorted(each.name for each in (place / "r.rdbgs").iterdir()) == ["1.rdbg", "group.json"]


def test_a_program_whose_log_cannot_be_made_runs(place: Path) -> None:
    (place / "program.py").write_text(
        "import resource, subprocess, sys\n"
        "limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "code = 'import sys; print(sys.argv, sys.flags.optimize)'\n"
        "done = subprocess.run([sys.executable, '-c', code, 'x'], preexec_fn=limit)\n"
        "print(done.returncode)\n"
    )

    recorded = _record(place, "program.py")
    group = completed(place / "r.rdbgs")

    assert recorded.stdout == "['-c', 'x'] 0\n0\n", recorded
    assert [each.recording for each in group.processes] == ["1.rdbg", None]
    assert group.processes[1].why_not == "its recording could not be created"
    assert sorted(each.name for each in (place / "r.rdbgs").iterdir()) == ["1.rdbg", "group.json"]


def test_programs_of_another_virtual_environment(place: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "other"], cwd=place, check=True)
    (place / "program.py").write_text(
        "import subprocess, sys\n"
        "code = 'import sys; print(sys.prefix, sys.executable, sys.path)'\n"
        "for name in ('other/bin/python', 'other/bin/python3'):\n"
        "    print(subprocess.run([name, '-c', code]).returncode, flush=True)\n"
    )

    plain = run([sys.executable, "program.py"], cwd=place, env=_env(place))
    recorded = _record(place, "program.py")
    group = completed(place / "r.rdbgs")

    assert recorded.stdout == plain.stdout
    assert [each.recording for each in group.processes] == ["1.rdbg", "2.rdbg", "3.rdbg"]
    with open_recording(place / "r.rdbgs" / "2.rdbg") as recording:
        assert recording.header.python.prefix == str(place / "other")
    assert "".join(_replay(place, f"r/{number}").stdout for number in (2, 3)) == re.sub(
        "^0\n", "", plain.stdout, flags=re.M
    )


@needs_no_preload
@pytest.mark.parametrize("version", ["2.7", "3.8", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_programs_of_other_versions(version: str, place: Path) -> None:
    python = _find(f"python{version}")
    if python is None:
        pytest.skip(f"this machine has no python{version}")
    code = "import os, sys; print(sys.argv, len(sys.executable) > 1)"
    (place / "program.py").write_text(
        f"import subprocess, sys\nprint(subprocess.run([{python!r}, '-c', {code!r}, 'x']).returncode)\n"
    )

    recorded = _record(place, "program.py")

    printed = "(['-c', 'x'], True)" if version == "2.7" else "['-c', 'x'] True"
    assert recorded.stdout == f"{printed}\n0\n", recorded
    if version == "2.7":  # it has nothing by which it could be known: it is a program like any other
        assert (place / "r.rdbg").exists()
        return
    group = completed(place / "r.rdbgs")
    if version == "{}.{}".format(*sys.version_info):
        assert group.processes[1].recording
    elif not group.processes[1].recording:
        assert group.processes[1].why_not == "replaydbg was not built for its Python"


def _find(name: str) -> str | None:
    """Return an interpreter that runs: pyenv has a script of each name, whether or not the version is selected."""
    for candidate in [shutil.which(name), *map(str, Path("~/.pyenv/versions").expanduser().glob(f"*/bin/{name}"))]:
        if candidate and subprocess.run([candidate, "-c", ""], check=False, capture_output=True).returncode == 0:
            return candidate
    return None


@pytest.mark.parametrize("damage", ["unlink()", "write_text('{')", "write_text('{}')"])
def test_a_program_runs_whatever_is_wrong_with_the_group(damage: str, place: Path) -> None:
    (place / "program.py").write_text(
        "import subprocess, sys\nfrom pathlib import Path\n"
        f"Path('r.rdbgs/orders.json').{damage}\n"
        "print(subprocess.run([sys.executable, '-c', 'print(1)']).returncode)\n"
    )

    recorded = _record(place, "program.py")
    group = completed(place / "r.rdbgs")

    assert recorded.stdout == "1\n0\n", recorded
    assert group.processes[1].why_not == "its recording could not be created"


def test_output_of_programs_that_are_recorded_is_not_missing(place: Path) -> None:
    (place / "program.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(1)'])\nsubprocess.run(['echo', '2'])\n"
    )

    recorded = _record(place, "program.py", quiet=False)
    completed(place / "r.rdbgs")

    assert "children: 1 child process inherited standard output" in recorded.stderr, recorded.stderr


def test_a_member_records_what_the_first_process_was_told(place: Path) -> None:
    (place / "program.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(id(1))'])\n"
    )

    _record(place, "--real-ids", "program.py")
    completed(place / "r.rdbgs")

    with open_recording(place / "r.rdbgs" / "2.rdbg") as recording:
        assert recording.header.real_ids
        assert (recording.header.process, recording.header.name) == (2, "r/2")


def test_a_recorder_within_a_recording(place: Path) -> None:
    (place / "program.py").write_text(
        "import subprocess, sys\n"
        "code = 'import random; print(random.random(), flush=True)'\n"
        "inner = [sys.executable, '-m', 'replaydbg']\n"
        "subprocess.run([*inner, 'record', '-q', '-o', 'inner', '-c', code], check=True)\n"
        "subprocess.run([*inner, 'replay', '-q', 'inner'], check=True)\n"
    )

    recorded = _record(place, "program.py")
    completed(place / "r.rdbgs")

    first, second = recorded.stdout.splitlines()
    assert recorded.status == 0, recorded.stderr
    assert first == second


def test_a_path_that_the_loader_cannot_take(place: Path) -> None:
    (place / "with space").mkdir()
    (place / "with space" / "replaydbg").symlink_to(Path(replaydbg.__file__).parent)
    (place / "program.py").write_text("print(1)\n")
    command = tool.record(sys.executable, place / "r", ["../program.py"], options=PROGRAMS)

    recorded = run(command, cwd=place / "with space", env=_env(place) | {"PYTHONPATH": str(place / "with space")})

    assert recorded.status == 2
    assert (
        "--children=python cannot be used: the path of replaydbg's library contains a space or a colon"
        in recorded.stderr
    )
    assert not (place / "r.rdbgs").exists()


@needs_no_preload
def test_without_the_option_nothing_joins(place: Path) -> None:
    (place / "program.py").write_text(
        "import subprocess, sys\n"
        'code = \'import os; print([n for n in os.environ if n.startswith(("LD_", "REPLAYDBG_"))])\'\n'
        "subprocess.run([sys.executable, '-c', code])\n"
    )

    recorded = _run(place, tool.record(sys.executable, place / "r", ["program.py"]))

    assert recorded.stdout == "[]\n"
    assert (place / "r.rdbg").exists()


def _record(place: Path, *words: str, quiet: bool = True, env: dict[str, str] | None = None) -> Outcome:
    options = [word for word in words if word.startswith("--")]
    rest = [word for word in words if word not in options]
    command = tool.record(sys.executable, place / "r", rest, options=[*PROGRAMS, *options])
    return run([each for each in command if quiet or each != "-q"], cwd=place, env=env or _env(place))


def _replay(place: Path, name: str) -> Outcome:
    return _run(place, tool.replay(sys.executable, Path(name)))


def _run(place: Path, command: list[str]) -> Outcome:
    return run(command, cwd=place, env=_env(place))


def _env(place: Path) -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ["PATH"], "HOME": str(place.parent), "REPLAYDBG_TEST_STRICT": "1"}
