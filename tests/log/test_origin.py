"""A command warns before it runs a program of unknown origin; recordings that this user made run without a warning."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from replaydbg.log.container import Writer
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.blocks import unpack_head
from replaydbg.log.sealed.origin import _has_mark
from tests.harness import tool
from tests.harness.build import with_header
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

_NOTICE = "was not recorded by you"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "program.py").write_text("print('hello')\n")
    recorded = run(tool.record(sys.executable, folder / "own.rdbg", ["program.py"]), cwd=folder, env=_env(folder))
    assert recorded.status == 0, recorded.stderr
    return folder / "own.rdbg"


def _env(home: Path) -> dict[str, str]:
    return {**passed_on(), "PATH": os.defpath, "XDG_DATA_HOME": str(home / "data")}


def _do(home: Path, *words: str | Path, stdin: bytes | None = None) -> Outcome:
    return run([sys.executable, "-m", "replaydbg", *map(str, words)], cwd=home, env=_env(home), stdin=stdin)


def test_a_project_does_not_suppress_the_notice(own: Path, tmp_path: Path) -> None:
    """The file may come with the recording."""
    (tmp_path / "pyproject.toml").write_text("[tool.replaydbg]\nquiet = true\n")

    assert _NOTICE in _do(tmp_path, "replay", own).stderr
    assert _do(tmp_path, "replay", "-q", own).stderr == ""


def test_a_recording_of_ones_own_runs_without_a_word(own: Path, tmp_path: Path) -> None:
    """Under another name and in another place as well; and the result of `pack`, too."""
    copied = Path(shutil.copy(own, tmp_path / "other.rdbg"))
    packed = _do(own.parent, "pack", copied, "-o", tmp_path / "packed.rdbg")

    for path in (own, copied, tmp_path / "packed.rdbg"):
        replayed = _do(own.parent, "replay", path)
        assert (replayed.stdout, replayed.stderr, replayed.status) == ("hello\n", "", 0), packed


def test_one_of_another_user_is_named_once_and_only_on_stderr(own: Path, tmp_path: Path) -> None:
    replayed = _do(tmp_path, "replay", own)
    quiet = _do(tmp_path, "replay", "-q", own)
    as_json = _do(tmp_path, "replay", "--json", own)
    debugged = _do(tmp_path, "debug", own, stdin=b"next\nquit\n")
    counted = _do(tmp_path, "hits", "--json", own)
    read = _do(tmp_path, "info", own)

    assert (replayed.stdout, replayed.status, quiet.stderr) == ("hello\n", 0, "")
    assert [each.stderr.count(_NOTICE) for each in (replayed, as_json, debugged, counted, read)] == [1, 1, 1, 1, 0]
    assert replayed.stderr.count("\n") == 1
    assert json.loads(as_json.stdout)["status"] == 0
    assert json.loads(counted.stdout)


def test_a_mark_is_of_this_file_alone(own: Path, tmp_path: Path) -> None:
    """The mark is invalid for another header, for a file with another one's mark, and for one with appended bytes."""
    data = own.read_bytes()
    changed = with_header(own, tmp_path / "changed.rdbg", lambda header: header.update(name="other"))
    borrowed = tmp_path / "borrowed.rdbg"
    borrowed.write_bytes(changed.read_bytes() + data[-80:])
    flipped = tmp_path / "flipped.rdbg"
    # In the import world: with a damaged header nothing of it could run, and no notice is needed.
    half = len(data) // 2
    flipped.write_bytes(data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :])
    longer = tmp_path / "longer.rdbg"
    longer.write_bytes(data + data[-80:])

    for path in (changed, borrowed, flipped, longer):
        assert _NOTICE in _do(own.parent, "replay", path).stderr, path
    packed = tmp_path / "packed.rdbg"
    _do(own.parent, "pack", changed, "-o", packed)
    assert _NOTICE in _do(own.parent, "replay", packed).stderr


def test_a_live_directory_is_ones_own_where_it_was_made(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('ready', flush=True)\ninput()\n")
    command = tool.record(sys.executable, tmp_path / "r.rdbg", ["program.py"])
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_env(tmp_path), start_new_session=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGKILL)
    live = tmp_path / "r.rdbg-live"
    copied = tmp_path / "copied.rdbg-live"
    shutil.copytree(live, copied)
    renamed = live.rename(tmp_path / "renamed.rdbg-live")

    assert _NOTICE not in _do(tmp_path, "replay", renamed).stderr
    assert "nothing shows that you recorded" in _do(tmp_path, "replay", copied).stderr


