"""Replace stretches of an event log, and write the recording with the new log."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from replaydbg.events.values import Value
from replaydbg.log.coding.encode import encode_value
from replaydbg.log.container import Hiding, Writer, split
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import PIECE, forget_signature
from replaydbg.log.reader import Recording
from replaydbg.log.sealed.origin import is_own, own_key
from replaydbg.log.sealed.shared import STEP, BlockStore


def spliced(data: bytes, changes: Mapping[tuple[int, int], bytes]) -> bytes:
    """Return `data` with each stretch (from byte, to byte) of `changes` replaced. They must not overlap."""
    return b"".join(_pieces(data, changes))


def with_outcome(record: bytes, outcome: Value, *, has_arguments: bool) -> bytes:
    """Return an event's record with another outcome. Its head, and the number of its arguments, are unchanged."""
    at = 0
    for _ in range(1 + has_arguments):
        while record[at] & 0x80:
            at += 1
        at += 1
    assert at < len(record), record
    return record[:at] + encode_value(outcome)


def _pieces(data: bytes, changes: Mapping[tuple[int, int], bytes]) -> Iterator[bytes]:
    at = 0
    for (begin, end), instead in sorted(changes.items()):
        yield data[at:begin]
        yield instead
        at = end
    yield data[at:]


def write_with_log(recording: Recording, target: Path, log: bytes, end: Mapping[str, object]) -> int:
    """Write to `target` the recording with another event log and another end. Returns its size in bytes.

    Unchanged sections share their blocks with the recording, whose store is that of `target`. Raises OSError.
    """
    store = BlockStore(target.parent.parent)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            hiding = _hiding(recording)
            writer = Writer(file, key=own_key() if is_own(recording.path) else None, hiding=hiding)
            for name in recording.sections:
                if name in ("header", "world", "content"):
                    writer.shared(name, recording.shared_blocks(name))
                elif name == "log":
                    writer.shared(name, _log_blocks(store, writer.masked(name, log)))
                elif name.startswith("source/"):  # a shared one is no section
                    writer.section(name, recording.pieces(name))
                elif name.startswith("heap/") and recording.is_shared(name):
                    writer.shared(name, recording.shared_blocks(name))
                elif name.startswith("heap/"):
                    writer.section(name, recording.pieces(name), is_compressed=False)
            writer.section("end", split(json.dumps(end).encode()))
            writer.finish(syncs=False)
        size = partial.stat().st_size
        partial.replace(target)
        forget_signature(target)
        return size
    finally:
        with suppress(OSError):
            partial.unlink()


def _hiding(recording: Recording) -> Hiding | None:
    """Return the masks for another log of a recording, for the same people; None: it has none, or there is no key."""
    secrets = recording.secrets
    if not secrets:
        return None
    # Imported here: it is compiled code, which a machine that only reads does not have.
    from replaydbg.log.edit.growing_secrets import CutMasks
    from replaydbg.secrets.forms import forms_of

    words = forms_of(data for each in secrets.values() for _, data in each)
    unchanged = {name: each for name, each in secrets.items() if name in ("header", "world", "content")}
    return Hiding(CutMasks(tuple(words), unchanged), recording.recipients)


def _log_blocks(store: BlockStore, log: bytes) -> Iterator[tuple[int, bytes]]:
    for offset in range(0, len(log), PIECE):
        piece = log[offset : offset + PIECE]
        apart = 0 if offset else LOG_HEADER
        entries = [store.inline(piece[:apart])] if apart else []
        # Other recordings have the part before the first omitted test, too: in exactly these pieces.
        step = PIECE if len(piece) == PIECE else STEP
        for at in range(apart, len(piece), step):
            part = piece[at : at + step]
            entries.append(store.entry(part) if step == PIECE or len(part) == STEP else store.inline(part))
        yield len(piece), b"".join(entries)
