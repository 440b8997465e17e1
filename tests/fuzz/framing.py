"""Split a sealed recording into its sections, and reassemble it, with valid checksums and any framing."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from random import Random
from types import MappingProxyType

import zstandard

from replaydbg.errors import ReplaydbgError
from replaydbg.log.coding.encode import FORMAT
from replaydbg.log.files import PIECE
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.blocks import FILE_HEADER, RAW, SHARED, ZSTD, pack_block, pack_head
from tests.fuzz import chunks, documents
from tests.fuzz.space import scratch_file

_compress = zstandard.ZstdCompressor(level=1).compress


@dataclass
class Block:
    """A block to be written."""

    section: str
    raw_offset: int
    raw_length: int
    stored: bytes
    codec: int = RAW


@dataclass
class Framing:
    """All of a file except the content of its sections."""

    format: int = FORMAT
    ok: bool = True
    blocks: list[Block] = field(default_factory=list)
    index: bytes | None = None
    """The text of the index; None: the right one."""


def blocks_of(sections: Mapping[str, bytes]) -> list[Block]:
    """Return the blocks of sections, stored as they are."""
    found = []
    for name, data in sections.items():
        for start in range(0, len(data), PIECE):
            piece = data[start : start + PIECE]
            found.append(Block(name, start, len(piece), piece))
    return found


def assembled(framing: Framing) -> bytes:
    """Return the file."""
    out = BytesIO()
    out.write(bytes(FILE_HEADER))
    entries: list[dict[str, object]] = []
    for block in framing.blocks:
        block.raw_offset &= (1 << 64) - 1
        block.raw_length &= (1 << 64) - 1
        entries.append(
            {
                "section": block.section,
                "raw_offset": block.raw_offset,
                "raw_length": block.raw_length,
                "offset": out.tell(),
            }
        )
        _write(out, block)
    index_offset = out.tell()
    text = framing.index if framing.index is not None else json.dumps(entries).encode()
    for block in blocks_of({"index": text}):
        _write(out, block)
    out.seek(0)
    out.write(pack_head(format=framing.format, ok=framing.ok, index_offset=index_offset))
    return out.getvalue()


def _write(out: BytesIO, block: Block) -> None:
    out.write(pack_block(block.section, block.raw_offset, block.raw_length, block.stored, block.codec))
    out.write(block.stored)


def sealed(sections: Mapping[str, bytes]) -> bytes:
    """Return the sealed file of these sections."""
    return assembled(Framing(blocks=blocks_of(sections)))


_LARGEST = 16 << 20
"""Size in bytes of all sections of a file that is split: several hundred of them are kept."""


@lru_cache(100)
def sections_of(data: bytes) -> Mapping[str, bytes]:
    """Return the sections of a sealed file, as far as they can be read; none for a large file or no recording."""
    path = scratch_file("apart.rdbg", data)
    try:
        with open_recording(Path(path)) as recording:
            found = {}
            room = _LARGEST
            for name in recording.sections:
                pieces = []
                for piece in recording.pieces(name):
                    pieces.append(piece)
                    room -= len(piece)
                    if room < 0:
                        return MappingProxyType({})
                found[name] = b"".join(pieces)
            return MappingProxyType(found)
    except ReplaydbgError:
        return MappingProxyType({})


def mutated(sections: Mapping[str, bytes], rng: Random) -> bytes:
    """Return a file with these sections and invalid framing, but valid checksums."""
    framing = Framing(blocks=blocks_of(sections))
    for _ in range(rng.choice((1, 1, 2, 3))):
        _change(framing, rng)
    return assembled(framing)


def _change(framing: Framing, rng: Random) -> None:
    blocks = framing.blocks
    if not blocks:
        return
    at = rng.randrange(len(blocks))
    block = blocks[at]
    match rng.randrange(14):
        case 0:
            framing.format = chunks.number(rng, FORMAT) & (1 << 32) - 1
        case 1:
            framing.ok = False
        case 2:
            del blocks[at]
        case 3:
            blocks.insert(rng.randrange(len(blocks) + 1), block)
        case 4:
            rng.shuffle(blocks)
        case 5:
            block.raw_offset = chunks.number(rng, block.raw_offset) & (1 << 64) - 1
        case 6:
            block.raw_length = chunks.number(rng, block.raw_length) & (1 << 64) - 1
        case 7:
            block.codec = rng.choice((RAW, ZSTD, SHARED, 3, 255))
        case 8:
            block.stored, block.codec = _compress(block.stored), ZSTD
        case 9:
            block.stored = chunks.mutated(_compress(block.stored), rng)
            block.codec = ZSTD
        case 10:
            names = (
                "",
                "header",
                "log",
                "end",
                "content",
                "index",
                "heap/0",
                "heap/00001",
                "heap/9" * 9,
                "source/../x",
            )
            block.section = rng.choice(names)
        case 11:
            _bomb(blocks, at, rng)
        case 12:
            entries = [{"section": "log", "raw_offset": 0, "raw_length": 1, "offset": 32}] * 3
            framing.index = documents.mutated(documents.as_bytes(entries), rng)
        case _:
            block.stored = chunks.mutated(block.stored, rng)
            block.raw_length = len(block.stored)


def _bomb(blocks: list[Block], at: int, rng: Random) -> None:
    """Let a section claim to expand to much more than it does."""
    block = blocks[at]
    piece = (block.stored[-rng.choice((1, 3, 40)) :] or b"\0") * PIECE
    stored = _compress(piece[:PIECE])
    offset = block.raw_offset + block.raw_length
    if block.raw_length % PIECE:
        filler = block.stored + piece[: PIECE - block.raw_length % PIECE]
        blocks[at] = Block(block.section, block.raw_offset, len(filler), filler)
        offset = block.raw_offset + len(filler)
    more = [Block(block.section, offset + number * PIECE, PIECE, stored, ZSTD) for number in range(rng.choice((1, 4)))]
    blocks[at + 1 : at + 1] = more
