"""C code that ends the process: if recorded, it is the program's end; anywhere else no replay counts as complete."""

import os
import sys
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run

# The sleeps are what the program is in when C code ends it, or crossings that follow.
_AS_RECORDED = {
    "libc.syscall(231, 3)": 3,
    "libc._exit(5)": 5,
    "libc.exit(6)": 6,
    "faulthandler.dump_traceback_later(0.1, exit=True); time.sleep(60)": 1,
    "libc.sigfillset(every); libc.sigprocmask(0, every, None); libc._exit(7)": 7,
}
_START = "import ctypes, faulthandler, time\nlibc = ctypes.CDLL(None)\nevery = (ctypes.c_ulong * 16)()\nprint('one')\n"
# Behind a fence a process can gain no privileges, and can query that: C code can detect that it is replayed.
_ONLY_IN_A_REPLAY = "if libc.prctl(39, 0, 0, 0, 0) == 1: {end}\nfor i in range(3): time.sleep(0)\n"

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="system calls by their numbers there")


@pytest.mark.parametrize(("end", "status"), _AS_RECORDED.items())
def test_an_end_that_was_recorded_is_whole(end: str, status: int, tmp_path: Path) -> None:
    assert _record(tmp_path, _START + end) == status

    replayed = _tool(tmp_path, "replay", "r.rdbg")
    debugged = _tool(tmp_path, "debug", "--batch", "-c", "end", "-c", "where", "r.rdbg")

    assert (replayed.status, replayed.stdout) == (status, "one\n"), replayed.stderr
    assert debugged.status == 0, debugged.stderr
    assert "lost" not in debugged.stderr


@pytest.mark.parametrize("end", ["libc.syscall(231, 0)", "libc._exit(0)", "libc.syscall(60, 0)"])
@pytest.mark.parametrize("options", [[], ["-q"]])
def test_an_end_that_was_not_recorded_is_a_divergence(end: str, options: list[str], tmp_path: Path) -> None:
    """Even with the recorded status."""
    assert _record(tmp_path, _START + _ONLY_IN_A_REPLAY.format(end=end)) == 0

    replayed = _tool(tmp_path, "replay", *options, "r.rdbg")

    assert replayed.status == tool.DIVERGED, replayed.stdout
    ends = ("before the end of the recording", "ended earlier than in the recording")
    assert any(text in replayed.stderr for text in ends)


def _record(directory: Path, program: str) -> int:
    (directory / "program.py").write_text(program)
    command = tool.record(sys.executable, directory / "r.rdbg", ["-u", "program.py"])
    return run(command, cwd=directory, env=_env()).status


def _tool(directory: Path, *args: str) -> Outcome:
    return run([sys.executable, "-m", "replaydbg", *args], cwd=directory, env=_env())


def _env() -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
