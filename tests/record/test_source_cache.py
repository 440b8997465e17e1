"""The cache of compressed sources: a recording is the same with it and without it, whatever is in the cache."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.shared import compressor
from replaydbg.record import record
from replaydbg.record.caches.source_cache import PackedSource, SourceCache, identity

KEY = b"k" * 32
_LONG_AGO = time.time_ns() - 3_600_000_000_000


def _entry(content: bytes) -> PackedSource:
    return PackedSource("ab" * 16, len(content), compressor()(content))


@pytest.fixture
def aged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a source that was changed an hour ago, as far as the cache can tell."""
    source = tmp_path / "lib" / "one.py"
    source.parent.mkdir()
    source.write_text("X = 1\n")
    # The time at which an inode changed cannot be set: the clock is.
    monkeypatch.setattr(time, "time_ns", lambda: time.monotonic_ns() + (1 << 62))
    yield source


def _saved(tmp_path: Path, source: Path, key: bytes = KEY) -> Path:
    cache = SourceCache(str(tmp_path / "cache"), key)
    cache.add(str(source), source.stat(), _entry(source.read_bytes()))
    cache.save()
    return tmp_path / "cache"


def _found(directory: Path, source: Path, key: bytes = KEY) -> PackedSource | None:
    return SourceCache(str(directory), key).find(str(source), source.stat())


def test_an_entry_is_found_again(tmp_path: Path, aged: Path) -> None:
    directory = _saved(tmp_path, aged)

    assert _found(directory, aged) == _entry(b"X = 1\n")
    assert [oct(each.stat().st_mode & 0o777) for each in directory.iterdir()] == ["0o600"]
    assert oct(directory.stat().st_mode & 0o777) == "0o700"


def test_entries_of_one_directory_are_kept_together(tmp_path: Path, aged: Path) -> None:
    directory = _saved(tmp_path, aged)
    other = aged.with_name("two.py")
    other.write_text("Y = 2\n")

    _saved(tmp_path, other)

    assert len(list(directory.iterdir())) == 1
    assert _found(directory, aged) is not None
    assert _found(directory, other) is not None


def test_a_changed_source_has_no_entry(tmp_path: Path, aged: Path) -> None:
    directory = _saved(tmp_path, aged)
    times = (aged.stat().st_atime_ns, aged.stat().st_mtime_ns)

    aged.write_text("X = 2\n")
    os.utime(aged, ns=times)

    assert _found(directory, aged) is None


def test_a_replaced_source_has_no_entry(tmp_path: Path, aged: Path) -> None:
    directory = _saved(tmp_path, aged)

    aged.with_name("new").write_text("X = 3\n")
    aged.with_name("new").rename(aged)

    assert _found(directory, aged) is None


def test_a_source_that_was_just_changed_gets_no_entry(tmp_path: Path) -> None:
    """It may change again, to the same length, before the clock of the file system ticks."""
    source = tmp_path / "one.py"
    source.write_text("X = 1\n")

    directory = _saved(tmp_path, source)

    assert not directory.exists()


def test_another_users_key_finds_nothing(tmp_path: Path, aged: Path) -> None:
    directory = _saved(tmp_path, aged, b"x" * 32)

    assert _found(directory, aged) is None


def test_a_file_of_another_directory_is_not_believed(tmp_path: Path, aged: Path) -> None:
    directory = _saved(tmp_path, aged)
    other = tmp_path / "other" / "one.py"
    other.parent.mkdir()
    os.link(aged, other)
    (packed,) = directory.iterdir()
    target = SourceCache(str(directory), KEY)._path(str(other.parent))

    packed.rename(target)

    assert identity(other.stat())[:3] == identity(aged.stat())[:3]
    assert _found(directory, other) is None


def test_no_damaged_byte_goes_unnoticed(tmp_path: Path, aged: Path) -> None:
    directory = _saved(tmp_path, aged)
    (packed,) = directory.iterdir()
    data = packed.read_bytes()

    for at in range(len(data)):
        packed.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert _found(directory, aged) is None
        packed.write_bytes(data[:at])
        assert _found(directory, aged) is None


@pytest.mark.parametrize("kind", ["directory", "link", "pipe"])
def test_odd_files_are_left_alone(tmp_path: Path, aged: Path, kind: str) -> None:
    directory = _saved(tmp_path, aged)
    (packed,) = directory.iterdir()
    packed.rename(tmp_path / "real")
    if kind == "directory":
        packed.mkdir()
    elif kind == "link":
        packed.symlink_to(tmp_path / "real")
    else:
        os.mkfifo(packed)

    assert _found(directory, aged) is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, aged: Path) -> None:
    (tmp_path / "cache").write_text("in the way")

    _saved(tmp_path, aged)

    assert _found(tmp_path / "cache", aged) is None


def test_the_oldest_files_are_removed_when_it_is_too_large(
    tmp_path: Path, aged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replaydbg.record.caches.source_cache._MOST", 1000)
    directory = tmp_path / "cache"
    directory.mkdir()
    for number in range(4):
        (directory / str(number)).write_bytes(bytes(300))
        os.utime(directory / str(number), (number, number))

    _saved(tmp_path, aged)

    assert {each.name for each in directory.iterdir() if len(each.name) == 1} == {"3"}
    assert _found(directory, aged) is not None


def test_a_recording_is_the_same_with_and_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "small.py").write_text("X = 1\n" * 100)
    (package / "large.py").write_text("# much\n" * 300_000)
    (package / "twin.py").write_text("X = 1\n" * 100)
    program = tmp_path / "main.py"
    program.write_text(f"import sys; sys.path.append({str(package)!r}); import small, large, twin\n")
    for each in package.iterdir():
        os.utime(each, ns=(_LONG_AGO, _LONG_AGO))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("replaydbg.record.caches.source_cache._YOUNG", 0)
    directory = tmp_path / "cache" / "replaydbg" / "sources"

    found = []
    for name in ("first", "second", "third"):
        result = record([str(program)], output=tmp_path / f"{name}.rdbg")
        with open_recording(result.path) as recording:
            assert recording.end is not None
            checked = recording.check()
            sources = {each: recording.section(each) for each in recording.sections if each.startswith("source/")}
            found.append((dict(recording.end.sources), sources, sorted(checked.sizes) and recording.problems))
        (used,) = [each for each in directory.iterdir() if b"small.py" in each.read_bytes()]
        if name == "second":
            used.write_bytes(used.read_bytes()[:-1])

    assert found[0] == found[1] == found[2]
    assert (package / "large.py").read_bytes() in found[0][1].values()
