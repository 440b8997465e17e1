"""The two nets: a replay ends, uncatchably, where code that no gate covers would change something outside."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import tool

pytestmark = pytest.mark.slow

# Actions behind the gates' back, and their names in the divergence.
_REFUSED = {
    'libc.unlink(b"victim")': 'unlink("victim")',
    'libc.creat(b"made", 0o600)': 'creat("made")',
    'libc.open(b"victim", os.O_RDWR)': '"victim"',
    'libc.rename(b"victim", b"moved")': 'rename("victim")',
    'libc.mkdir(b"made", 0o700)': 'mkdir("made")',
    'libc.symlink(b"victim", b"made")': 'symlink("victim")',
    'libc.mkfifo(b"made", 0o600)': "mknod",
    'libc.truncate(b"victim", 1)': 'truncate("victim")',
    'libc.chmod(b"victim", 0o600)': 'chmod("victim")',
    "libc.socket(socket.AF_INET, socket.SOCK_DGRAM, 0)": "socket(",
    "libc.kill(os.getppid(), 0)": "kill(",
    "libc.alarm(1000)": "alarm(",
    "libc.semget(0, 1, 0o600)": "semget(",
}
# Actions that are permitted to a C library in a replay as in the recording.
_ALLOWED = (
    'libc.open(b"/dev/null", os.O_RDONLY) > 0',
    'libc.memfd_create(b"memory", 0) > 0',
    "libc.kill(libc.getpid(), 0)",
    "libc.raise_(0)",
    "libc.usleep(1)",
    'ctypes.CDLL("libm.so.6") is not None',
)
_PROGRAM = """
import ctypes, os, socket

class Behind: # the C library's functions themselves: found by their version, they are not led to the core
    find = ctypes.CDLL(None).dlvsym
    find.restype = ctypes.c_void_p

    def __getattr__(self, name):
        version = b"GLIBC_2.2.5" if os.uname().machine == "x86_64" else b"GLIBC_2.17"
        found = self.find(None, name.rstrip("_").encode(), version)
        return ctypes.CFUNCTYPE(ctypes.c_int)(found) if found else getattr(ctypes.CDLL(None), name.rstrip("_"))

libc = Behind()
print("before", flush=True)
try:
    print({act}, flush=True)
except BaseException as error:
    print("caught", type(error))
print("after")
"""
_PYTHON_EVENTS = """
import sys

for event in "pdb.Pdb tempfile.mkstemp shutil.rmtree subprocess.Popen urllib.Request os.walk glob.glob".split():
    sys.audit(event, "argument")
print("all of them passed")
"""
_SYNTAX_ERROR = """
try:
    compile("x = (", "victim", "exec")
except SyntaxError as error:
    print(error.msg)
"""


@dataclass(frozen=True, slots=True)
class Run:
    """How one command ended."""

    stdout: str
    stderr: str
    # Exit code, or minus a signal's number.
    status: int


@pytest.mark.parametrize(("act", "name"), _REFUSED.items())
def test_a_replay_ends_where_a_library_acts(act: str, name: str, tmp_path: Path) -> None:
    recorded = _record(_PROGRAM.format(act=act), tmp_path)
    assert recorded.stdout.endswith("after\n"), recorded.stderr
    _set_the_stage(tmp_path)

    replayed = _replay(tmp_path)

    assert (replayed.status, replayed.stdout) == (tool.DIVERGED, "before\n")
    assert name in replayed.stderr
    assert sorted(path.name for path in (tmp_path / "stage").iterdir()) == ["victim"]
    assert (tmp_path / "stage" / "victim").read_text() == "untouched"


def test_a_refusal_that_a_library_blocks_ends_the_replay_too(tmp_path: Path) -> None:
    """system() blocks all signals while it creates its process; the kernel then ends ours."""
    recorded = _record(_PROGRAM.format(act='libc.system(b"touch made")'), tmp_path)
    assert recorded.status == 0
    _set_the_stage(tmp_path)

    replayed = _replay(tmp_path)

    assert replayed.status in (tool.DIVERGED, -signal.SIGSYS, 128 + signal.SIGSYS)
    assert "after" not in replayed.stdout
    assert not (tmp_path / "stage" / "made").exists()


@pytest.mark.parametrize("act", _ALLOWED)
def test_what_stays_in_the_process_is_allowed(act: str, tmp_path: Path) -> None:
    recorded = _record(_PROGRAM.format(act=act), tmp_path)

    replayed = _replay(tmp_path)

    assert (replayed.status, replayed.stdout) == (0, recorded.stdout)


def test_events_that_python_modules_raise_are_never_refused(tmp_path: Path) -> None:
    _record(_PYTHON_EVENTS, tmp_path)

    replayed = _replay(tmp_path)

    assert (replayed.status, replayed.stdout) == (0, "all of them passed\n")


def test_a_file_that_c_code_opens_is_noted(tmp_path: Path) -> None:
    """The compiler opens the file that a syntax error names, to show its line."""
    _record(_SYNTAX_ERROR, tmp_path)

    info = _run([sys.executable, "-m", "replaydbg", "info", str(tmp_path / "recording.rdbg")], tmp_path)

    assert 'open("victim")' in info.stdout


def test_source_that_came_from_no_file_is_not_noted(tmp_path: Path) -> None:
    _record(_SYNTAX_ERROR.replace("victim", "<unknown>"), tmp_path)

    info = _run([sys.executable, "-m", "replaydbg", "info", str(tmp_path / "recording.rdbg")], tmp_path)

    assert "uncovered" not in info.stdout


def _set_the_stage(folder: Path) -> None:
    stage = folder / "stage"
    for path in stage.iterdir() if stage.exists() else ():
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    stage.mkdir(exist_ok=True)
    (stage / "victim").write_text("untouched")


def _record(program: str, folder: Path) -> Run:
    (folder / "program.py").write_text(program)
    _set_the_stage(folder)
    command = tool.record(sys.executable, folder / "recording.rdbg", [str(folder / "program.py")])
    return _run(command, folder / "stage")


def _replay(folder: Path) -> Run:
    return _run(tool.replay(sys.executable, folder / "recording.rdbg"), folder / "stage")


def _run(command: list[str], folder: Path) -> Run:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False, env=os.environ)
    return Run(done.stdout, done.stderr, done.returncode)
