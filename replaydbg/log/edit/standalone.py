"""Write a recording as one file that needs no other file."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.log.container import Hiding, Writer, split
from replaydbg.log.files import forget_signature
from replaydbg.log.reader import Recording
from replaydbg.log.sealed.origin import is_own, own_key

_FIRST = ("header", "world", "log", "content")


def write_standalone(recording: Recording, target: Path, hiding: Hiding | None = None) -> int:
    """Write all sections of `recording` into `target`; return its size. Raises Corrupt, and writes nothing then.

    `hiding`: the secrets of a recording that was never sealed.
    """
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            writer = Writer(
                file, key=own_key() if is_own(recording.path) else None, size=size_of_first(recording), hiding=hiding
            )
            for name in ordered_sections(recording):
                pieces = recording.stored_pieces(name)
                is_snapshot = name.startswith("heap/")
                if is_snapshot and hiding is not None and hiding.mask_snapshot is not None:
                    pieces = iter(split(hiding.mask_snapshot(b"".join(pieces))))
                # Snapshots are compressed already.
                writer.section(name, pieces, is_compressed=not is_snapshot)
            if recording.damage:
                raise Corrupt(str(recording.path), recording.damage[0].rstrip("."))
            writer.finish()
        partial.replace(target)
        forget_signature(target)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
    return target.stat().st_size


def size_of_first(recording: Recording) -> int:
    """Return the size in bytes of its first sections, which are nearly all of it."""
    return sum(recording.size(name) for name in _FIRST)


def ordered_sections(recording: Recording) -> list[str]:
    """Return the names of its sections, with those of sources that are stored beside it, in the order of a file."""
    names = recording.sections
    # Sources may be stored beside the recording, under their hashes: they become sections only here.
    shared = {f"source/{name}" for name in recording.end.sources.values()} if recording.end is not None else set()
    rest = sorted({name for name in names if name not in (*_FIRST, "end")} | shared)
    return [*(name for name in _FIRST if name in names), *rest, *(name for name in ("end",) if name in names)]
