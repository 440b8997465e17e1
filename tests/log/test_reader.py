"""A recording opens or fails with its sentence, however it is cut or damaged, and never returns a wrong event."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replaydbg.errors import Corrupt, NewerFormat, NoSuchRecording, NotARecording, ReplaydbgError
from replaydbg.events.records import Control, ControlKind, Entry, Event
from replaydbg.events.stops import StopReason
from replaydbg.events.values import ContentRef, ExceptionValue, TypeName
from replaydbg.log.coding import encode as codec
from replaydbg.log.coding.encode import encode_value, varint
from replaydbg.log.container import Writer, seal
from replaydbg.log.entries.logfile import LOG_HEADER, pack_log_header, read_log_header
from replaydbg.log.files import PIECE
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed import blocks
from tests.harness.build import Example, LogBuilder, example, header_json
from tests.harness.sanitizer import without_runtime

# One directory for all examples of a property: each overwrites the file of the one before.
REPEATED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def events_of(path: Path) -> list[Entry]:
    """Return the whole event log."""
    with open_recording(path) as recording:
        return list(recording.events())


def gives_only(path: Path, expected: list[Entry]) -> bool:
    """Return whether a damaged recording fails with a sentence, or reports the damage after a prefix of `expected`."""
    try:
        recording = open_recording(path)
    except ReplaydbgError as error:
        return str(error).endswith(".")
    with recording:
        found = list(recording.events())
        list(recording.world())
        is_told = bool(recording.problems) or found == expected
        return is_told and found == expected[: len(found)]


@pytest.fixture(scope="module")
def sealed() -> Iterator[tuple[bytes, list[Entry]]]:
    with tempfile.TemporaryDirectory() as name:
        path = example(20).write(Path(name))
        yield path.read_bytes(), events_of(path)


@pytest.fixture(scope="module")
def large() -> Iterator[tuple[bytes, list[Entry]]]:
    """A recording whose log takes several blocks."""
    log = LogBuilder()
    for number in range(40):
        # Incompressible noise: the blocks are to be spread over the file.
        log.crossing(1, os.urandom(60_000), arguments=(60_000,), line=number)
    with tempfile.TemporaryDirectory() as name:
        path = Example(log=log.to_bytes()).write(Path(name))
        yield path.read_bytes(), events_of(path)


def test_everything_comes_back(tmp_path: Path) -> None:
    made = example(2)

    with open_recording(made.write(tmp_path)) as recording:
        entries = list(recording.events())
        answers = list(recording.world())

        assert recording.ok
        assert recording.problems == ()
        assert recording.name == "run-1"
        assert dict(recording.header.raw) == made.header
        assert recording.header.env["ODD"] == "\udcff"
        assert recording.end is not None
        assert recording.end.notes[0].count == 2
        assert recording.section("source/0123456789abcdef") == b"print('hello')\n"
        assert recording.content(ContentRef(7, 7)) == b"content"
    crossings = [entry for entry in entries if isinstance(entry, Event)]
    assert [event.number for event in crossings] == list(range(1, 13))
    assert [event.time_ns for event in crossings] == [0] * 6 + [1000] * 6
    first, entropy, inside, write, fill, failed = crossings[:6]
    assert (first.gate, first.outcome, str(first.site)) == ("time.time", 1.5, "/src/prog.py:3 in main")
    assert (entropy.arguments, entropy.outcome) == ((8,), bytes(range(8)))
    assert (inside.site.file, inside.site.line) == (None, None)
    assert (write.arguments, write.digest) == ((1, {"end": "\n"}), bytes(4))
    assert (fill.outcome, fill.filled) == (4, b"data")
    assert failed.raised
    assert failed.outcome == ExceptionValue(
        TypeName("builtins", "FileNotFoundError"), (2, "gone"), (2, "gone", "x", None)
    )
    controls = [entry for entry in entries if isinstance(entry, Control)]
    assert [control.kind for control in controls[-2:]] == [ControlKind.NOTE, ControlKind.END]
    assert (controls[-1].after, controls[-1].number) == (12, 0)
    assert [answer.operation for answer in answers] == ["getcwd", "stat"]


def test_a_live_directory_gives_the_same_events(tmp_path: Path) -> None:
    made = example()
    sealed_path = made.write(tmp_path)
    live = made.write_live(tmp_path, "run-2")

    with open_recording(live) as recording:
        assert list(recording.events()) == events_of(sealed_path)
        assert not recording.ok
        assert recording.problems
        assert recording.damage == ()
        assert recording.section("source/0123456789abcdef") == b"print('hello')\n"


def test_a_log_that_grows_while_it_is_unpacked_is_whole_up_to_where_it_was(tmp_path: Path) -> None:
    made = example(3)
    live = made.write_live(tmp_path)
    target = tmp_path / "unpacked"
    target.mkdir()

    with open_recording(live) as recording:
        before = recording.log_header
        assert before is not None
        with (live / "log").open("r+b") as log:
            log.write(pack_log_header(before._replace(committed=before.committed + 7, crossings=before.crossings + 1)))
        unpacked = recording.unpack(target)

    written = (target / "log").read_bytes()
    header = read_log_header(written[:LOG_HEADER])
    assert header == unpacked.log == before
    assert before.committed == len(written) == len(made.log)
    assert not unpacked.is_cut


def test_sealing_replaces_the_live_directory(tmp_path: Path) -> None:
    target = example().write(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert target.stat().st_mode & 0o077 == 0


def test_a_live_directory_that_was_sealed_since_is_opened_as_the_file(tmp_path: Path) -> None:
    live = example().write_live(tmp_path)
    before = events_of(live)
    seal(live, tmp_path / f"{live.name.removesuffix('-live')}", {})
    assert not live.exists()

    assert events_of(live) == before


def test_a_live_directory_is_not_taken_for_an_earlier_file_of_its_name(tmp_path: Path) -> None:
    seal(example().write_live(tmp_path), tmp_path / "run-1.rdbg", {})
    (tmp_path / "run-1.rdbg-live").mkdir()

    with pytest.raises(NotARecording):
        open_recording(tmp_path / "run-1.rdbg-live")


def test_a_failed_seal_leaves_the_live_directory(tmp_path: Path) -> None:
    live = example().write_live(tmp_path)

    with pytest.raises(OSError, match="No such file"):
        seal(live, tmp_path / "missing" / "x.rdbg", {})
    with pytest.raises(TypeError):
        seal(live, tmp_path / "x.rdbg", {"not": object()})

    assert [path.name for path in tmp_path.iterdir()] == [live.name]
    assert events_of(live)


def test_sealing_needs_a_header(tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match="header"):
        seal(tmp_path, tmp_path / "x.rdbg", {})


def test_a_stranger_in_the_live_directory_stays(tmp_path: Path) -> None:
    live = example().write_live(tmp_path)
    (live / "notes.txt").write_text("mine")

    seal(live, tmp_path / "run-1.rdbg", {})

    assert [path.name for path in live.iterdir()] == ["notes.txt"]


def test_filters(tmp_path: Path) -> None:
    with open_recording(example(2).write(tmp_path)) as recording:
        clocks = list(recording.events(gate="time.*"))
        some = list(recording.events(first=3, last=5, controls=False))

    assert [entry.number for entry in clocks if isinstance(entry, Event)] == [1, 3, 7, 9]
    assert [entry.number for entry in some if isinstance(entry, Event)] == [3, 4, 5]


@pytest.mark.slow
def test_cut_at_every_byte(tmp_path: Path, sealed: tuple[bytes, list[Entry]]) -> None:
    data, expected = sealed
    path = tmp_path / "cut.rdbg"

    for size in range(len(data)):
        path.write_bytes(data[:size])
        assert gives_only(path, expected), size


@pytest.mark.slow
def test_a_bit_changed_in_every_byte(tmp_path: Path, sealed: tuple[bytes, list[Entry]]) -> None:
    data, expected = sealed
    path = tmp_path / "changed.rdbg"

    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes((data[place] ^ 1 << place % 8,)) + data[place + 1 :])
        assert gives_only(path, expected), place


@REPEATED
@given(data=st.data())
def test_random_bytes_changed(tmp_path: Path, large: tuple[bytes, list[Entry]], data: st.DataObject) -> None:
    original, expected = large
    changes = data.draw(
        st.lists(st.tuples(st.integers(0, len(original) - 9), st.binary(min_size=1, max_size=9)), max_size=4)
    )
    changed = bytearray(original)
    for place, piece in changes:
        changed[place : place + len(piece)] = piece
    path = tmp_path / "changed.rdbg"
    path.write_bytes(changed[: data.draw(st.integers(0, len(original)))])

    assert gives_only(path, expected)


def test_a_lost_block_ends_the_events_there(tmp_path: Path, large: tuple[bytes, list[Entry]]) -> None:
    data, expected = large
    path = tmp_path / "changed.rdbg"
    place = len(data) // 2
    path.write_bytes(data[:place] + bytes((data[place] ^ 1,)) + data[place + 1 :])

    with open_recording(path) as recording:
        found = list(recording.events())

        assert 0 < len(found) < len(expected)
        assert found == expected[: len(found)]
        assert recording.end is not None
        assert any("'log'" in sentence for sentence in recording.damage)


@pytest.mark.slow
def test_a_live_log_cut_at_every_byte(tmp_path: Path) -> None:
    made = example()
    live = made.write_live(tmp_path)
    expected = events_of(live)

    for size in range(len(made.log)):
        (live / "log").write_bytes(made.log[:size])
        assert gives_only(live, expected), size


@REPEATED
@given(data=st.data())
def test_a_live_log_has_no_checksum_but_does_no_harm(tmp_path: Path, data: st.DataObject) -> None:
    made = example()
    live = tmp_path / "run-1.rdbg-live"
    if not live.exists():
        made.write_live(tmp_path)
    changed = bytearray(made.log)
    for place in data.draw(st.lists(st.integers(0, len(changed) - 1), max_size=6)):
        changed[place] = data.draw(st.integers(0, 255))
    (live / "log").write_bytes(changed)

    try:
        assert events_of(live) is not None
    except ReplaydbgError as error:
        assert str(error)


def test_a_recording_inside_a_recording_is_not_taken_for_it(tmp_path: Path) -> None:
    """After a damaged block header the reader must not continue in content that looks like blocks."""
    inner = example(1).write(tmp_path, "inner").read_bytes()
    made = example()
    made.content = os.urandom(100) + inner
    path = made.write(tmp_path)
    expected = events_of(path)
    data = path.read_bytes()
    log_block = data.index(b"log", blocks.FILE_HEADER) - blocks.BLOCK_HEADER
    # Without the file's head there is no index, and without the log's block header no way past it.
    path.write_bytes(bytes(32)[:0] + data[:16] + bytes(8) + data[24:log_block] + b"XXXX" + data[log_block + 4 :])

    assert gives_only(path, expected)
    assert events_of(path) == []


@pytest.mark.parametrize("data", [b"", b"R", b"#!/usr/bin/python\n", bytes(1000), b"RDBGLOG\0" + bytes(100)])
def test_other_files_are_no_recordings(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.rdbg"
    path.write_bytes(data)

    with pytest.raises(NotARecording, match=r"is not a recording"):
        open_recording(path)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRecording):
        open_recording(tmp_path / "x.rdbg")
    with pytest.raises(NotARecording):
        open_recording(tmp_path)
    with pytest.raises(NotARecording):
        open_recording("a\0b")
    with pytest.raises(NotARecording):
        open_recording("x" * 5000)


def test_a_newer_format_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.rdbg"
    path.write_bytes(blocks.pack_head(format=codec.FORMAT + 1, ok=True, index_offset=0))
    made = example()
    made.header["format"] = codec.FORMAT + 1

    for newer in (path, made.write(tmp_path), made.write_live(tmp_path, "run-2")):
        with pytest.raises(NewerFormat, match="update replaydbg"):
            open_recording(newer)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "1"},
        {"format": True},
        {"format": 0},
        {"gates": [1]},
        {"gates": [{"name": 3}]},
        {"argv": "x"},
        {"argv": [1]},
        {"env": {"a": 1}},
        {"python": []},
        {"hash_seed": None},
    ],
)
def test_a_header_of_the_wrong_shape(tmp_path: Path, change: dict[str, Any]) -> None:
    made = Example(header=header_json(**change))

    with pytest.raises(Corrupt, match="damaged"):
        open_recording(made.write(tmp_path))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "9" * 10_000, "\ufeff{}"])
def test_a_header_that_is_no_object(tmp_path: Path, text: str) -> None:
    live = example().write_live(tmp_path)
    (live / "header.json").write_text(text)

    with pytest.raises(Corrupt):
        open_recording(live)


def test_an_end_of_the_wrong_shape_is_a_problem(tmp_path: Path) -> None:
    made = example()
    made.end["seconds"] = "long"

    with open_recording(made.write(tmp_path)) as recording:
        assert recording.end is None
        assert not recording.ok
        assert recording.damage


def test_why_logging_stopped(tmp_path: Path) -> None:
    made = Example(log=LogBuilder().to_bytes(stopped=StopReason.DISK_FULL))

    with open_recording(made.write(tmp_path)) as recording:
        assert recording.log_header is not None
        assert recording.log_header.stopped.sentence == "Logging stopped early: the disk was full."


def test_a_program_killed_before_its_first_event(tmp_path: Path) -> None:
    live = example().write_live(tmp_path)
    (live / "log").unlink()
    (live / "world").write_bytes(b"")

    for path in (live, tmp_path / "run-1.rdbg"):
        with open_recording(path) as recording:
            assert list(recording.events()) == []
            assert recording.damage
            with pytest.raises(Corrupt, match="no event log"):
                recording.unpack(tmp_path)
        if path == live:
            seal(live, tmp_path / "run-1.rdbg", {})


class TestHostile:
    """Hostile files: none may cost more than its size justifies, none may be followed outside."""

    def log_of(self, directory: Path, *records: bytes, committed: int | None = None) -> str:
        """Return the problem that a log of these records has."""
        log = LogBuilder()
        log.crossing(0, None)
        for record in records:
            log.raw(record)
        made = Example(log=log.to_bytes(committed=committed))
        with open_recording(made.write(directory)) as recording:
            assert len(list(recording.events())) == 1
            assert recording.damage
            return recording.damage[0]

    @pytest.mark.parametrize("tag", [codec.STR, codec.TUPLE, codec.DICT, codec.BIG_INT])
    def test_huge_length(self, tmp_path: Path, tag: int) -> None:
        assert self.log_of(tmp_path, varint(1 << 2) + bytes((tag,)) + varint(1 << 60))

    def test_deep_nesting(self, tmp_path: Path) -> None:
        assert "nested" in self.log_of(tmp_path, varint(1 << 2) + bytes((codec.LIST, 1)) * 100_000)

    @pytest.mark.parametrize(
        "record",
        [
            varint(99 << 2),
            varint(99 << 2 | 2),
            varint(99 << 2 | 3),
            varint(1 << 2 | 1) + encode_value(5),
            varint(4 << 2 | 2) + encode_value("x"),
            varint(2 << 2 | 3) + encode_value([]),
            varint(1 << 2 | 3) + varint(99) + bytes(4),
            varint(1 << 2 | 3) + varint(1) + varint(99) + bytes(3),
            b"\xff" * 12,
        ],
    )
    def test_records_that_make_no_sense(self, tmp_path: Path, record: bytes) -> None:
        assert "cannot be read" in self.log_of(tmp_path, record)

    def test_committed_beyond_the_file(self, tmp_path: Path) -> None:
        assert "cut off" in self.log_of(tmp_path, committed=1 << 62)

    def test_a_block_that_stands_for_more_than_it_says(self, tmp_path: Path) -> None:
        """The size that compressed data claims for itself is not trusted either."""
        import zstandard

        header = json.dumps(header_json()).encode()
        bomb = zstandard.ZstdCompressor().compress(header + bytes(200 << 20))
        path = tmp_path / "x.rdbg"
        head = blocks.pack_head(format=1, ok=True, index_offset=0)
        path.write_bytes(head + blocks.pack_block("header", 0, len(header), bomb, blocks.ZSTD) + bomb)

        with pytest.raises(Corrupt):
            open_recording(path)

    def test_a_block_longer_than_blocks_are(self, tmp_path: Path) -> None:
        buffer = io.BytesIO()
        Writer(buffer).section("header", [bytes(PIECE + 1)])
        path = tmp_path / "x.rdbg"
        path.write_bytes(buffer.getvalue())

        with pytest.raises(Corrupt, match="header"):
            open_recording(path)

    @pytest.mark.slow
    def test_a_bomb_takes_little_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A few kilobytes that expand to a value of 400 MB: checked piece by piece, and not trusted."""
        monkeypatch.setattr("replaydbg.log.container.allowance", lambda stored: 1 << 40)  # an honest writer makes none
        log = LogBuilder()
        log.crossing(0, None)
        log.raw(varint(1 << 2) + bytes((codec.BYTES,)) + varint(400 << 20))
        start = log.to_bytes(committed=LOG_HEADER + (500 << 20)).ljust(PIECE, b"x")
        path = tmp_path / "x.rdbg"
        with path.open("wb") as file:
            writer = Writer(file)
            writer.section("header", [json.dumps(header_json()).encode()])
            writer.section("log", itertools.chain([start], itertools.repeat(bytes(PIECE), 450)))
            writer.finish()
        script = (
            "import sys, resource; from replaydbg.log.reader import open_recording\n"
            "resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))\n"
            "with open_recording(sys.argv[1]) as r: print(sum(map(len, r.pieces('log'))), len(list(r.events())))"
        )

        # A sanitizer maps terabytes for itself; the reader is pure Python, in which it finds nothing.
        done = subprocess.run(
            [sys.executable, "-c", script, path],
            capture_output=True,
            text=True,
            timeout=60,
            env=without_runtime(os.environ),
        )

        assert path.stat().st_size < 200_000
        assert (done.stdout, done.returncode) == (f"{451 << 20} 1\n", 0), done.stderr

    @pytest.mark.slow
    def test_a_tuple_of_millions_from_a_few_bytes(self, tmp_path: Path) -> None:
        log = LogBuilder()
        log.crossing(0, None)
        log.raw(varint(1 << 2) + bytes((codec.TUPLE,)) + varint(50 << 20) + bytes(50 << 20))

        with open_recording(Example(log=log.to_bytes()).write(tmp_path)) as recording:
            assert len(list(recording.events())) == 1
            assert "elements" in recording.damage[0]

    def test_an_index_that_repeats_a_block(self, tmp_path: Path, sealed: tuple[bytes, list[Entry]]) -> None:
        data, expected = sealed
        head = blocks.unpack_head(data[:32])
        path = tmp_path / "x.rdbg"
        path.write_bytes(data)
        with open_recording(path) as recording:
            size = recording.size("log")
        offset = data.index(b"log", 32) - blocks.BLOCK_HEADER
        entry = {"section": "log", "raw_offset": 0, "raw_length": size, "offset": offset}
        index = json.dumps([entry] * 1000).encode()
        block = blocks.pack_block("index", 0, len(index), index, blocks.RAW) + index
        path.write_bytes(data[: head.index_offset] + block)

        assert gives_only(path, expected)
        assert len(events_of(path)) == len(expected)

    def test_a_pipe_a_device_and_a_link_are_no_files(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.rdbg")
        live = example().write_live(tmp_path)
        (live / "log").unlink()
        (live / "log").symlink_to("/dev/zero")
        (live / "content").unlink()
        (live / "content").symlink_to("/etc/passwd")

        with pytest.raises(NotARecording, match="regular"):
            open_recording(tmp_path / "pipe.rdbg")
        with pytest.raises(NotARecording, match="regular"):
            open_recording("/dev/zero")
        with open_recording(live) as recording:
            assert list(recording.events()) == []
            assert "content" not in recording.sections
            assert any("'log'" in sentence for sentence in recording.damage)

    def test_a_header_that_is_a_link(self, tmp_path: Path) -> None:
        live = example().write_live(tmp_path)
        (live / "header.json").rename(tmp_path / "elsewhere.json")
        (live / "header.json").symlink_to(tmp_path / "elsewhere.json")

        with pytest.raises(NotARecording):
            open_recording(live)


class TestUnpack:
    """A replay gets the original, or a shorter one that is valid."""

    def test_the_files_are_as_they_were(self, tmp_path: Path) -> None:
        made = example()
        path = made.write(tmp_path)
        target = tmp_path / "out"
        target.mkdir()

        with open_recording(path) as recording:
            done = recording.unpack(target)

            with pytest.raises(FileExistsError):
                recording.unpack(target)
        assert (target / "log").read_bytes() == made.log
        assert (target / "world").read_bytes() == made.world
        assert (target / "content").read_bytes() == made.content
        assert not done.is_cut
        assert done.log.crossings == 18

    def test_a_live_directory_is_unpacked_up_to_its_commit_word(self, tmp_path: Path) -> None:
        made = example()
        files = {name: io.BytesIO() for name in ("log", "world", "content")}

        with open_recording(made.write_live(tmp_path)) as recording:
            recording.unpack(files)

        assert files["log"].getvalue() == made.log

    @pytest.mark.parametrize("missing", [1, 5, 40, 200])
    def test_a_cut_log_ends_with_its_last_whole_record(self, tmp_path: Path, missing: int) -> None:
        made = example()
        live = made.write_live(tmp_path)
        expected = events_of(live)
        (live / "log").write_bytes(made.log[:-missing])
        files = {name: io.BytesIO() for name in ("log", "world", "content")}

        with open_recording(live) as recording:
            done = recording.unpack(files)

        header = read_log_header(files["log"].getvalue())
        assert header == done.log
        assert done.is_cut
        assert header.committed == len(files["log"].getvalue())
        (live / "log").write_bytes(files["log"].getvalue())
        found = events_of(live)
        assert found == expected[: len(found)]
        assert sum(isinstance(entry, Event) for entry in found) == header.crossings

    def test_events_whose_content_is_lost_are_left_out(self, tmp_path: Path) -> None:
        log = LogBuilder()
        for number in range(3):
            log.crossing(1, ContentRef(number * PIECE, PIECE), arguments=(PIECE,))
        path = Example(log=log.to_bytes(), content=os.urandom(3 * PIECE)).write(tmp_path)
        data = bytearray(path.read_bytes())
        data[-PIECE] ^= 1
        path.write_bytes(data)
        files = {name: io.BytesIO() for name in ("log", "world", "content")}

        with open_recording(path) as recording:
            done = recording.unpack(files)

            assert done.is_cut
            assert done.log.crossings == 2
            assert recording.damage
            with pytest.raises(Corrupt, match="missing"):
                recording.content(ContentRef(2 * PIECE, PIECE))
            with pytest.raises(Corrupt, match="missing"):
                recording.content(ContentRef(1 << 62, 1 << 10))

    def test_no_world_is_an_empty_world(self, tmp_path: Path) -> None:
        made = example()
        live = made.write_live(tmp_path)
        (live / "world").unlink()
        files = {name: io.BytesIO() for name in ("log", "world", "content")}

        with open_recording(live) as recording:
            recording.unpack(files)

        header = read_log_header(files["world"].getvalue())
        assert header is not None
        assert header.committed == LOG_HEADER == len(files["world"].getvalue())
