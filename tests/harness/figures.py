"""Read the figures of a sealed recording, by the format's own document.

On purpose without `replaydbg.log`: a harness that uses the tool's own reader would not notice that both have departed
from docs/reference/format.md.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

_MAGIC = b"RDBGREC\n"
_FILE_HEADER_SIZE = 32
_BLOCK_MAGIC = b"BLK1"
# codec, zero, length of the section name, raw offset, raw length, stored length, CRC-32 of the stored bytes
_BLOCK = struct.Struct("<BBHQQQI")
_CRC_SIZE = 4
_ZSTD = 1


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures from a recording."""

    # Crossings.
    events: int
    # Bytes of the whole file.
    size: int
    # Bytes of the event log, as the program wrote it and as it is stored.
    log_raw: int
    log_stored: int
    # Seconds of CPU time of the program's own process and its children, without the sealing.
    cpu_seconds: float
    # Notes on what cannot be recorded: kind and text.
    notes: tuple[tuple[str, str], ...]
    # Why the log ends before the program did.
    reason: str | None


@dataclass(frozen=True, slots=True)
class _Block:
    section: str
    codec: int
    raw_length: int
    stored: bytes


def read_figures(recording: Path) -> Figures:
    """Return the figures of the sealed file `recording`; raises ValueError if it is not a recording."""
    blocks = list(_blocks(recording))
    end = json.loads(b"".join(_raw(block) for block in blocks if block.section == "end"))
    log = [block for block in blocks if block.section == "log"]
    return Figures(
        events=end["events"],
        size=recording.stat().st_size,
        log_raw=sum(block.raw_length for block in log),
        log_stored=sum(len(block.stored) for block in log),
        cpu_seconds=end["cpu_seconds"],
        notes=tuple((note["kind"], note["text"]) for note in end["notes"]),
        reason=end["reason"],
    )


def _blocks(recording: Path) -> Iterator[_Block]:
    with recording.open("rb") as file:
        if file.read(_FILE_HEADER_SIZE)[: len(_MAGIC)] != _MAGIC:
            raise ValueError(f"{str(recording)!r} is no sealed recording")
        while file.read(len(_BLOCK_MAGIC)) == _BLOCK_MAGIC:
            codec, _, name_length, _, raw_length, stored_length, _ = _BLOCK.unpack(file.read(_BLOCK.size))
            file.seek(_CRC_SIZE, 1)
            section = file.read(name_length).decode()
            if section in ("log", "end"):
                stored = file.read(stored_length)
            else:
                file.seek(stored_length, 1)
                stored = b""
            yield _Block(section, codec, raw_length, stored)


def _raw(block: _Block) -> bytes:
    if block.codec == _ZSTD:
        raw: bytes = zstandard.ZstdDecompressor().decompress(block.stored, max_output_size=block.raw_length)
        return raw
    return block.stored
