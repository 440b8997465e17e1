"""The sources that a recorded program imported, as they are when it has ended.

They go from their files into the sealed recording. Only if it cannot be sealed are they copied beside the log:
making and removing a file for each of them would be a third of the cost of sealing.
"""

from __future__ import annotations

import os
import stat
import sys
from _blake2 import blake2b  # hashlib would import OpenSSL before every recorded program
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from replaydbg.config import user_cache_directory
from replaydbg.log.entries.logfile import LOG_HEADER, read_log_header
from replaydbg.log.files import BRANCH
from replaydbg.log.sealed.origin import own_key
from replaydbg.log.sealed.shared import compressor
from replaydbg.record.caches.source_cache import PackedSource, SourceCache, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

_SOURCE_LIMIT = 8 << 20
"""Larger files are not source code."""


def packed_sources(live: Path, names: dict[str, str]) -> Iterator[PackedSource]:
    """Yield the sources that the importer read, compressed, each content once; `names` gets the name of each path.

    The standard library is left out.
    """
    cache = _cache()
    known = set()
    for path in _imported_by(live):
        source = _packed(path, cache)
        if source is None:
            continue
        names[path] = source.name
        if source.length and source.name not in known:
            known.add(source.name)
            yield source
    if cache is not None:
        cache.save()


def is_installed(path: str) -> bool:
    """Whether a source is of an installed package: such packages have no secrets of the user."""
    return "/site-packages/" in path


def own_sources(live: Path, *, inherited: bool = True) -> Iterator[bytes]:
    """Yield the sources that the importer read, without those of installed packages and the standard library.

    `inherited`: also those that the parent of a forked child had imported before the fork.
    """
    for path in _imported_by(live) if inherited else _imported_here(live):
        content = None if is_installed(path) else source_of(path)
        if content is not None:
            yield content


def keep_beside(live: Path) -> dict[str, str]:
    """Copy the sources into `source/`, for a live directory that cannot be sealed; return their names by path.

    Raises OSError if there is no room for them.
    """
    names: dict[str, str] = {}
    directory = live / "source"
    for path in _imported_by(live):
        content = source_of(path)
        if content is not None:
            names[path] = source_name(content)
            directory.mkdir(exist_ok=True)
            (directory / names[path]).write_bytes(content)
    return names


def _imported_by(live: Path) -> list[str]:
    return _imported_before(live) if (live / BRANCH).exists() else _imported_here(live)


def _imported_here(live: Path) -> list[str]:
    # Imported here: this module is loaded while the program runs, and the map spares two copies of 20 MB.
    import mmap

    try:
        with (live / "world").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            header = read_log_header(data[:LOG_HEADER])
            return imported(data, min(header.committed, len(data))) if header is not None else []
    except (OSError, ValueError):  # there is none, or an empty one
        return []


def _imported_before(live: Path) -> list[str]:
    """Return the same for a forked child, with what its parent imported before the fork."""
    # Imported here: only children of recorded programs need it.
    from replaydbg.log.branch import open_live

    sections = open_live(live)
    try:
        data = b"".join(sections.pieces("world"))
    finally:
        sections.close()
    header = read_log_header(data[:LOG_HEADER])
    return imported(data, min(header.committed, len(data))) if header is not None else []


def _cache() -> SourceCache | None:
    """Return the cache; None if this user can have none."""
    key = own_key()
    return SourceCache(str(user_cache_directory() / "sources"), key) if key is not None else None


def _packed(path: str, cache: SourceCache | None) -> PackedSource | None:
    """Return the present content of an imported file; None as for `source_of`."""
    if cache is None or not is_installed(path):  # the user's own sources are few, and change often
        content = source_of(path)
        return _compressed(content) if content is not None else None
    try:
        before = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    known = cache.find(path, before)
    if known is not None:
        return known
    content = source_of(path)
    if content is None:
        return None
    source = _compressed(content)
    with suppress(OSError):
        if identity(os.stat(path)) == identity(before):  # noqa: PTH116
            cache.add(path, before, source)
    return source


def _compressed(content: bytes) -> PackedSource:
    return PackedSource(source_name(content), len(content), compressor()(content))


def source_name(content: bytes) -> str:
    """Return the name under which a source is stored."""
    return blake2b(content, digest_size=16).hexdigest()


def source_of(path: str) -> bytes | None:
    """Return the present content of an imported file; None for the standard library, a missing file, or no source.

    The code that ran is in the import world in any case.
    """
    if path.startswith(f"{sys.base_prefix}/lib") and "site-packages" not in path:
        return None
    try:
        # Not pathlib: there may be thousands.
        found = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(found.st_mode) or found.st_size > _SOURCE_LIMIT:
            return None
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read(found.st_size + 1)
    except OSError:
        return None


_RECORD = b"\x42\x04"
"""The beginning of an answer of the world log: its head, and the length of a name of four letters."""


def imported(data: bytes | mmap, end: int | None = None) -> list[str]:
    """Return the Python files named in a part of a world log; they are found by pattern, without decoding it."""
    found: dict[str, None] = {}
    stop = len(data) if end is None else end
    at = data.find(_RECORD, 0, stop)
    while at >= 0:
        operation = data[at + 2 : at + 6]
        at += len(_RECORD)
        if operation in (b"stat", b"read"):
            path, after = _text_at(data, at + 4)
            if path.endswith(".py"):
                found[path] = None
            if operation == b"read":
                at = _after_content(data, after)
        at = data.find(_RECORD, at, stop)
    return list(found)


def _after_content(data: bytes | mmap, at: int) -> int:
    """Return the end of the content whose length is stored at `at`; `at` if the record has no content."""
    _, start = _varint_at(data, at)
    if data[start : start + 1] != b"\x07":  # an exception
        return at
    size, start = _varint_at(data, start + 1)
    return start + size if start + size <= len(data) else at


def _varint_at(data: bytes | mmap, at: int) -> tuple[int, int]:
    number = shift = 0
    for byte in data[at : at + 10]:
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return number, at


def _text_at(data: bytes | mmap, at: int) -> tuple[str, int]:
    """Return the length-prefixed text at `at`, and where it ends; paths of 16 KiB and more do not exist."""
    size, at = _varint_at(data, at)
    try:
        return (data[at : at + size].decode("utf-8") if size < 1 << 14 else ""), at + size
    except UnicodeDecodeError:
        return "", at  # bytes inside some content that look like an operation
