"""The files of a remote store, and the few things that are done with them.

    recordings/NAME.json   the index of a recording: written last, and never changed
    pieces/ab/abcdef...    parts of recordings, named by their hash: never changed, used by any number of recordings

Every file system of fsspec has these: reading a file, writing one whole, listing a folder. What differs is whether a
write that is interrupted leaves a part of the file, and whether one can be asked for that fails if the file exists.
Object stores write all or nothing. In a directory, files are written under another name and linked.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from replaydbg.classes import NamedTuple
from replaydbg.errors import RemoteFailed, ReplaydbgError, UsageError
from replaydbg.remote.address import check_name, shown

RECORDINGS, PIECES = "recordings", "pieces"
ENDING = ".json"
AT_ONCE = 8
"""Requests that are under way at once."""

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure", "az": "azure"}

_NEEDS_ANOTHER = "it needs another file system, which a URL cannot name"
_UNSUITABLE = {
    "memory": "what is in memory is lost when the command ends",
    "data": "its content is in the URL, and nothing can be written to it",
    **dict.fromkeys(("asyncwrapper", "async_wrapper", "dir", "generic", "reference"), _NEEDS_ANOTHER),
    **dict.fromkeys(("blockcache", "cached", "filecache", "simplecache"), _NEEDS_ANOTHER),
    **dict.fromkeys(("libarchive", "tar", "zip"), "the files in an archive cannot be changed"),
}
"""Protocols of fsspec that cannot be a remote store, and why: the end of a sentence."""


class RemoteFile(NamedTuple):
    """A file in a listing."""

    name: str
    folder: str
    """The path of its folder, relative to the store."""
    size: int
    changed: float | None
    """When it was written, in seconds since 1970; None: the file system does not tell."""
    version: str
    """Differs if the file does, as far as the file system tells."""


class RemoteStore:
    """A directory of a file system of fsspec. Every method raises RemoteFailed if the file system refuses or fails."""

    def __init__(self, url: str) -> None:
        """Take the URL of the store. Raises UsageError if there is no such file system, or its package is missing."""
        self.url = url
        self._is_local = False
        self._fs, self._root = self._open(url)

    def _open(self, url: str) -> tuple[Any, str]:
        protocol = url.partition("://")[0]
        if protocol in _UNSUITABLE:
            raise UsageError(f"{shown(url)} cannot be a remote store: {_UNSUITABLE[protocol]}.")
        extra = _EXTRAS.get(protocol, "remote")
        try:
            # Imported here, as everything of fsspec: only commands that are given an address need it.
            from fsspec.core import url_to_fs
            from fsspec.implementations.local import LocalFileSystem
            from fsspec.implementations.memory import MemoryFileSystem
        except ImportError as error:
            raise UsageError(f"{shown(url)} needs fsspec: pip install 'replaydbg[{extra}]'.") from error
        try:
            filesystem, root = url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            reason = str(error).rstrip(".")
            raise UsageError(f"{shown(url)} needs a package: pip install 'replaydbg[{extra}]' ({reason}).") from error
        except Exception as error:  # some connect at once, some need more than a URL: errors of any type
            raise UsageError(f"{shown(url)} cannot be opened: {_reason(error)}.") from error
        if isinstance(filesystem, MemoryFileSystem):  # under a name that the user has registered
            raise UsageError(f"{shown(url)} cannot be a remote store: {_UNSUITABLE['memory']}.")
        self._is_local = isinstance(filesystem, LocalFileSystem)
        root = str(root).rstrip("/")
        there = next((each for each in (root, *map(str, Path(root).parents)) if os.path.lexists(each)), "/")
        if self._is_local and not os.path.isdir(there):  # noqa: PTH112 - paths of fsspec are strings
            raise UsageError(f"{shown(url)} cannot be a remote store: {there!r} is not a directory.")
        return filesystem, root

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes; None: there is no such file."""
        with self._reported(f"{path} cannot be read"):
            try:
                data: bytes = self._fs.cat_file(self._at(path))
            except FileNotFoundError:
                return None
            return data

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole, or not at all; one of that name is replaced."""
        with self._reported(f"{path} cannot be written"):
            if self._is_local:
                with self._written(path, data) as partial:
                    os.replace(partial, self._at(path))  # noqa: PTH105 - paths of fsspec are strings
            else:
                self._fs.pipe_file(self._at(path), data)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file whole unless there is one of that name; return whether there was none."""
        with self._reported(f"{path} cannot be written"):
            try:
                if self._is_local:
                    with self._written(path, data) as partial:
                        os.link(partial, self._at(path))
                else:
                    self._fs.pipe_file(self._at(path), data, mode="create")
            except FileExistsError:
                return False
            except Exception:  # each file system has an error of its own for that
                if self._fs.exists(self._at(path)):
                    return False
                raise
            return True

    @contextmanager
    def _written(self, path: str, data: bytes) -> Iterator[str]:
        """Yield the path of a file in the same directory with these bytes, which is removed afterwards."""
        folder, _, name = self._at(path).rpartition("/")
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        partial = f"{folder}/.{name}.{secrets.token_hex(4)}"
        try:
            with open(partial, "xb") as file:  # noqa: PTH123
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield partial
        finally:
            with suppress(FileNotFoundError):
                os.unlink(partial)  # noqa: PTH108

    def find(self, path: str) -> RemoteFile | None:
        """Return the facts about a file; None: there is none."""
        with self._reported(f"{path} cannot be looked up"):
            try:
                return self._file(self._fs.info(self._at(path)))
            except FileNotFoundError:
                return None

    def list(self, folder: str) -> list[RemoteFile]:
        """Return the files in a folder and those below, by name; none if it does not exist.

        A name that begins with a full stop is that of one which somebody writes, or was interrupted in writing.
        """
        with self._reported(f"{folder} cannot be listed"):
            try:
                found = self._fs.find(self._at(folder), detail=True)
            except FileNotFoundError:
                found = {}
            if not found:
                self._check_place()
            return sorted(self._file(each) for each in found.values() if each.get("type") == "file")

    def _check_place(self) -> None:
        """Raise FileNotFoundError if there is no such directory, or bucket: it is not empty, but mistyped."""
        place = self._root if self._is_local else self._root.partition("/")[0]
        if not self._fs.exists(place):
            raise FileNotFoundError(place)

    def remove(self, path: str) -> None:
        """Remove a file; one that is not there is ignored."""
        with self._reported(f"{path} cannot be removed"), suppress(FileNotFoundError):
            self._fs.rm_file(self._at(path))

    def read_all(self, paths: Iterable[str]) -> Iterator[bytes | None]:
        """Yield what `read` returns for each of several files, some of which are read at once."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield from pool.map(self.read, paths)

    def _file(self, facts: dict[str, Any]) -> RemoteFile:
        changed = facts.get("LastModified") or facts.get("last_modified") or facts.get("mtime") or facts.get("updated")
        if isinstance(changed, str):
            with suppress(ValueError):
                changed = datetime.fromisoformat(changed)
        seconds = changed.timestamp() if isinstance(changed, datetime) else changed
        folder, _, name = str(facts["name"]).rpartition("/")
        return RemoteFile(
            name,
            folder.removeprefix(self._root).lstrip("/"),
            int(facts.get("size") or 0),
            float(seconds) if isinstance(seconds, int | float) else None,
            str(facts.get("ETag") or facts.get("etag") or facts.get("md5Hash") or seconds),
        )

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"

    @contextmanager
    def _reported(self, what: str) -> Iterator[None]:
        try:
            yield
        except ReplaydbgError:
            raise
        except Exception as error:  # the packages of file systems have errors of their own, of any type
            raise RemoteFailed(shown(self.url), f"{what}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "you have no rights for it"
    if isinstance(error, FileNotFoundError):
        return "there is no such bucket or directory"
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return (text or type(error).__name__).splitlines()[0][:300].rstrip(".")


def index_path(name: str) -> str:
    """Return the path of a recording's index. Raises UsageError for a name that no address can have."""
    check_name(name)
    return f"{RECORDINGS}/{name}{ENDING}"


def piece_path(digest: str) -> str:
    """Return the path of a piece with that hash."""
    return f"{PIECES}/{digest[:2]}/{digest}"
