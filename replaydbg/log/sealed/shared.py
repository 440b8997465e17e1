"""Blocks that several recordings share: files named by their content, in a directory beside or above the recordings."""

from __future__ import annotations

import os
import struct
from _blake2 import blake2b  # hashlib would import OpenSSL before every recorded program
from contextlib import suppress
from functools import cache
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.log.files import PIECE, DataFile

DIRECTORY = "replaydbg-blocks"
"""The name of the directory. It is not hidden: CI systems do not upload hidden files."""

STEP = 1 << 15
"""Granularity of a growing log's last block: whole steps of this size are shared, the rest is in the recording."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from zstandard import ZstdCompressor

_ENTRY = struct.Struct("<BII")
_INLINE, _FILE = 0, 1
_NAME = 16
EMPTY = blake2b(digest_size=_NAME).hexdigest()
"""The hash of no bytes: an empty source is stored nowhere."""
MOST_UP = 3
"""Number of directories above the recording that are searched."""


@cache
def compressor() -> ZstdCompressor:
    """Return the compressor: a fast one, since somebody waits. It is shared where thousands of recordings are cut."""
    # Imported here: opening a recording, which uses this package, must not need it before a block is read.
    from replaydbg.log.sealed.zstd import load_zstandard

    made: ZstdCompressor = load_zstandard().ZstdCompressor(level=1)
    return made


class BlockStore:
    """The directory to write to. Several processes may write at once: an existing file is always complete."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / DIRECTORY
        self._known: set[str] = set()
        self._compress = compressor().compress

    def put(self, raw: bytes, compress: Callable[[bytes], bytes] | None = None) -> bytes:
        """Store `raw` unless it exists already, and return its name. Raises OSError.

        `compress` is used in place of `compressor`, with the same result.
        """
        name = blake2b(raw, digest_size=_NAME)
        self._put(name.hexdigest(), lambda: (compress or self._compress)(raw))
        return name.digest()

    def _put(self, text: str, packed: Callable[[], bytes]) -> None:
        """Store the block of that name, which is compressed only if it does not exist."""
        if text not in self._known:
            # Strings, not pathlib: the first recording of a session stores hundreds.
            path = f"{self.directory}/{text}"
            try:
                os.utime(path)  # keeps the clean-up from deleting it while it is needed
            except FileNotFoundError:
                self._write(text, packed())
            self._known.add(text)

    def _write(self, text: str, data: bytes) -> None:
        path, partial = f"{self.directory}/{text}", f"{self.directory}/.{text}.{os.getpid()}"
        try:
            with open(self._create(partial), "wb", buffering=0) as file:  # noqa: PTH123
                left = memoryview(data)
                while left:  # on a full disk the first write is short, and only the next one fails
                    left = left[file.write(left) or 0 :]
            os.replace(partial, path)  # noqa: PTH105
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)  # noqa: PTH108
            raise

    def _create(self, path: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            self._make_directory()
            return os.open(path, flags, 0o600)

    def _make_directory(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def inline(self, raw: bytes) -> bytes:
        """Return the entry of bytes that are stored in the recording itself."""
        stored = self._compress(raw)
        return _ENTRY.pack(_INLINE, len(raw), len(stored)) + stored

    def entry(self, raw: bytes, compress: Callable[[bytes], bytes] | None = None) -> bytes:
        """Store `raw`, and return the entry that refers to it, see `put`. Raises OSError."""
        return _ENTRY.pack(_FILE, len(raw), _NAME) + self.put(raw, compress)


def find_directory(recording: Path) -> Path | None:
    """Return the directory of the blocks that `recording` shares, beside it or above; None: there is none."""
    folder = recording.absolute().parent
    for _ in range(MOST_UP):
        if (folder / DIRECTORY).is_dir():
            return folder / DIRECTORY
        folder = folder.parent
    return None


def load_shared(stored: bytes, length: int, directory: Path | None) -> bytes | None:
    """Return the `length` bytes that `stored` refers to; None if they are damaged or missing."""
    raw = b""
    at = 0
    while at + _ENTRY.size <= len(stored) and len(raw) < length:
        kind, part_length, size = _ENTRY.unpack_from(stored, at)
        at += _ENTRY.size
        part = stored[at : at + size]
        at += size
        if len(part) != size or part_length > length - len(raw):
            return None
        found = part if kind == _INLINE else _read(directory, part) if kind == _FILE and size == _NAME else None
        plain = expand(found, part_length) if found is not None else None
        if plain is None or (kind == _FILE and blake2b(plain, digest_size=_NAME).digest() != part):
            return None
        raw += plain
    return raw if len(raw) == length and at == len(stored) else None


def load_source(digest: str, directory: Path | None) -> bytes | None:
    """Return the source with that hash, in hexadecimal; None if there is none."""
    try:
        name = bytes.fromhex(digest)
    except ValueError:
        return None
    found = _read(directory, name) if len(name) == _NAME else None
    plain = expand(found, None) if found is not None else None
    return plain if plain and blake2b(plain, digest_size=_NAME).digest() == name else None


def names_in(stored: bytes) -> list[str]:
    """Return the names of the files that `stored` refers to."""
    found = []
    at = 0
    while at + _ENTRY.size <= len(stored):
        kind, _, size = _ENTRY.unpack_from(stored, at)
        at += _ENTRY.size
        if kind == _FILE and size == _NAME:
            found.append(stored[at : at + size].hex())
        at += size
    return found


def size_of_files(recording: Path, blocks: list[bytes]) -> int:
    """Return the size of the files to which the stored bytes of shared blocks refer; each file counts once."""
    directory = find_directory(recording) if blocks else None
    size = 0
    for name in {name for stored in blocks for name in names_in(stored)} if directory is not None else ():
        with suppress(OSError):  # a missing one is met when it is read
            size += min(os.lstat(f"{directory}/{name}").st_size, 2 * PIECE)  # as much of it is read
    return size


def _read(directory: Path | None, name: bytes) -> bytes | None:
    if directory is None:
        return None
    try:
        with DataFile(directory / name.hex(), follow=False) as file:
            return file.read(0, 2 * PIECE)
    except ReplaydbgError:
        return None


def expand(stored: bytes, length: int | None) -> bytes | None:
    """Return the `length` bytes that were compressed to `stored`; None if they are damaged.

    With a `length` of None the size is not checked, but limited to 1 MiB.
    """
    # Imported here: listing recordings reads none of their blocks.
    from replaydbg.log.sealed.zstd import load_zstandard

    zstandard = load_zstandard()
    reader = zstandard.ZstdDecompressor(max_window_size=2 * PIECE).stream_reader(stored)
    try:
        # A stream, because decompress() trusts the size that the data claims. One byte too many reveals a false claim.
        raw = reader.read((PIECE if length is None else length) + 1)
    except zstandard.ZstdError:
        return None
    return raw if len(raw) == length or (length is None and len(raw) <= PIECE) else None
