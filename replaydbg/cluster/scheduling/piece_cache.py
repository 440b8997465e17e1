"""A worker's cache of pieces and of the files made of them, with a limit of its size.

Several workers of one machine and user share it. A file is written under another name first, so an entry is complete.
An entry in use is locked; of the others, those that were used least recently are removed first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from replaydbg.cluster.scheduling.content import ListedFile, name_of_piece, read_manifest
from replaydbg.commits.surroundings import place_in
from replaydbg.errors import clause

_PIECES, _CONTENTS, _LOCKS = "pieces", "contents", "locks"


class CacheFull(Exception):
    """There is no room for what a task needs; the message is the end of a sentence."""


class PiecesMissing(Exception):
    """Pieces are not in the cache."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        super().__init__(f"{len(names)} pieces are missing")


class _CacheEntry(NamedTuple):
    """A piece or a content in the cache."""

    used: int
    """When it was last used, in ns."""
    size: int
    path: Path


class PieceCache:
    """The cache in a directory; used from several threads and processes."""

    def __init__(self, directory: Path, limit: int) -> None:
        """Use the directory, which need not exist; `limit` is its largest size in bytes. Raises OSError."""
        self.directory, self.limit = directory, limit
        for name in (_PIECES, _CONTENTS, _LOCKS):
            (directory / name).mkdir(parents=True, exist_ok=True, mode=0o700)

    def put(self, pieces: Mapping[str, bytes]) -> None:
        """Add pieces; those with other bytes than their names say are ignored. Raises CacheFull."""
        sound = {name: data for name, data in pieces.items() if name_of_piece(data) == name}
        with self._locked():
            new = {name: data for name, data in sound.items() if not self._piece(name).exists()}
            self._make_room(sum(map(len, new.values())), keep=set(pieces))
            for name, data in new.items():
                self._write(self._piece(name), data)

    @contextmanager
    def content(self, name: str) -> Iterator[Path]:
        """Yield the directory with the files of a manifest, which stays as long as the block runs.

        Raises PiecesMissing and CacheFull.
        """
        # One that is removed just now would leave us a lock that nobody else has: its file is never removed.
        fd = os.open(self.directory / _LOCKS / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
            target = self.directory / _CONTENTS / name
            if not target.is_dir():
                with self._locked():
                    if not target.is_dir():
                        self._make(name, target)
            with suppress(OSError):
                os.utime(target)
            yield target
        finally:
            os.close(fd)

    def _make(self, name: str, target: Path) -> None:
        """Make the files of a manifest."""
        manifest = self._read([name])[name]
        files = read_manifest(manifest)
        wanted = list(dict.fromkeys(piece for file in files for piece in file.pieces))
        missing = [each for each in wanted if not self._piece(each).exists()]
        if missing:
            raise PiecesMissing(missing)
        self._make_room(sum(file.size for file in files if len(file.pieces) > 1), keep={name, *wanted})
        partial = target.with_name(f".{uuid.uuid4().hex}")
        try:
            partial.mkdir(mode=0o700)
            for file in files:
                self._make_file(file, partial)
            partial.replace(target)
        except OSError as error:
            raise CacheFull(self._cannot_write(error)) from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _make_file(self, file: ListedFile, directory: Path) -> None:
        path = place_in(directory, Path(file.name))
        if file.link:
            path.symlink_to(file.link)
        elif len(file.pieces) == 1 and not file.is_executable:
            # One piece is the file; nobody writes to either.
            path.hardlink_to(self._piece(file.pieces[0]))
        else:
            with path.open("wb") as out:
                for piece in file.pieces:
                    out.write(self._read([piece])[piece])
            path.chmod(0o700 if file.is_executable else 0o600)

    def _read(self, names: list[str]) -> dict[str, bytes]:
        found = {}
        for name in names:
            path = self._piece(name)
            with suppress(OSError):
                data = path.read_bytes()
                if name_of_piece(data) == name:
                    found[name] = data
                    os.utime(path)
                else:
                    path.unlink()  # the disk has damaged it
        missing = [name for name in names if name not in found]
        if missing:
            raise PiecesMissing(missing)
        return found

    def _write(self, path: Path, data: bytes) -> None:
        partial = path.with_name(f".{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(exist_ok=True, mode=0o700)
            partial.write_bytes(data)
            partial.replace(path)
        except OSError as error:
            raise CacheFull(self._cannot_write(error)) from None
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)

    def _cannot_write(self, error: OSError) -> str:
        return f"its cache {str(self.directory)!r} cannot be written: {clause(error.strerror or str(error))}"

    def _piece(self, name: str) -> Path:
        if len(name) != 64 or not set(name) <= set("0123456789abcdef"):
            raise CacheFull(f"{name!r} is not the name of a piece")
        return self.directory / _PIECES / name[:2] / name

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes and threads from removing or adding entries."""
        fd = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _make_room(self, size: int, *, keep: set[str]) -> None:
        """Remove entries that nobody uses until `size` more bytes fit, except those to `keep`. Raises CacheFull."""
        entries = sorted(self._entries())
        total = sum(each.size for each in entries) + size
        for each in entries:
            if total <= self.limit:
                return
            if each.path.name not in keep and self._remove(each.path):
                total -= each.size
        if total > self.limit:
            raise CacheFull(
                f"its cache {str(self.directory)!r} is full: {total:,} bytes are needed at once, and the limit is "
                f"{self.limit:,} (REPLAYDBG_WORKER_CACHE_SIZE)"
            )

    def _entries(self) -> Iterator[_CacheEntry]:
        """Yield all entries; pieces that are files of a content count with that."""
        for path in (self.directory / _PIECES).glob("*/*"):
            with suppress(OSError):
                about = path.stat()
                if about.st_nlink == 1:
                    yield _CacheEntry(about.st_mtime_ns, about.st_size, path)
        for path in (self.directory / _CONTENTS).iterdir():
            with suppress(OSError):
                size = sum(each.stat(follow_symlinks=False).st_size for each in path.rglob("*") if each.is_file())
                yield _CacheEntry(path.stat().st_mtime_ns, size, path)

    def _remove(self, path: Path) -> bool:
        """Remove an entry unless it is in use; return whether it is gone."""
        try:
            if not path.is_dir():
                path.unlink()
                return True
            fd = os.open(self.directory / _LOCKS / path.name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._remove_content(path)
            finally:
                os.close(fd)
        except OSError:
            return False
        return True

    def _remove_content(self, path: Path) -> None:
        """Remove a content, with the pieces that are its files and no other content's."""
        for each in path.rglob("*"):
            about = each.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) and about.st_nlink == 2:
                self._piece(name_of_piece(each.read_bytes())).unlink(missing_ok=True)
        shutil.rmtree(path)
