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
def test_messages_never_go_to_stdout(
    words: list[str], stdout: str | None, status: int, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A store of its own: `ls` lists what other tests record.
    monkeypatch.setenv("XDG_DATA_HOME", str(recorded / "data"))

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


_REFUSED = "replaydbg: The system refused: No space left on device.\n"


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "-q", "r.rdbg"],
        ["replay", "--json", "r.rdbg"],
        ["info", "r.rdbg"],
        ["events", "r.rdbg"],
        ["events", "--json", "r.rdbg"],
        ["hits", "-h"],
        ["--help"],
        ["--version"],
    ],
)
def test_a_full_disk_is_reported(words: list[str], recorded: Path) -> None:
    ran = _tool(*words, cwd=recorded, shell=">/dev/full")

    # The program's own output goes to stderr with --json.
    assert ran.stderr.removeprefix("hello\n") == _REFUSED
    assert ran.returncode == 1


def test_an_error_as_json_that_cannot_be_written_is_reported_too(recorded: Path) -> None:
    ran = _tool("info", "--json", "no-such.rdbg", cwd=recorded, shell=">/dev/full")

    assert ran.stderr.startswith("replaydbg: No recording 'no-such.rdbg'")
    assert ran.stderr.endswith(_REFUSED)
    assert "Exception ignored" not in ran.stderr


def test_a_replay_into_a_full_file_ends(recorded: Path) -> None:
    """A limit of the size of files, as on a full disk."""
    code = "import sys\nfor each in range(4000): print('x' * 1000, flush=True)\nsys.exit(3)"
    assert _tool("record", "-q", "-o", "long.rdbg", "-c", code, cwd=recorded).returncode == 3

    ran = _tool("replay", "long.rdbg", cwd=recorded, shell=">written 2>&1")
    limited = subprocess.run(
        [
            "sh",
            "-c",
            'ulimit -f 1000; exec "$@" >limited',
            "sh",
            sys.executable,
            "-m",
            "replaydbg",
            "replay",
            "long.rdbg",
        ],
        cwd=recorded,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert (ran.returncode, (recorded / "written").stat().st_size) == (3, 4_004_000)
    assert (limited.returncode, limited.stderr) == (1, "replaydbg: The system refused: File too large.\n")


def test_a_full_stderr_leaves_the_exit_code(recorded: Path) -> None:
    assert _tool("info", "no-such.rdbg", cwd=recorded, shell="2>/dev/full").returncode == 2


@pytest.mark.parametrize("words", [["replay", "long.rdbg"], ["events", "long.rdbg"], ["--help"]])
def test_a_reader_that_has_seen_enough_is_no_failure(words: list[str], recorded: Path) -> None:
    code = "import sys\nfor each in range(4000): print('x' * 1000, flush=True)\nsys.exit(3)"
    assert _tool("record", "-q", "-o", "long.rdbg", "-c", code, cwd=recorded).returncode == 3
    command = [sys.executable, "-m", "replaydbg", *words]

    ran = subprocess.run(
        ["sh", "-c", '{ "$@"; echo $? >code; } | head -c 10', "sh", *command],
        cwd=recorded,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert ran.stderr == ""
    assert (recorded / "code").read_text() == ("3\n" if words[0] == "replay" else "0\n")
