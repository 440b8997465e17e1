"""A snapshot survives being written and read, and a hostile file ends with a sentence."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import zlib
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replaydbg.errors import Corrupt, NewerFormat
from replaydbg.heap.builder import Node, build
from replaydbg.heap.snapshot import Snapshot, Taken
from replaydbg.heap.storage.snapshot_file import pack, unpack
from replaydbg.log.container import Writer
from replaydbg.log.sealed.sections import SealedFile
from tests.harness.heap_capture import capture
from tests.harness.recording import record_file

HEAD = struct.Struct("<8sIIQ")


def contents(snapshot: Snapshot) -> dict[str, Any]:
    """Return everything in a snapshot, for comparison."""
    found = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
    found["strings"] = list(snapshot.strings)
    found["floats"] = snapshot.floats.tobytes()
    return found


def example() -> Snapshot:
    nodes = [Node(16 * i + 1000, f"app.T{i % 3}", 16 + i, i if i % 4 else f"'text {i}'", i % 2) for i in range(50)]
    nodes.append(Node(9000, "builtins.float", 24, 2.5))
    edges: list[tuple[int, str | int | tuple[int, int], int]] = [
        (16 * i + 1000, f".a{i % 5}", 16 * (i * 7 % 50) + 1000) for i in range(50)
    ]
    edges += [(1000, 0, 9000), (1016, "~()", 1016)]
    taken = Taken(3, 120, 35, "after \udcff load", "named", 10**12, "run")
    return build(nodes, edges, [("app", 1000), ("thread 0: f() line 3", 1016)], taken=taken, cut=("Only 5.",))


def test_what_is_written_is_read() -> None:
    snapshot = example()

    assert contents(unpack(pack(snapshot), "x")) == contents(snapshot)


def test_an_empty_snapshot_is_a_snapshot() -> None:
    assert contents(unpack(pack(build([])), "x")) == contents(build([]))


@given(
    st.recursive(
        st.integers() | st.text() | st.floats(), lambda part: st.lists(part) | st.dictionaries(st.text(), part)
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_was_captured_is_written_and_read(o: Any) -> None:
    snapshot = capture({"o": o})

    assert contents(unpack(pack(snapshot), "x")) == contents(snapshot)


def test_it_takes_few_bytes() -> None:
    rng = random.Random(7)
    orders = [
        {"id": rng.randrange(10**9), "name": f"order {rng.randrange(10**6)}", "lines": [i, i + 1]} for i in range(9000)
    ]
    snapshot = capture({"orders": orders})

    assert len(pack(snapshot)) < 8 * len(snapshot)


def refused(data: bytes) -> str:
    with pytest.raises(Corrupt) as caught:
        unpack(data, "x.snap")
    assert str(caught.value).startswith("'x.snap' is damaged: ")
    assert caught.value.exit_code == 1
    return str(caught.value)


def test_a_file_that_is_cut_anywhere_is_refused() -> None:
    data = pack(example())

    for length in range(len(data)):
        refused(data[:length])
    refused(data + b"x")


def test_damage_anywhere_is_found() -> None:
    data = pack(example())
    rng = random.Random(3)

    for _ in range(500):
        damaged = bytearray(data)
        place = rng.randrange(len(data))
        damaged[place] ^= 1 << rng.randrange(8)
        with pytest.raises((Corrupt, NewerFormat)):
            unpack(bytes(damaged), "x.snap")


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data: bytes) -> None:
    refused(data)
    refused(b"RDBGSNAP" + b"\x01\0\0\0" + data)


def rewritten(data: bytes, change: Any) -> bytes:
    """Return the file with another header and a correct checksum."""
    _, _, _, length = HEAD.unpack_from(data)
    header = json.loads(data[HEAD.size : HEAD.size + length])
    rest = change(header, data[HEAD.size + length :])
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    rest = data[HEAD.size + length :] if rest is None else rest
    return HEAD.pack(b"RDBGSNAP", 1, zlib.crc32(text), len(text)) + text + rest


def with_column(data: bytes, name: str, plain: bytes, count: int | None = None) -> bytes:
    """Return the file with one column replaced by `plain`, compressed, with a correct checksum."""

    def change(header: dict[str, Any], rest: bytes) -> bytes:
        at, parts = 0, []
        for column in header["columns"]:
            part = rest[at : at + column[3]]
            at += column[3]
            if column[0] == name:
                part = zstandard.ZstdCompressor().compress(plain)
                column[1:] = [column[1] if count is None else count, "zstd", len(part), zlib.crc32(part)]
            parts.append(part)
        return b"".join(parts)

    return rewritten(data, change)


@pytest.mark.parametrize(
    ("name", "number"),
    [("target", 51), ("type", 4), ("label", 7), ("label", 999 << 4), ("value", 999 << 2 | 1), ("value", 5 << 2 | 3)],
)
def test_numbers_that_lead_nowhere_are_refused(name: str, number: int) -> None:
    snapshot = example()
    getattr(snapshot, name)[2] = number

    refused(pack(snapshot))


def test_counts_that_are_wrong_are_refused() -> None:
    data = pack(example())
    for count in (0, 1, 49, 53, 10**6):
        refused(with_column(data, "since", bytes(4 * count), count))
        refused(with_column(data, "address", bytes(8 * count), count))
        refused(with_column(data, "target", bytes(4 * count + 4), count + 1))
    refused(with_column(data, "address", b"\xff" * 8 * 51))
    refused(with_column(data, "string_ends", b"\xff" * 4 * 18))
    refused(with_column(data, "strings", b"\xff" * 100, 100))


def test_a_claim_of_ten_gigabytes_takes_no_memory() -> None:
    data = pack(example())

    def claim(header: dict[str, Any], rest: bytes) -> None:
        header["columns"][0][1] = 10 << 27

    assert "claims to need" in refused(rewritten(data, claim))
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 26))
    liar = bytearray(bomb)

    def small_claim(header: dict[str, Any], rest: bytes) -> bytes:
        at = header["columns"][0][3]
        header["columns"][0][1:] = [51, "zstd", len(liar), zlib.crc32(liar)]
        return bytes(liar) + rest[at:]

    assert "a different length" in refused(rewritten(data, small_claim))


def test_a_pickle_inside_is_never_loaded(tmp_path: Any) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "exploded"),)

    bomb = pickle.dumps(Bomb())
    data = pack(example())
    refused(bomb)
    refused(HEAD.pack(b"RDBGSNAP", 1, zlib.crc32(bomb), len(bomb)) + bomb)
    refused(with_column(data, "strings", bomb, len(bomb)))
    refused(with_column(data, "address", bomb))
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        b"9" * 10_000,
        b"\xff",
        b'{"columns": [[1, 2, 3]]}',
        b'{"columns": {}}',
    ],
    ids=lambda text: text[:12].decode("latin-1"),
)
def test_headers_of_other_shapes_are_refused(text: bytes) -> None:
    refused(HEAD.pack(b"RDBGSNAP", 1, zlib.crc32(text), len(text)) + text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("taken", {}),
        ("taken", 5),
        ("taken", Taken().run),
        ("types", [1]),
        ("types", None),
        ("cut", "x"),
        ("roots", [["a"]]),
        ("roots", [["a", -1]]),
        ("roots", [["a", 51]]),
        ("roots", [[1, 1]]),
        ("columns", []),
        ("columns", [["address", True, "zstd", 1, 1]]),
        ("columns", [[["address"], 1, "zstd", 1, 1]]),
    ],
)
def test_wrong_descriptions_are_refused(name: str, value: object) -> None:
    def change(header: dict[str, Any], rest: bytes) -> None:
        header[name] = value

    refused(rewritten(pack(example()), change))


def test_a_newer_format_says_so() -> None:
    data = bytearray(pack(example()))
    data[8] = 9
    with pytest.raises(NewerFormat):
        unpack(bytes(data), "x")


def test_cycles_are_data_like_any_other() -> None:
    snapshot = build([Node(16), Node(32)], [(16, ".a", 32), (32, ".b", 16), (32, ".c", 32)], [("app", 16)])

    read = unpack(io.BytesIO(pack(snapshot)).getbuffer(), "x")
    assert [edge.target for edge in read.edges(1)] == [0, 1]


def _recording_with(snapshot: bytes, tmp_path: Path) -> Path:
    """Return a recording that holds `snapshot` as its first one."""
    program = tmp_path / "program.py"
    program.write_text("import replaydbg\nreplaydbg.snapshot('x')\n")
    recording = record_file(program, tmp_path)
    changed = tmp_path / "changed.rdbg"
    with closing(SealedFile(recording)) as sealed, changed.open("wb") as file:
        writer = Writer(file)
        for name in sealed.names():
            pieces = list(sealed.pieces(name)) if name != "heap/000001" else [snapshot]
            writer.section(name, pieces, is_compressed=False)
        writer.finish()
    return changed


@pytest.mark.parametrize("command", [["heap", "{}", "@#1"], ["diff", "{}", "@#1", "@#1"], ["snapshots", "{}"]])
def test_commands_say_a_sentence_about_a_hostile_snapshot(command: list[str], tmp_path: Path) -> None:
    snapshot = replace(example(), taken=Taken())
    data = bytearray(pack(snapshot))
    data[-20] ^= 4
    path = _recording_with(bytes(data), tmp_path)
    words = [word.format(path) for word in command]

    done = subprocess.run(
        [sys.executable, "-m", "replaydbg", *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    if command[0] == "snapshots":
        assert done.returncode in (0, 1)
    else:
        assert done.returncode == 1
        assert "is damaged: the checksum of strings does not hold." in done.stderr
