"""A worker's cache of pieces and of the files made of them, with a limit of its size.

Several workers of one machine and user share it. An entry in use is locked; of the others, those that were used least
recently are removed first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from replaydbg.cluster.scheduling.content import ListedFile, read_manifest
from replaydbg.commits.surroundings import place_in
from replaydbg.store.piece_cache import CacheEntry, PieceCache, name_of_piece

_PIECES, _CONTENTS, _LOCKS = "pieces", "contents", "locks"


class PiecesMissing(Exception):
    """Pieces are not in the cache."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        super().__init__(f"{len(names)} pieces are missing")


class ContentCache(PieceCache):
    """A cache of pieces, and of contents: directories with the files of a manifest."""

    longest = 1 << 30  # a manifest is a piece, too: this is one of some millions of files

    def __init__(self, directory: Path, limit: int) -> None:
        """Use the directory, which need not exist; `limit` is its largest size in bytes. Raises OSError."""
        super().__init__(directory / _PIECES, limit)
        self.directory = directory
        for name in (_PIECES, _CONTENTS, _LOCKS):
            (directory / name).mkdir(parents=True, exist_ok=True, mode=0o700)

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
                with self.locked():
                    if not target.is_dir():
                        self._make(name, target)
            with suppress(OSError):
                os.utime(target)
            yield target
        finally:
            os.close(fd)

    def _make(self, name: str, target: Path) -> None:
        """Make the files of a manifest."""
        files = read_manifest(self._sound(name))
        wanted = list(dict.fromkeys(piece for file in files for piece in file.pieces))
        missing = [each for each in wanted if not self.path_of(each).exists()]
        if missing:
            raise PiecesMissing(missing)
        self.make_room(sum(file.size for file in files if len(file.pieces) > 1), keep={name, *wanted})
        partial = target.with_name(f".{uuid.uuid4().hex}")
        try:
            partial.mkdir(mode=0o700)
            for file in files:
                self._make_file(file, partial)
            partial.replace(target)
        except OSError as error:
            raise self.cannot_write(error) from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _make_file(self, file: ListedFile, directory: Path) -> None:
        path = place_in(directory, Path(file.name))
        if file.link:
            path.symlink_to(file.link)
        elif len(file.pieces) == 1 and not file.is_executable:
            # One piece is the file; nobody writes to either.
            path.hardlink_to(self.path_of(file.pieces[0]))
        else:
            with path.open("wb") as out:
                for piece in file.pieces:
                    out.write(self._sound(piece))
            path.chmod(0o700 if file.is_executable else 0o600)

    def _sound(self, name: str) -> bytes:
        data = self.read(name)
        if data is None:
            raise PiecesMissing([name])
        return data

    def full_text(self, needed: int) -> str:
        """Return that so many bytes are needed at once, as the end of a sentence."""
        return (
            f"its cache {str(self.directory)!r} is full: {needed:,} bytes are needed at once, and the limit is "
            f"{self.limit:,} (REPLAYDBG_WORKER_CACHE_SIZE)"
        )

    def entries(self) -> Iterator[CacheEntry]:
        """Yield all entries; pieces that are files of a content count with that."""
        for each in super().entries():
            with suppress(OSError):
                if each.path.lstat().st_nlink == 1:
                    yield each
        for path in (self.directory / _CONTENTS).iterdir():
            with suppress(OSError):
                size = sum(each.stat(follow_symlinks=False).st_size for each in path.rglob("*") if each.is_file())
                yield CacheEntry(path.stat().st_mtime_ns, size, path)

    def remove(self, path: Path) -> bool:
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
                self.path_of(name_of_piece(each.read_bytes())).unlink(missing_ok=True)
        shutil.rmtree(path)
