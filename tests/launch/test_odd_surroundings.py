"""Recording and replaying in unusual surroundings: names that are not UTF-8, closed or full streams, no directory."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replays import passed_on, run

pytestmark = pytest.mark.slow

_PROGRAM = """import os, sys
print(ascii(sys.argv), ascii(__file__), ascii(os.environ["ODD"]), os.listdir(b"."))
assert open(sys.argv[1]).read() == "content"
1 / 0
"""


def _env(**more: str) -> dict[str, str]:
    return {**passed_on(), "PATH": os.defpath, **more}


def test_names_that_are_no_utf8_replay(tmp_path: Path) -> None:
    """The directory, the program, its argument, its environment and the recording have names that are not UTF-8."""
    directory = tmp_path / os.fsdecode(b"d\xff")
    directory.mkdir()
    program, data = os.fsdecode(b"p\xfe.py"), os.fsdecode(b"f\xfd")
    (directory / program).write_text(_PROGRAM)
    (directory / data).write_text("content")
    recording = directory / os.fsdecode(b"r\xfc.rdbg")
    env = _env(ODD=os.fsdecode(b"\xfb"))

    recorded = run(tool.record(sys.executable, recording, [program, data]), cwd=directory, env=env)
    (directory / program).unlink()
    (directory / data).unlink()
    replayed = run(tool.replay(sys.executable, recording), cwd=tmp_path, env=env)

    assert "ZeroDivisionError" in recorded.stderr
    assert (recorded.stdout, recorded.stderr, recorded.status) == (replayed.stdout, replayed.stderr, replayed.status)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_streams_that_take_nothing_change_no_exit_code(closed: str, tmp_path: Path) -> None:
    """The recording's name cannot be printed; it is complete all the same, and the exit code is the program's."""
    recording = tmp_path / "r.rdbg"
    command = shlex.join([sys.executable, "-m", "replaydbg", "record", "-o", str(recording), "-c", "exit(7)"])

    recorded = run(["sh", "-c", f"{command} {closed}"], cwd=tmp_path, env=_env())
    command = shlex.join([sys.executable, "-m", "replaydbg", "replay", str(recording)])
    replayed = run(["sh", "-c", f"{command} {closed}"], cwd=tmp_path, env=_env())

    assert (recorded.status, replayed.status) == (7, 7)
    assert "Traceback" not in recorded.stderr + replayed.stderr


def test_a_replay_without_streams_gives_no_file_of_ours_the_output(tmp_path: Path) -> None:
    recording = tmp_path / "r.rdbg"
    run(tool.record(sys.executable, recording, ["-c", "print('output')"]), cwd=tmp_path, env=_env())
    before = recording.read_bytes()
    command = shlex.join([sys.executable, "-m", "replaydbg", "replay", str(recording)])

    replayed = run(["sh", "-c", f"{command} <&- >&- 2>&-"], cwd=tmp_path, env=_env())

    assert (replayed.status, recording.read_bytes()) == (0, before)


def test_a_directory_that_is_gone_can_be_recorded_in(tmp_path: Path) -> None:
    gone, recording = tmp_path / "gone", tmp_path / "r.rdbg"
    code = "import os\ntry:\n    os.getcwd()\nexcept FileNotFoundError as error:\n    print(error)"
    command = shlex.join([sys.executable, "-m", "replaydbg", "record", "-o", str(recording), "-q", "--", "-c", code])
    gone.mkdir()

    recorded = run(["sh", "-c", f"rmdir {gone} && {command}"], cwd=gone, env=_env())
    replayed = run(tool.replay(sys.executable, recording), cwd=tmp_path, env=_env())

    assert (recorded.stdout, recorded.status) == ("[Errno 2] No such file or directory\n", 0)
    assert (replayed.stdout, replayed.status) == (recorded.stdout, 0)
