"""Blocks that several recordings share: files named by their content, in directories beside or above the recordings.

Each block is read from the nearest directory that has it undamaged: a group has a directory of its own, and that of the
store above it may have the same block. The content of a block shows that it is the right one, wherever it is found.
"""

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
    from collections.abc import Callable, Iterable

_ENTRY = struct.Struct("<BII")
_INLINE, _FILE = 0, 1
_NAME = 16
EMPTY = blake2b(digest_size=_NAME).hexdigest()
"""The hash of no bytes: an empty source is stored nowhere."""
_WINDOW_LOG = 21
"""Twice a block, as the power of two: a compressor for blocks never looks back further."""
MOST_UP = 3
"""Number of directories above the recording that are searched."""


@cache
def compressor() -> Callable[[bytes], bytes]:
    """Return what compresses: fast, since somebody waits. It is shared where thousands of recordings are cut."""
    # Imported here: opening a recording, which uses this package, must not need it before a block is read.
    from replaydbg.log.sealed import zstd

    return zstd.compressor(level=1)


class BlockStore:
    """The directory to write to. Several processes may write at once: an existing file is always complete."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / DIRECTORY
        self._known: set[str] = set()
        self._compress = compressor()

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


def find_directories(recording: Path) -> list[Path]:
    """Return the directories of blocks that `recording` may share, beside it and above, the nearest first."""
    folder = recording.absolute().parent
    found = []
    for _ in range(MOST_UP):
        if (folder / DIRECTORY).is_dir():
            found.append(folder / DIRECTORY)
        folder = folder.parent
    return found


def load_shared(stored: bytes, length: int, directories: Iterable[Path]) -> bytes | None:
    """Return the `length` bytes that `stored` refers to; None if they are damaged or missing in all directories."""
    raw = b""
    at = 0
    while at + _ENTRY.size <= len(stored) and len(raw) < length:
        kind, part_length, size = _ENTRY.unpack_from(stored, at)
        at += _ENTRY.size
        part = stored[at : at + size]
        at += size
        if len(part) != size or part_length > length - len(raw):
            return None
        if kind == _INLINE:
            plain = expand(part, part_length)
        else:
            places = directories if kind == _FILE and size == _NAME else ()
            plain = next((each for place in places if (each := _load(place, part, part_length)) is not None), None)
        if plain is None:
            return None
        raw += plain
    return raw if len(raw) == length and at == len(stored) else None


def load_source(digest: str, directory: Path) -> bytes | None:
    """Return the source, or other block, with that hash, in hexadecimal; None if there is none, or a damaged one."""
    try:
        name = bytes.fromhex(digest)
    except ValueError:
        return None
    return (_load(directory, name, None) or None) if len(name) == _NAME else None


def find_sound(digest: str, directories: Iterable[Path]) -> Path | None:
    """Return the nearest file of a block that is not damaged; None: there is none."""
    return next((each / digest for each in directories if load_source(digest, each) is not None), None)


def _load(directory: Path, name: bytes, length: int | None) -> bytes | None:
    """Return the plain bytes of a block, see `expand`; None if it is missing or damaged."""
    try:
        with DataFile(directory / name.hex(), follow=False) as file:
            found = file.read(0, 2 * PIECE)
    except ReplaydbgError:
        return None
    plain = expand(found, length)
    return plain if plain is not None and blake2b(plain, digest_size=_NAME).digest() == name else None


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
    directories = find_directories(recording) if blocks else []
    size = 0
    for name in {name for stored in blocks for name in names_in(stored)}:
        sizes = [0]
        for directory in directories:
            with suppress(OSError):  # a missing one is met when it is read
                sizes.append(os.lstat(f"{directory}/{name}").st_size)
        size += min(max(sizes), 2 * PIECE)  # as much of it is read; a damaged one may be shorter
    return size


def expand(stored: bytes, length: int | None) -> bytes | None:
    """Return the `length` bytes that were compressed to `stored`; None if they are damaged.

    With a `length` of None the size is not checked, but limited to 1 MiB.
    """
    # Imported here: listing recordings reads none of their blocks.
    from replaydbg.log.sealed import zstd

    try:
        # One byte too many reveals a false claim.
        raw = zstd.expand(stored, (PIECE if length is None else length) + 1, _WINDOW_LOG)
    except ValueError:
        return None
    return raw if len(raw) == length or (length is None and len(raw) <= PIECE) else None
