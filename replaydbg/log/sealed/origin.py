"""Recognise the recordings that this user made: they end in a mark that needs this user's key.

The key is a file of the user's own. A mark is a keyed hash over the bytes of a sealed file: it stays valid when the
file is renamed, moved or copied, and no other file has it. It only decides whether a command warns that it runs a
program of unknown origin. The mark of a live directory covers its position in the file system, which no copy has. The
file system counts by its own id where it has one: the number of its device can be another one after a reboot.

Of a long recording, a faster keyed hash goes into the mark in place of the bytes: `native/digest/digest.c` has it.
"""

from __future__ import annotations

import os
from _blake2 import blake2b  # hashlib would import OpenSSL before every recorded program
from contextlib import suppress
from functools import cache
from pathlib import Path

from replaydbg.config import user_key_file
from replaydbg.errors import ReplaydbgError
from replaydbg.log.files import DataFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "mark"
"""The name of a sealed file's last block, and of the file in a live directory."""

MARK_SIZE = 32
_KEY_SIZE = 32
_CHUNK = 4096
"""Bytes that one hash of a long recording covers; the key of these hashes has as many."""
LONG = 4 << 20
"""A recording of at least this many bytes is long. A shorter one is marked sooner than the hash is loaded."""


def own_key() -> bytes | None:
    """Return this user's key, which is made when it is first needed; None if it cannot be stored."""
    return _key_in(user_key_file())


@cache  # cached by its path: a process may change where its data is stored
def _key_in(path: Path) -> bytes | None:
    try:
        return _read(path) or _make(path)
    except OSError:
        return None


def _read(path: Path) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(fd)
        key = os.read(fd, _KEY_SIZE + 1)
    finally:
        os.close(fd)
    # A file of somebody else is not a secret of ours, nor is one that others may read.
    is_private = found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return key if len(key) == _KEY_SIZE and is_private else None


def _make(path: Path) -> bytes | None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, os.urandom(_KEY_SIZE))
        os.close(fd)
        with suppress(FileExistsError):  # another recorder was quicker: its key is used
            os.link(partial, path)
    finally:
        partial.unlink()
    return _read(path)


class OriginMarker:
    """Computes the mark of a file from its blocks, as they are written or read."""

    __slots__ = ("_digest", "_hash", "_length", "_rest", "is_long")

    def __init__(self, key: bytes, *, is_long: bool = False, person: bytes = b"") -> None:
        """`is_long`: hash the bytes first, see above, if this interpreter has the hash; the attribute shows whether.

        `person`: what the mark is for, if it is not that of a recording.
        """
        self._digest = _long_hash(key) if is_long else None
        self.is_long = self._digest is not None
        # Different marks for the same bytes: neither can be used as the other one.
        self._hash = blake2b(
            key=key, digest_size=MARK_SIZE, person=person or (b"replaydbg long" if self.is_long else b"replaydbg file")
        )
        self._length = 0
        self._rest = b""
        """Bytes of a chunk that is not complete."""

    def add(self, data: bytes) -> None:
        """Add the next bytes. In what pieces they are added makes no difference."""
        if self._digest is None:
            self._hash.update(data)
            return
        self._length += len(data)
        view = memoryview(data)
        if self._rest:
            missing = _CHUNK - len(self._rest)
            self._rest += view[:missing]
            if len(self._rest) < _CHUNK:
                return
            self._hash.update(self._digest(self._rest))
            view = view[missing:]
        end = len(view) - len(view) % _CHUNK
        self._hash.update(self._digest(view[:end]))
        self._rest = bytes(view[end:])

    def copy(self) -> OriginMarker:
        """Return a copy with the same bytes."""
        other = OriginMarker.__new__(OriginMarker)
        other._digest, other.is_long = self._digest, self.is_long
        other._hash, other._length, other._rest = self._hash.copy(), self._length, self._rest
        return other

    def mark(self) -> bytes:
        """Return the mark of all bytes."""
        if self._digest is None:
            return self._hash.digest()
        last = self._hash.copy()
        last.update(self._digest(self._rest))
        last.update(self._length.to_bytes(8, "little"))
        return last.digest()


@cache
def _long_hash(key: bytes) -> Callable[[bytes | memoryview], bytes] | None:
    """Return the hash of the chunks of long data; None if it was not built for this interpreter."""
    try:
        from replaydbg.native._digest import digest
    except ImportError:
        return None
    # Derived, so that nothing about the key of the mark follows from it.
    parts = (
        blake2b(number.to_bytes(8, "little"), key=key, person=b"replaydbg chunk").digest()
        for number in range(_CHUNK // 64)
    )
    own = b"".join(parts)
    return lambda data: digest(own, data)


def mark_live(live: Path) -> None:
    """Mark a live directory that was just made. Raises OSError."""
    key = own_key()
    if key is not None:
        (live / MARK).write_bytes(_mark_of_place(live, key))


def _mark_of_place(live: Path, key: bytes) -> bytes:
    found = os.stat(live)  # noqa: PTH116
    place = f"{os.statvfs(live).f_fsid or found.st_dev} {found.st_ino} {found.st_uid}"
    return blake2b(place.encode(), key=key, digest_size=MARK_SIZE, person=b"replaydbg live").digest()


def is_own(path: Path) -> bool:
    """Return whether this user made the recording at `path`, with this key."""
    key = own_key()
    if key is None:
        return False
    try:
        if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where it may not look
            with DataFile(path / MARK, follow=False) as file:
                return _is_equal(file.read(0, MARK_SIZE), _mark_of_place(path, key))
        return _has_mark(path, key)
    except (OSError, ReplaydbgError):
        return False


def _has_mark(path: Path, key: bytes) -> bool:
    # Imported here: a recording begins with this module, and reads no block.
    from replaydbg.log.sealed.blocks import BLOCK_HEADER, FILE_HEADER, load_block, read_block, unpack_head

    with DataFile(path) as file:
        end = file.size - BLOCK_HEADER - len(MARK) - MARK_SIZE
        block = read_block(file, end) if end > FILE_HEADER else None
        if block is None or block.section != MARK:
            return False
        marker = OriginMarker(key, is_long=unpack_head(file.read(0, FILE_HEADER)).is_mark_long)
        for piece in file.pieces(end, FILE_HEADER):
            marker.add(piece)
        return _is_equal(load_block(file, block) or b"", marker.mark())


def _is_equal(one: bytes, other: bytes) -> bool:
    return one == other  # an attacker who can measure the time this takes can read the key as well
