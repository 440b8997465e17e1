"""The blocks of a sealed recording (format.md, section 6): packing and unpacking one."""

from __future__ import annotations

import struct
import zlib

from replaydbg.classes import NamedTuple
from replaydbg.log.files import PIECE, DataFile
from replaydbg.log.sealed.shared import expand, find_directories, load_shared

MAGIC = b"RDBGREC\n"
PACK_FOLDER = "group.rdbgs/"
"""The directory in the file that `pack` makes of a group, with which this file begins."""
BLOCK_MAGIC = b"BLK1"
FILE_HEADER = 32
"""Length of the part before the first block."""
FLAG_OK, FLAG_MARKED, FLAG_LONG = 1, 2, 4
RAW, ZSTD, SHARED = 0, 1, 2

_HEAD = struct.Struct("<8sIIQ")
_CRC = struct.Struct("<Q")
_BLOCK = struct.Struct("<BBHQQQI")
_BLOCK_CRC = struct.Struct("<I")
BLOCK_HEADER = len(BLOCK_MAGIC) + _BLOCK.size + _BLOCK_CRC.size
MAX_NAME = 256
"""The longest section name; longer ones are damage."""


# Recording loads this: named tuples, see config.py.
class FileHead(NamedTuple):
    """The first 32 bytes of a sealed recording."""

    format: int
    """The format number."""
    ok: bool
    """Whether the file was written to its end."""
    index_offset: int
    """The offset of the index; 0 if it was not written."""
    is_sound: bool
    """Whether the checksum is correct. If not, the other fields are meaningless."""
    is_marked: bool = False
    """Whether the index is followed by the mark of the user who made it, see origin.py."""
    is_mark_long: bool = False
    """Whether this mark is that of a long recording."""


class StoredBlock(NamedTuple):
    """The position and the content of one block."""

    section: str
    """The section's name."""
    offset: int
    """The offset of the block in the file."""
    codec: int
    """RAW, ZSTD or SHARED."""
    raw_offset: int
    """The offset of its bytes in the section."""
    raw_length: int
    """Length of its uncompressed bytes."""
    stored_offset: int
    """The offset of its stored bytes in the file."""
    stored_length: int
    """Length of its stored bytes."""
    crc: int
    """Checksum of the stored bytes."""

    @property
    def end(self) -> int:
        """The offset of the next block."""
        return self.stored_offset + self.stored_length


def pack_head(
    *, format: int, ok: bool, index_offset: int, is_marked: bool = False, is_mark_long: bool = False
) -> bytes:
    """Return the first 32 bytes of a sealed recording."""
    flags = (FLAG_OK if ok else 0) | (FLAG_MARKED if is_marked else 0) | (FLAG_LONG if is_mark_long else 0)
    head = _HEAD.pack(MAGIC, format, flags, index_offset)
    return head + _CRC.pack(zlib.crc32(head))


def unpack_head(data: bytes) -> FileHead:
    """Parse the first 32 bytes, whose magic the caller has checked."""
    if len(data) < FILE_HEADER:
        return FileHead(0, False, 0, False)
    _, number, flags, index_offset = _HEAD.unpack_from(data)
    (crc,) = _CRC.unpack_from(data, _HEAD.size)
    is_sound = crc == zlib.crc32(data[: _HEAD.size])
    is_ok, is_marked, is_long = (bool(flags & flag) for flag in (FLAG_OK, FLAG_MARKED, FLAG_LONG))
    return FileHead(number, is_ok, index_offset, is_sound, is_marked, is_long)


def pack_block(section: str, raw_offset: int, raw_length: int, stored: bytes, codec: int) -> bytes:
    """Return the header of a block, without its stored bytes, which follow."""
    name = section.encode()
    header = BLOCK_MAGIC + _BLOCK.pack(codec, 0, len(name), raw_offset, raw_length, len(stored), zlib.crc32(stored))
    # The checksum covers the name too: a damaged one would turn one section into another.
    return header + _BLOCK_CRC.pack(zlib.crc32(header + name)) + name


def why_no_recording(data: bytes) -> str:
    """Return why a file that begins with `data` is not a recording."""
    if data.startswith(PACK_FOLDER.encode()):
        return "it is a packed group of processes; use `replaydbg unpack` first"
    from replaydbg.secrets.age_keys import AGE  # only here: opening a recording does not need it

    if data.startswith(AGE):
        return "it is encrypted with age; use `replaydbg unpack` first"
    return "its first bytes are not those of a recording" if data else "it is empty"


def read_block(file: DataFile, offset: int) -> StoredBlock | None:
    """Return the block at `offset`; None if there is no complete and undamaged one."""
    data = file.read(offset, BLOCK_HEADER + MAX_NAME)
    if len(data) < BLOCK_HEADER or not data.startswith(BLOCK_MAGIC):
        return None
    codec, zero, name_length, raw_offset, raw_length, stored_length, crc = _BLOCK.unpack_from(data, len(BLOCK_MAGIC))
    name = data[BLOCK_HEADER : BLOCK_HEADER + name_length]
    (header_crc,) = _BLOCK_CRC.unpack_from(data, BLOCK_HEADER - _BLOCK_CRC.size)
    if name_length > MAX_NAME or header_crc != zlib.crc32(data[: BLOCK_HEADER - _BLOCK_CRC.size] + name):
        return None
    block = StoredBlock(
        section=name.decode("ascii", "replace"),
        offset=offset,
        codec=codec,
        raw_offset=raw_offset,
        raw_length=raw_length,
        stored_offset=offset + BLOCK_HEADER + name_length,
        stored_length=stored_length,
        crc=crc,
    )
    is_sane = codec in (RAW, ZSTD, SHARED) and zero == 0 and 0 < raw_length <= PIECE and 0 < stored_length <= 2 * PIECE
    return block if is_sane and block.end <= file.size else None


def load_block(file: DataFile, block: StoredBlock) -> bytes | None:
    """Return the uncompressed bytes of `block`; None if they are damaged. Never returns more than 1 MiB."""
    stored = file.read(block.stored_offset, block.stored_length)
    if len(stored) != block.stored_length or zlib.crc32(stored) != block.crc:
        return None
    if block.codec == RAW:
        return stored if len(stored) == block.raw_length else None
    if block.codec == SHARED:
        return load_shared(stored, block.raw_length, find_directories(file.path))
    return expand(stored, block.raw_length)
