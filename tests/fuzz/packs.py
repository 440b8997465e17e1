"""The file that `pack` makes of a group, as an input: its parts are mutated, and headers with their checksums."""

import io
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from replaydbg.errors import ReplaydbgError
from replaydbg.log.container import seal
from replaydbg.log.edit.group_pack import add_file, pack_group, packed_files, unpack_group
from replaydbg.log.files import DataFile
from replaydbg.log.group import Group, GroupProcess, write_group
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.log.sealed.group_blocks import Common, GroupBlocks
from replaydbg.record.hiding import hiding_of
from tests.fuzz import chunks, documents
from tests.fuzz.canary import looking_away
from tests.fuzz.space import scratch, scratch_file
from tests.harness.build import example, header_json

_GATES = [{"name": f"gate.number_{number}", "shape": 0, "kind": "regular"} for number in range(100)]
_BLOCK = 512


def seed() -> bytes:
    """Return the file of a group of two recordings, which share blocks, and another program."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "run-1.rdbgs"
        directory.mkdir()
        rows = [GroupProcess(1, 70, 0, 0, "program", ["prog.py"], True, 0, "launcher", "1.rdbg", "")]
        rows.append(rows[0]._replace(number=2, pid=71, parent=1, event=2, how="python", recording="2.rdbg"))
        rows.append(rows[1]._replace(number=3, pid=72, how="other", recording=None, why_not="another program"))
        for number in (1, 2):
            made = example(1)
            made.header = header_json(group="ab", process=number, gates=[*made.header["gates"], *_GATES])
            live = made.write_live(directory, str(number))
            seal(
                live, directory / f"{number}.rdbg", made.end, common=Common(GroupBlocks(BlockPlaces(directory)), False)
            )
        write_group(directory, Group("ab", rows, 0, True))
        pack_group(directory, Path(place) / "one.tar", hiding_of)
        return (Path(place) / "one.tar").read_bytes()


def mutated(data: bytes, rng: Random, change_recording: Callable[[bytes, Random], bytes]) -> bytes:
    """Return a mutation."""
    parts = _parts(data)
    kind = rng.randrange(8)
    if not parts or kind == 0:
        return chunks.mutated(data, rng)
    number = rng.randrange(len(parts))
    name, content = parts[number]
    if kind == 1:
        parts.insert(rng.randrange(len(parts) + 1), parts.pop(number))
    elif kind == 2:
        parts.insert(rng.randrange(len(parts) + 1), parts[number])
    elif kind == 3:
        parts[number] = (chunks.mutated(name.encode(), rng)[:80].decode("latin-1"), content)
    elif name == "group.json" or kind == 4:
        parts[0] = (parts[0][0], documents.mutated(parts[0][1], rng))
    else:
        parts[number] = (
            name,
            change_recording(content, rng) if name.endswith(".rdbg") else chunks.mutated(content, rng),
        )
    out = io.BytesIO()
    for each, its in parts:
        add_file(out, each, len(its), [its])
    made = out.getvalue() + bytes(2 * _BLOCK)
    return made if kind != 5 else _with_header(made, rng)


def _with_header(data: bytes, rng: Random) -> bytes:
    """Return the file with another header, whose checksum is correct."""
    head = bytearray(data[:_BLOCK])
    at = rng.randrange(_BLOCK)
    head[at] = rng.choice((0, 0x2E, 0x2F, 0x30, 0x32, 0x35, 0x80, 0xFF))
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + data[_BLOCK:]


def _parts(data: bytes) -> list[tuple[str, bytes]]:
    found = []
    at = 0
    while len(head := data[at : at + _BLOCK]) == _BLOCK and head.strip(b"\0"):
        try:
            size = int(head[124:135], 8)
        except ValueError:
            break
        name = head[:100].rstrip(b"\0").decode("latin-1").partition("/")[2]
        found.append((name, data[at + _BLOCK : at + _BLOCK + size]))
        at += _BLOCK + size + -size % _BLOCK
    return found


def read(data: bytes) -> list[str]:
    """Check a file, and unpack it; return messages. Nothing is written anywhere else."""
    path = Path(scratch_file("packed.tar", data))
    place = scratch(os.getpid()) / "unpacked"
    try:
        with DataFile(path) as file:
            group, files = packed_files(file)
        messages = [str(len(group.processes)), str(len(files))]
    except ReplaydbgError as error:
        messages = [str(error)]
    with looking_away():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        before = sorted(os.listdir(place.parent))  # noqa: PTH208
        try:
            unpack_group(path, place / "made.rdbgs")
        except ReplaydbgError as error:
            messages.append(str(error))
        made = sorted(os.listdir(place))  # noqa: PTH208
        assert made in ([], ["made.rdbgs"]), made
        assert sorted(os.listdir(place.parent)) == before  # noqa: PTH208
    return [*messages, *made]
