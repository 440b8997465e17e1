"""Contents of large files in a replay: used where they are in the recording, or unpacked, and always those recorded."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.log.files import PIECE
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.build import Example
from tests.harness.replays import passed_on, run

_READS = """\
import hashlib, os, sys
with open("large", "rb", buffering=0) as file:
    for size in (1024, 8192, 3 << 20, 1500):
        print(hashlib.sha256(file.read(size)).hexdigest())
    for at in ((1 << 20) - 1000, (2 << 20) - 1, 1 << 20, 5_000_000, 77):
        file.seek(at)
        print(at, hashlib.sha256(file.read(5000)).hexdigest())
    file.seek(0)
    buffer = bytearray(4 << 20)
    print(file.readinto(buffer), hashlib.sha256(buffer).hexdigest())
    print(hashlib.sha256(file.readall()).hexdigest())
with open("large", "rb") as file:
    print(hashlib.sha256(file.read()).hexdigest(), file.tell())
"""


def _recorded(folder: Path, program: str, content: bytes) -> tuple[Path, str]:
    (folder / "program.py").write_text(program)
    (folder / "large").write_bytes(content)
    recording = folder / "r.rdbg"
    done = run(tool.record(sys.executable, recording, ["program.py"]), cwd=folder, env=_env())
    assert done.status == 0, done.stderr
    (folder / "large").unlink()
    return recording, done.stdout


def _env() -> dict[str, str]:
    return {**passed_on(), "PATH": os.defpath}


_CONTENTS: dict[str, Callable[[int], bytes]] = {
    "random": os.urandom,
    "text": lambda size: (b"a line of text\n" * (size // 15 + 1))[:size],
    # Some blocks are compressed, some are not.
    "both": lambda size: os.urandom(size // 2) + bytes(size - size // 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 1, 6_000_000, 8 << 20])
@pytest.mark.parametrize("kind", _CONTENTS)
def test_reads_replay(tmp_path: Path, kind: str, size: int) -> None:
    recording, printed = _recorded(tmp_path, _READS, _CONTENTS[kind](size))

    replayed = run(tool.replay(sys.executable, recording), cwd=tmp_path, env=_env())
    with open_recording(recording) as opened:
        place = opened.content_in_place()

    assert (replayed.stdout, replayed.stderr, replayed.status) == (printed, "", 0)
    assert (place is not None) == (kind == "random" and size % PIECE == 0)  # zeros fill the last piece


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3 * PIECE + 1))
def test_the_place_has_the_content(size: int) -> None:
    import tempfile

    content = os.urandom(size)
    with tempfile.TemporaryDirectory() as name:
        path = Example(content=content).write(Path(name))
        with open_recording(path) as recording:
            place = recording.content_in_place()
            assert place is not None
            offsets = range(0, size, PIECE)
            found = [
                os.pread(place.fd, min(PIECE, size - at), place.first + at // PIECE * place.stride) for at in offsets
            ]
            assert (place.size, place.mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)

    assert b"".join(found) == content


def test_other_contents_have_no_place(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    paths = [
        Example().write(tmp_path, "none"),
        Example(content=bytes(2 * PIECE)).write(tmp_path, "compressed"),
        Example(content=os.urandom(PIECE) + bytes(PIECE)).write(tmp_path, "both"),
        Example(content=os.urandom(PIECE)).write_live(tmp_path / "live"),
    ]

    for path in paths:
        with open_recording(path) as recording:
            assert recording.content_in_place() is None, path


@pytest.mark.slow
@pytest.mark.parametrize("piece", [0, 2])
def test_a_damaged_piece_ends_the_replay_before_it_is_read(tmp_path: Path, piece: int) -> None:
    program = """\
        with open("large", "rb", buffering=0) as file:
            while data := file.read(1 << 20):
                print(sum(data), flush=True)
    """
    recording, printed = _recorded(tmp_path, program.replace("\n        ", "\n").strip(), os.urandom(4 << 20))
    with open_recording(recording) as opened:
        place = opened.content_in_place()
        assert place is not None
    with recording.open("r+b") as file:
        file.seek(place.first + piece * place.stride + 1000)
        (byte,) = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))

    replayed = run(tool.replay(sys.executable, recording), cwd=tmp_path, env=_env())

    assert replayed.stdout == "".join(printed.splitlines(keepends=True)[:piece])
    assert replayed.status == tool.ENDS_EARLY


def _grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def _cut(path: Path) -> None:
    os.truncate(path, 1000)


def _overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"other bytes")


@pytest.mark.slow
@pytest.mark.parametrize("change", [_grow, _cut, _overwrite])
def test_a_recording_that_is_changed_ends_its_replay(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """The program writes more than a pipe holds, and so waits for the change."""
    program = """\
with open("large", "rb", buffering=0) as file:
    print(len(file.read(5000)), "x" * 200_000, flush=True)
    while data := file.read(1 << 20):
        print(sum(data), flush=True)
"""
    recording, _ = _recorded(tmp_path, program, os.urandom(4 << 20))
    with subprocess.Popen(
        tool.replay(sys.executable, recording),
        cwd=tmp_path,
        env=_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(4) == b"5000"
        change(recording)
        rest, errors = process.stdout.read(), process.stderr.read().decode()
        status = process.wait(timeout=60)

    assert rest.count(b"\n") <= 2  # of the piece that was in use
    assert "divergence-content" in errors
    assert status == tool.DIVERGED


@pytest.mark.slow
def test_a_recording_that_is_replaced_or_removed_replays_to_its_end(tmp_path: Path) -> None:
    program = """\
with open("large", "rb", buffering=0) as file:
    print(len(file.read(5000)), "x" * 200_000, flush=True)
    while data := file.read(1 << 20):
        print(sum(data), flush=True)
"""
    recording, printed = _recorded(tmp_path, program, os.urandom(4 << 20))
    with subprocess.Popen(
        tool.replay(sys.executable, recording), cwd=tmp_path, env=_env(), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        begin = process.stdout.read(4)
        (tmp_path / "other").write_bytes(b"another recording")
        (tmp_path / "other").rename(recording)
        assert (begin + process.stdout.read()).decode() == printed
        assert process.wait(timeout=60) == 0
