"""Standard streams that are closed or full: no message reaches the wrong stream, and none is lost in silence."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "print('hello')"


def _tool(*words: str, cwd: Path, shell: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command with the redirections in `shell`."""
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-m", "replaydbg", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A directory with the recording `r.rdbg`."""
    assert _tool("record", "-q", "-o", "r.rdbg", "-c", PROGRAM, cwd=tmp_path).returncode == 0
    return tmp_path


@pytest.mark.parametrize(
    ("words", "stdout", "status"),
    [
        (["record", "-o", "a.rdbg", "-c", PROGRAM], "hello\n", 0),
        (["record", "--json", "-o", "b.rdbg", "-c", PROGRAM], "hello\n", 0),
        (["record", "-o", "c.rdbg", "no-such-program.py"], "", 2),
        (["record", "--no-such-option"], "", 2),
        (["no-such-command"], "", 2),
        (["info", "no-such.rdbg"], "", 2),
        (["replay", "--to", "5", "r.rdbg"], "", 0),
        (["ls"], None, 0),
    ],
)
def test_messages_never_go_to_stdout(words: list[str], stdout: str | None, status: int, recorded: Path) -> None:
    ran = _tool(*words, cwd=recorded, shell="2>&-")

    assert ran.returncode == status
    assert "replaydbg" not in ran.stdout
    assert "usage" not in ran.stdout
    if stdout is not None:
        assert ran.stdout == stdout


def test_a_recorded_program_finds_stderr_closed_too(tmp_path: Path) -> None:
    code = "import os; print(os.open(os.devnull, os.O_RDONLY), flush=True)"

    ran = _tool("record", "-o", "r.rdbg", "-c", code, cwd=tmp_path, shell="2>&-")

    assert ran.stdout == "2\n"
