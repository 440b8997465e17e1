"""Find source files of a program that have changed on the disk since it loaded them: the recorded code runs on."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from importlib.util import source_from_cache, source_hash
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.errors import NoSuchRecording, NotARecording
from replaydbg.log.files import DataFile
from replaydbg.log.reader import Recording
from replaydbg.log.sources import cached_modules, what_was_read

_HEAD = 16
"""Bytes of a cached module before its code: its version, its flags, and what it knows of its source (PEP 552)."""
_BY_HASH = 1
"""The flag of one that knows the hash of its source, and not its time and size."""


@dataclass(frozen=True, slots=True)
class ChangedSource:
    """A source file that is not what the program loaded."""

    path: str
    is_gone: bool
    """Whether it was deleted; otherwise it has changed."""


def changed_sources(recording: Recording) -> tuple[ChangedSource, ...]:
    """Return the source files that have changed since the program loaded them, sorted by path; nothing is executed.

    A source that the importer read is compared by its text. If it read cached bytecode, the file is compared as an
    importer does that decides whether the cache is of this source: by time and size, or by its hash.
    """
    script = os.path.join(recording.header.cwd, recording.header.target)  # noqa: PTH118 - as the importer joins them
    known = {path: data for path, data in what_was_read(recording).items() if path.endswith(".py") or path == script}
    cached = {}
    for path, data in cached_modules(recording).items():
        with suppress(ValueError):  # not in the directory of caches: a module without a source
            cached[source_from_cache(path)] = data[:_HEAD]
    found = []
    for path in sorted({*known, *cached}):
        if not os.path.isabs(path):  # noqa: PTH117
            continue  # it is in a directory that is not known
        try:
            with DataFile(Path(path)) as source:
                is_same = _is_text(source, known[path]) if path in known else _is_cached(source, cached[path])
        except NoSuchRecording:
            found.append(ChangedSource(path, is_gone=True))
        except NotARecording:
            found.append(ChangedSource(path, is_gone=False))  # a directory, or one that may not be read
        else:
            if not is_same:
                found.append(ChangedSource(path, is_gone=False))
    return tuple(found)


def _is_text(source: DataFile, text: bytes) -> bool:
    return source.size == len(text) and source.read(0, source.size) == text


def _is_cached(source: DataFile, head: bytes) -> bool:
    """Whether cached bytecode that begins with `head` is of this source."""
    flags, fact = int.from_bytes(head[4:8], "little"), head[8:]
    if flags & _BY_HASH:
        return source_hash(source.read(0, source.size)) == fact
    modified = int(os.fstat(source.fileno()).st_mtime)
    return fact == struct.pack("<II", modified & 0xFFFFFFFF, source.size & 0xFFFFFFFF)
