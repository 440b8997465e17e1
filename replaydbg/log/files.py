"""Open the files of a recording, and refuse anything that is not a regular file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from replaydbg.errors import NoSuchRecording, NotARecording

PIECE = 1 << 20
"""Number of bytes that are read at once, and the maximum size of a block in a sealed recording."""

BRANCH = "branch.json"
"""The file in a forked child's live directory that says what of its parent's recording comes before its own."""


fetchers: dict[str, Callable[[int, int], None]] = {}
"""What fetches bytes of a file that is not there as a whole, by its path: called with offset and size before a read."""

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of errors of a disk, or quota, that has no room left."""

SIGNATURE = ".sig"
"""The suffix of a detached signature, after the whole name of its file."""


def signature_path(path: Path) -> Path:
    """Return where the signature of a file is."""
    return path.with_name(path.name + SIGNATURE)


def forget_signature(path: Path) -> None:
    """Remove the signature of a file that is removed or replaced: no other file has it."""
    with suppress(OSError):  # mostly there is none; one that cannot be removed is refused with the next file
        signature_path(path).unlink()


def bytes_behind(offset: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what is behind the first `offset` bytes of a section; no empty piece, which readers take for the end."""
    for piece in pieces:
        if len(piece) > offset:
            yield piece[offset:]
        offset = max(offset - len(piece), 0)


class DataFile:
    """A regular file open for reading at any offset. Close it, or use it as a context manager."""

    __slots__ = ("_fd", "_fetch", "path", "size")

    def __init__(self, path: Path, *, follow: bool = True) -> None:
        """Open `path`; a symbolic link is refused unless `follow`, and a device or pipe always."""
        self.path = path
        # O_NONBLOCK: a named pipe in place of a file must not make the reader wait for a writer.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
        try:
            self._fd = os.open(path, flags)
        except FileNotFoundError as error:
            raise NoSuchRecording(str(path)) from error
        except (OSError, ValueError) as error:
            raise NotARecording(str(path), f"it cannot be read ({_reason(error)})") from error
        found = os.fstat(self._fd)
        self.size = found.st_size
        self._fetch = fetchers.get(str(path)) if fetchers else None
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise NotARecording(str(path), "it is not a regular file")

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes at `offset`, fewer than `size` only at the end of the file. Raises NotARecording."""
        pieces = []
        if offset >= self.size:
            return b""
        size = min(size, self.size - offset)
        if self._fetch is not None:
            self._fetch(offset, size)
        while size > 0:
            try:
                piece = os.pread(self._fd, min(size, PIECE), offset)
            except OSError as error:
                raise NotARecording(str(self.path), f"it cannot be read ({_reason(error)})") from error
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def pieces(self, end: int, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes from `start` up to `end`, a piece at a time."""
        for offset in range(start, min(end, self.size), PIECE):
            yield self.read(offset, min(PIECE, end - offset))

    def hold(self) -> None:
        """Let `gc` see that the file is in use, until it is closed; where files cannot be locked, nothing happens."""
        # Imported here: a recording that is being written opens no such file.
        import fcntl

        with suppress(OSError):
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def fileno(self) -> int:
        """Return the descriptor, which is closed with the file."""
        return self._fd

    def close(self) -> None:
        """Close the file; may be called repeatedly."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> DataFile:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


@contextmanager
def named(target: Path) -> Iterator[None]:
    """Let an OSError in the block, where `target` is written, have its name: a full disk is reported without one."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:  # an error of ours has a text instead
            error.filename = str(target)
        raise


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Let `gc` see that a sealed recording is in use within the block; a live directory it never removes.

    Raises as DataFile.
    """
    if path.is_dir():
        yield
        return
    with DataFile(path) as file:
        file.hold()
        yield


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
