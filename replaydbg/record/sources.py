"""The sources that a recorded program imported, as they are when it has ended.

They go from their files into the sealed recording. Only if it cannot be sealed are they copied beside the log: as files
of their own, which each have to be made and removed, they cost more than all the rest of sealing.
"""

from __future__ import annotations

import os
import stat
import sys
from _blake2 import blake2b  # hashlib would import OpenSSL before every recorded program
from collections.abc import Iterator
from pathlib import Path

from replaydbg.log.logfile import LOG_HEADER, read_log_header

_SOURCE_LIMIT = 8 << 20
"""Larger files are not source code."""


def sources(live: Path, names: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield the sources that the importer read, each content once, with its name; `names` gets the name of each path.

    The standard library is left out.
    """
    try:
        data = (live / "world").read_bytes()
    except OSError:
        return
    header = read_log_header(data[:LOG_HEADER])
    known = set()
    for path in imported(data[: header.committed] if header else b""):
        content = source_of(path)
        if content is None:
            continue
        name = names[path] = source_name(content)
        if content and name not in known:
            known.add(name)
            yield name, content


def keep_beside(live: Path) -> dict[str, str]:
    """Copy the sources into `source/`, for a live directory that cannot be sealed; return their names by path.

    Raises OSError if there is no room for them.
    """
    names: dict[str, str] = {}
    directory = live / "source"
    for name, content in sources(live, names):
        directory.mkdir(exist_ok=True)
        (directory / name).write_bytes(content)
    return names


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


def imported(data: bytes) -> list[str]:
    """Return the Python files named in a part of a world log; they are found by pattern, without decoding it."""
    found: dict[str, None] = {}
    for operation in (b"\x04stat", b"\x04read"):
        start = data.find(operation)
        while start >= 0:
            path = _text_at(data, start + len(operation))
            if path.endswith(".py"):
                found[path] = None
            start = data.find(operation, start + 1)
    return list(found)


def _text_at(data: bytes, at: int) -> str:
    """Return the length-prefixed text at `at`; paths of 16 KiB and more do not exist."""
    if at + 2 > len(data):
        return ""
    size, at = (data[at], at + 1) if data[at] < 0x80 else (data[at] & 0x7F | data[at + 1] << 7, at + 2)
    try:
        return data[at : at + size].decode("utf-8")
    except UnicodeDecodeError:
        return ""  # bytes inside some content that look like an operation
