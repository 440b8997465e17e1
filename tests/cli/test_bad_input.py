"""A damaged recording, or a file that is none, gets one clear sentence and its exit code.

There is never a traceback, and never a wrong answer.
"""

import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replays import TIMEOUT, Outcome, passed_on, run

pytestmark = pytest.mark.slow

_COMMANDS = ("replay", "info", "events", "verify")
_FINE, _BAD, _USAGE = 0, 1, 2
_PROGRAM = """import os, random, sys, time
for number in range(40):
    print(number, time.time(), random.random(), os.urandom(4).hex(), flush=True)
    os.stat(".")
data = os.urandom(200_000)
print(len(data), hash("text"))
sys.exit(7)
"""
_STATUS = 7
# Format number, flags, offset of the index block, checksum of the 24 bytes before it.
_HEADER = struct.Struct("<8sIIQQ")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A complete recording, and the program's output."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "program.py").write_text(_PROGRAM)
    recording = folder / "good.rdbg"
    recorded = run(tool.record(sys.executable, recording, ["program.py"]), cwd=folder, env=_env())
    assert recorded.status == _STATUS, recorded.stderr
    return recording, recorded.stdout


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory left behind when the launcher is killed; its header is plain JSON."""
    folder = tmp_path_factory.mktemp("live")
    # It sleeps to be there when it is killed.
    (folder / "program.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(50)\n")
    command = tool.record(sys.executable, folder / "r.rdbg", ["program.py"])
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, env=_env(), start_new_session=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        os.killpg(process.pid, signal.SIGKILL)
    assert first == b"ready\n"
    found = folder / "r.rdbg-live"
    assert found.is_dir()
    return found


@pytest.mark.parametrize("command", _COMMANDS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"R",
        b"just a text\n",
        b"RDBGREC\n",
        b"RDBGLOG\0" + b"\0" * 56,
        b"\x89PNG\r\n\x1a\n" + b"\0" * 500,
        b"\0" * 4096,
    ],
    ids=["empty", "one_byte", "text", "magic_alone", "bare_log", "picture", "zeros"],
)
def test_a_file_that_is_no_recording_is_named_so(command: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "strange.rdbg"
    path.write_bytes(content)

    said = _ask(command, path)

    assert said.status == _BAD
    _assert_one_sentence(said, "strange.rdbg")


@pytest.mark.parametrize("command", _COMMANDS)
def test_other_things_than_files(command: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    for path, status in ((tmp_path / "missing.rdbg", _USAGE), (tmp_path / "folder", _BAD), (Path(os.devnull), _BAD)):
        said = _ask(command, path)

        assert said.status == status, f"{path}: {said}"
        _assert_one_sentence(said, path.name)


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_newer_format_is_named(command: str, good: tuple[Path, str], tmp_path: Path) -> None:
    data = bytearray(good[0].read_bytes())
    magic, _, flags, index, _ = _HEADER.unpack_from(data)
    head = struct.pack("<8sIIQ", magic, 99, flags, index)
    data[: _HEADER.size] = head + struct.pack("<Q", zlib.crc32(head))
    path = tmp_path / "newer.rdbg"
    path.write_bytes(data)

    said = _ask(command, path)

    assert said.status == _BAD
    assert "format 99" in said.stderr
    _assert_one_sentence(said, "newer.rdbg")


def test_a_newer_format_of_a_live_recording_is_named(live: Path, tmp_path: Path) -> None:
    changed = _with_header(live, tmp_path, {"format": 99})

    said = _ask("replay", changed)

    assert said.status == _BAD
    assert "format 99" in said.stderr
    _assert_one_sentence(said, changed.name)


def test_a_recording_of_another_python_is_refused_by_replay_only(live: Path, tmp_path: Path) -> None:
    python = json.loads((live / "header.json").read_text())["python"]
    other = {
        **python,
        "version": "3.9.1",
        "hexversion": 0x030901F0,
        "cache_tag": "cpython-39",
        "executable": "/no/python3.9",
    }
    changed = _with_header(live, tmp_path, {"python": other})

    said, info = _ask("replay", changed), _ask("info", changed)

    assert said.status == 2
    assert "3.9.1" in said.stderr
    assert said.stdout == ""
    _assert_one_sentence(said, changed.name)
    assert info.status == _FINE, info.stderr
    assert "3.9.1" in info.stdout


@pytest.mark.parametrize("share", range(5))
def test_a_truncated_recording_replays_its_beginning_or_says_why_not(
    share: int, good: tuple[Path, str], tmp_path: Path
) -> None:
    recording, output = good
    data = recording.read_bytes()
    places = [len(data) - 1, 31, 32, 100] if share == 0 else random.Random(share).sample(range(len(data)), 6)

    for place in places:
        path = tmp_path / "cut.rdbg"
        path.write_bytes(data[:place])

        _assert_no_wrong_answer(path, output, f"cut at {place} of {len(data)}")


@pytest.mark.parametrize("share", range(5))
def test_a_corrupted_recording_replays_its_beginning_or_says_why_not(
    share: int, good: tuple[Path, str], tmp_path: Path
) -> None:
    recording, output = good
    data = recording.read_bytes()
    chance = random.Random(100 + share)

    for _ in range(6):
        place = chance.randrange(len(data))
        changed = bytearray(data)
        changed[place] ^= chance.randrange(1, 256)
        path = tmp_path / "corrupt.rdbg"
        path.write_bytes(changed)

        _assert_no_wrong_answer(path, output, f"byte {place} changed")


def test_a_truncated_live_log_replays_its_beginning(live: Path, tmp_path: Path) -> None:
    for place in (0, 40, 64, 200):
        changed = _with_header(live, tmp_path / str(place), {})
        os.truncate(changed / "log", place)

        said = _ask("replay", changed)

        assert "Traceback" not in said.stderr, said.stderr
        assert "ready\n".startswith(said.stdout)


def test_a_recording_of_which_parts_are_missing(live: Path, tmp_path: Path) -> None:
    for name in ("header.json", "log", "world", "boot", "content"):
        changed = _with_header(live, tmp_path / name, {})
        (changed / name).unlink(missing_ok=True)

        for command in _COMMANDS:
            said = _ask(command, changed)

            assert "Traceback" not in said.stderr, f"{name}, {command}: {said.stderr}"
            assert said.status != _FINE or name in ("boot", "content", "world"), f"{name}, {command}: {said}"


def test_opening_executes_nothing(good: tuple[Path, str], tmp_path: Path) -> None:
    """A program named in the environment or placed beside the recording does not run when the recording is read."""
    path = tmp_path / "good.rdbg"
    shutil.copy(good[0], path)
    for name in ("sitecustomize.py", "program.py", "json.py", "zlib.py"):
        (tmp_path / name).write_text("open('executed', 'w').close()\n")

    for command in _COMMANDS[1:]:
        _ask(command, path)

    assert not (tmp_path / "executed").exists()


def _assert_no_wrong_answer(path: Path, output: str, what: str) -> None:
    said = _ask("replay", path)
    assert "Traceback" not in said.stderr, f"{what}: {said.stderr}"
    assert output.startswith(said.stdout), f"{what}: a wrong answer: {said.stdout[-300:]!r}"
    if said.stdout == output:
        assert said.status in (_STATUS, _FINE, _BAD, 3), f"{what}: {said.status}: {said.stderr}"
    else:
        assert said.stderr.strip(), f"{what}: says nothing, exit code {said.status}"
    verified = _ask("verify", path)
    assert verified.status == _BAD, f"{what}: verify found nothing: {verified}"
    assert "Traceback" not in verified.stderr, f"{what}: {verified.stderr}"


def _assert_one_sentence(said: Outcome, name: str) -> None:
    assert "Traceback" not in said.stderr
    assert name in said.stderr, said.stderr
    assert 0 < len(said.stderr.strip().splitlines()) <= 3, said.stderr


def _with_header(live: Path, folder: Path, changes: dict[str, object]) -> Path:
    """Return a copy of the live recording in `folder` with other entries in its header."""
    copied = folder / "copied.rdbg-live"
    shutil.copytree(live, copied)
    header = json.loads((copied / "header.json").read_text())
    (copied / "header.json").write_text(json.dumps({**header, **changes}))
    return copied


def _ask(command: str, path: Path) -> Outcome:
    # From the recording's own folder: `-m replaydbg` would put it on sys.path, so the installed command is used.
    launcher = Path(sys.executable).with_name("replaydbg")
    return run([str(launcher), command, str(path)], cwd=path.parent, env=_env(), timeout=TIMEOUT)


def _env() -> dict[str, str]:
    return {
        **passed_on(),
        "PATH": os.environ.get("PATH", os.defpath),
        "XDG_DATA_HOME": "/dev/null/nonexistent",
    }