def test_a_copy_of_a_live_directory_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os\nos.kill(os.getppid(), 9)\nos.kill(os.getpid(), 9)\n")
    run(tool.record(sys.executable, tmp_path / "r.rdbg", ["program.py"]), cwd=tmp_path, env=_env(tmp_path))
    shutil.copytree(tmp_path / "r.rdbg-live", tmp_path / "copied.rdbg-live")

    refused = _do(tmp_path, "resume", "copied")
    (tmp_path / "r.rdbg-live" / "mark").unlink()
    unsigned = _do(tmp_path, "resume", "r")

    assert (refused.status, unsigned.status) == (2, 2)
    assert "recognized only in the directory in which it was recorded: move that, do not copy it" in refused.stderr
    assert "it has no signature, as that of a process which was killed right after it was forked" in unsigned.stderr


def test_the_key_is_its_users_alone_and_others_are_none(own: Path, tmp_path: Path) -> None:
    key = own.parent / "data" / "replaydbg" / "key"
    found = key.stat()
    elsewhere = tmp_path / "data" / "replaydbg" / "key"
    elsewhere.parent.mkdir(parents=True)
    shutil.copy(key, elsewhere)
    elsewhere.chmod(0o644)

    assert stat.S_IMODE(found.st_mode) == 0o600 and stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert _NOTICE in _do(tmp_path, "replay", own).stderr


def test_a_home_that_takes_no_key_stops_no_recording(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    (tmp_path / "program.py").write_text("print('hello')\n")

    recorded = _do(tmp_path, "record", "-o", tmp_path / "r.rdbg", "program.py")
    replayed = _do(tmp_path, "replay", tmp_path / "r.rdbg")

    assert (recorded.status, recorded.stdout, replayed.stdout) == (0, "hello\n", "hello\n")
    assert _NOTICE in replayed.stderr


@pytest.fixture(scope="module")
def long(own: Path) -> Path:
    """Return a recording of our own with more than 4 MiB."""
    (own.parent / "long.py").write_text("print(len(open('large', 'rb').read()))\n")
    (own.parent / "large").write_bytes(os.urandom(6 << 20))
    recorded = run(
        tool.record(sys.executable, own.parent / "long.rdbg", ["long.py"]), cwd=own.parent, env=_env(own.parent)
    )
    assert recorded.status == 0, recorded.stderr
    return own.parent / "long.rdbg"


def _with_flags(data: bytes, change: int) -> bytes:
    head = unpack_head(data)
    flags = int.from_bytes(data[12:16], "little") ^ change
    changed = data[:12] + flags.to_bytes(4, "little") + data[16:24]
    assert head.is_sound
    return changed + zlib.crc32(changed).to_bytes(8, "little") + data[32:]


def test_a_long_recording_of_ones_own_runs_without_a_word(long: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copy(long, tmp_path / "other.rdbg"))
    packed = _do(long.parent, "pack", copied, "-o", tmp_path / "packed.rdbg")

    for path in (long, copied, tmp_path / "packed.rdbg"):
        assert unpack_head(path.read_bytes()).is_mark_long
        replayed = _do(long.parent, "replay", path)
        assert (replayed.stdout, replayed.stderr, replayed.status) == (f"{6 << 20}\n", "", 0), packed


def test_a_mark_of_a_long_recording_covers_each_byte(long: Path, tmp_path: Path) -> None:
    """Also those of the contents of files, whatever their checksums are; and it is not a mark of the other kind."""
    data = long.read_bytes()
    changed = tmp_path / "changed.rdbg"
    key = _key_of(long.parent)
    with open_recording(long) as recording:
        place = recording.content_in_place()
        assert place is not None
    for at in (40, place.first, place.first + 3_000_000, len(data) - 1):
        changed.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert not _has_mark(changed, key), at
    for other in (data[:-1], data + b"\0", data + data[-80:], _with_flags(data, 4)):
        changed.write_bytes(other)
        assert not _has_mark(changed, key)
    assert _has_mark(long, key)
    assert not _has_mark(long, bytes(32))


def test_a_long_recording_with_the_mark_of_a_short_one_is_ones_own(long: Path, tmp_path: Path) -> None:
    """Earlier versions wrote such."""
    key = _key_of(long.parent)
    with open_recording(long) as recording, (tmp_path / "earlier.rdbg").open("wb") as file:
        writer = Writer(file, key=key)
        for name in recording.sections:
            writer.section(name, recording.pieces(name))
        writer.finish(syncs=False)

    assert not unpack_head((tmp_path / "earlier.rdbg").read_bytes()).is_mark_long
    assert _has_mark(tmp_path / "earlier.rdbg", key)


def _key_of(home: Path) -> bytes:
    return (home / "data" / "replaydbg" / "key").read_bytes()
