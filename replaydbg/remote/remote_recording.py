"""A recording in a remote store: its pieces are fetched when they are needed, and checked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from replaydbg.config import user_cache_directory
from replaydbg.errors import Corrupt, NoSuchRecording, RemoteFailed
from replaydbg.log.files import named
from replaydbg.remote.address import Address, shown
from replaydbg.remote.remote_index import ONE, PiecePlaces, RemoteIndex, parse_index
from replaydbg.remote.remote_store import AT_ONCE, RemoteStore, index_path, piece_path
from replaydbg.store.piece_cache import CacheFull, PieceCache, name_of_piece

_MOST = 2 << 30
"""Bytes of all pieces in the cache of this user; beyond, those that were used least recently are removed."""


class RemoteRecording:
    """A recording in a remote store."""

    def __init__(self, address: Address, store: RemoteStore | None = None) -> None:
        """Read its index. Raises NoSuchRecording, RemoteFailed, Corrupt, NewerFormat, or UsageError as the store."""
        self.address = address
        self._store = RemoteStore(address.store) if store is None else store
        self._cache = PieceCache(user_cache_directory() / "pieces", _MOST)
        data = self._store.read(index_path(address.name))
        if data is None:
            raise NoSuchRecording(str(address), shown(address.store))
        self.index: RemoteIndex = parse_index(str(address), data)
        self.places = PiecePlaces(self.index)

    def piece(self, number: int) -> bytes:
        """Return a piece. Raises RemoteFailed if it cannot be fetched, Corrupt if it is not what the index says."""
        piece = self.index.pieces[number]
        data = self._cache.read(piece.digest)
        if data is not None:
            return data
        path = piece_path(piece.digest)
        data = self._store.read(path)
        if data is None:
            raise RemoteFailed(shown(self.address.store), f"{self.address.name} needs {path}, which is missing")
        if len(data) != piece.size or name_of_piece(data) != piece.digest:
            raise Corrupt(str(self.address), f"{path} is not what its index says")
        with suppress(CacheFull):  # it costs only time
            self._cache.put({piece.digest: data})
        return data

    def write(self, folder: Path, *, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Write its files into a directory, which is empty. Raises as `piece`, and OSError."""
        PartlyThere(self, folder).fetch(range(len(self.index.pieces)), progress)


class PartlyThere:
    """The files of a remote recording in a directory: as large as they are, with holes for what was not fetched."""

    def __init__(self, recording: RemoteRecording, folder: Path, *, one: str = ONE) -> None:
        """Make them; `one` is the name of the file of a recording of one process. Raises OSError."""
        self._recording = recording
        self._folder = folder
        self._one = one
        self._there: set[int] = set()
        for each in recording.index.files:
            path = self.path_of(each.path)
            path.parent.mkdir(exist_ok=True, mode=0o700)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                with named(path):
                    os.truncate(fd, each.size)
            finally:
                os.close(fd)

    def need(self, path: str, offset: int, size: int) -> None:
        """Fetch the pieces with these bytes of a file. Raises as `RemoteRecording.piece`, and OSError."""
        self.fetch(self._recording.places.pieces(path, offset, size) if size else ())

    def fetch(self, numbers: Iterable[int], progress: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Fetch pieces, several at once; those that are there are not fetched again."""
        missing = [each for each in dict.fromkeys(numbers) if each not in self._there]
        if len(missing) < 2:
            for each in missing:
                self._add(each, self._recording.piece(each))
            return
        pieces = self._recording.index.pieces
        done, total = 0, sum(pieces[each].size for each in missing)
        self._check_room(total)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                # A few at a time: what is fetched and not written yet is in memory.
                for first in range(0, len(missing), 4 * AT_ONCE):
                    some = missing[first : first + 4 * AT_ONCE]
                    for each, data in zip(some, pool.map(self._recording.piece, some), strict=True):
                        self._add(each, data)
                        done += len(data)
                        progress(done, total)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _check_room(self, size: int) -> None:
        """Raise RemoteFailed unless so many bytes fit on the disk: an index can claim any size."""
        free = shutil.disk_usage(self._folder).free
        if size > free:
            raise RemoteFailed(
                shown(self._recording.address.store),
                f"{self._recording.address.name} needs {size:,} bytes, and {free:,} are free in "
                f"{str(self._folder.parent)!r}",
            )

    def _add(self, number: int, data: bytes) -> None:
        """Write a piece into the files of which it has bytes."""
        for each, start in self._recording.places.files(number):
            self._write(self.path_of(each.path), start, data, each.size)
        self._there.add(number)

    def path_of(self, path: str) -> Path:
        """Return where a file of the recording is."""
        return self._folder / (self._one + path.removeprefix(ONE) if path.startswith(ONE) else path)

    @staticmethod
    def _write(path: Path, start: int, data: bytes, size: int) -> None:
        skipped = max(0, -start)
        part = data[skipped : size - start]
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            with named(path):
                while part:  # on a full disk the first write is short, and only the next one fails
                    written = os.pwrite(fd, part, start + skipped)
                    part, skipped = part[written:], skipped + written
        finally:
            os.close(fd)
