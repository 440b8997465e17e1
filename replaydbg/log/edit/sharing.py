"""Write a recording that is one file so that it shares blocks with the others of a store.

Whoever records many runs and keeps a few seals each as one file, which is removed as a whole, and writes those that are
kept once more. What only the others had never reaches the blocks of the store.
"""

from __future__ import annotations

import os
from _blake2 import blake2b
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.log.container import COMMON_IN_END, COMMON_IN_HEADER, COMPRESS_CONTENT_UP_TO, Writer, split, write_json
from replaydbg.log.edit.standalone import ordered_sections, size_of_first
from replaydbg.log.files import forget_signature
from replaydbg.log.reader import Recording
from replaydbg.log.sealed.group_blocks import Common
from replaydbg.log.sealed.origin import is_own, own_key
from replaydbg.log.sealed.shared import compressor

_COMMON = {"header": COMMON_IN_HEADER, "end": COMMON_IN_END}


def write_shared(recording: Recording, target: Path, common: Common) -> None:
    """Write all sections of `recording` into `target`, and what others have in common with it into blocks.

    Masked secrets stay masked. Raises Corrupt if the recording is damaged, OSError; there is no target then.
    """
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            key = own_key() if is_own(recording.path) else None
            writer = Writer(file, key=key, size=size_of_first(recording))
            _write(writer, recording, common)
            if recording.damage:
                raise Corrupt(str(recording.path), recording.damage[0].rstrip("."))
            common.blocks.sync()
            writer.finish()
        partial.replace(target)
        forget_signature(target)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


def _write(writer: Writer, recording: Recording, common: Common) -> None:
    is_large = recording.size("content") > COMPRESS_CONTENT_UP_TO
    parts = common.parts({}, has_large_content=is_large, compress_world=None)
    for name in ordered_sections(recording):
        pieces = recording.stored_pieces(name)
        if name in _COMMON:
            write_json(writer, name, b"".join(pieces), common, _COMMON[name])
        elif name.startswith("source/"):
            _write_source(writer, name, b"".join(pieces), common)
        else:
            is_compressed = not name.startswith("heap/") and not (name == "content" and is_large)
            writer.section(name, pieces, is_compressed=is_compressed, common=parts.get(name))


def _write_source(writer: Writer, name: str, data: bytes, common: Common) -> None:
    digest = name.removeprefix("source/")
    # A masked source has not the hash by which a shared one is named.
    is_plain = blake2b(data, digest_size=len(digest) // 2).hexdigest() == digest
    if not is_plain or not common.has_stored(digest, len(data), compressor()(data)):
        writer.section(name, split(data))
