"""Copy a recording with pseudonyms in the place of its secrets, and prove by a replay that nothing else differs."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from tempfile import TemporaryDirectory

from replaydbg.classes import dataclass
from replaydbg.errors import CannotRedact, Corrupt, SecretsMasked
from replaydbg.log.container import Writer, split
from replaydbg.log.files import forget_signature
from replaydbg.log.reader import Recording
from replaydbg.log.sealed.origin import is_own, own_key
from replaydbg.record.caches.sources import source_name
from replaydbg.record.hiding import secrets_of
from replaydbg.redaction.redigesting import redigested
from replaydbg.replay.launcher import replay
from replaydbg.secrets.pseudonyms import Pseudonyms, pseudonyms_of

_FIRST = ("header", "world", "log", "content")


@dataclass(frozen=True, slots=True)
class Redacted:
    """A copy without secrets."""

    size: int
    """Its size in bytes."""
    secrets: int
    """How many secrets were replaced."""
    events: int
    """How many events the replay had that agreed with it."""


def redact(recording: Recording, target: Path, name: str) -> Redacted:
    """Write the copy `target`. It has no masks: whoever has it can replay it.

    Raises CannotRedact, with the line if the run depends on the value of a secret; SecretsMasked without the key for
    the secrets; Corrupt. Nothing is written then.
    """
    _check(recording, name)
    sources = _sources(recording)
    found = secrets_of(recording.pieces, (b"".join(recording.pieces(each)) for each in sources))
    draw = random.SystemRandom()
    pseudonyms = Pseudonyms(pseudonyms_of(found, draw))
    sections = _replaced(recording, pseudonyms, name)
    with TemporaryDirectory(prefix=".replaydbg-", dir=target.parent) as folder:
        draft, proven = Path(folder) / "draft.rdbg", Path(folder) / "proven.rdbg"
        key = own_key() if is_own(recording.path) else None
        _write(sections, draft, key)
        sections["log"] = redigested(draft, name)
        _write(sections, proven, key)
        events = _proof(proven, name)
        os.link(proven, target)  # unlike a rename it replaces nothing
        forget_signature(target)
    return Redacted(target.stat().st_size, len(found), events)


def _check(recording: Recording, name: str) -> None:
    if recording.masked_for:
        raise SecretsMasked(str(recording.path), recording.masked_for)
    if recording.header.group:
        raise CannotRedact(name, "the recordings of its group have digests of what its processes sent to each other")
    if recording.header.durable:
        raise CannotRedact(name, "it was recorded with --durable, and its log has checksums")
    if recording.is_live:
        raise CannotRedact(name, "it was never sealed (`replaydbg pack` seals a copy)")
    recording.check()
    if recording.damage:
        raise Corrupt(str(recording.path), recording.damage[0].rstrip("."))


def _sources(recording: Recording) -> list[str]:
    names = set(recording.end.sources.values()) if recording.end is not None else set()
    return sorted({f"source/{each}" for each in names} | {n for n in recording.sections if n.startswith("source/")})


def _replaced(recording: Recording, pseudonyms: Pseudonyms, name: str) -> dict[str, bytes]:
    """Return the sections with the secrets replaced; sources have the names of their new contents."""
    sections: dict[str, bytes] = {}
    renamed: dict[str, str] = {}
    for each in (*(n for n in _FIRST if n in recording.sections), *_sources(recording)):
        data = b"".join(recording.pieces(each))
        made = pseudonyms.replaced(data)
        _check_masks(recording, each, data, made, name)
        if each.startswith("source/"):
            renamed[each.removeprefix("source/")] = source_name(made)
            each = f"source/{source_name(made)}"
        sections[each] = made
    for each in recording.sections:
        if each not in sections and each.startswith("heap/"):
            sections[each] = b"".join(recording.pieces(each))  # masked for good
    if recording.end is not None:
        end = json.loads(pseudonyms.replaced(b"".join(recording.pieces("end"))))
        end["sources"] = {path: renamed.get(each, each) for path, each in end.get("sources", {}).items()}
        sections["end"] = json.dumps(end).encode()
    return sections


def _check_masks(recording: Recording, section: str, data: bytes, made: bytes, name: str) -> None:
    """Raise CannotRedact if something that is masked was not found: it would be in the clear."""
    for offset, masked in recording.secrets.get(section, ()):
        end = offset + len(masked)
        if data[offset:end] == made[offset:end]:
            raise CannotRedact(name, f"what is masked at byte {offset:,} of its section {section!r} is not found again")


def _write(sections: dict[str, bytes], target: Path, key: bytes | None) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        writer = Writer(file, key=key, size=sum(len(sections.get(each, b"")) for each in _FIRST))
        for name, data in sections.items():
            writer.section(name, split(data), is_compressed=not name.startswith("heap/"))
        writer.finish()


def _proof(path: Path, name: str) -> int:
    """Replay the copy; return the number of its events. Raises CannotRedact."""
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        result = replay(path, name=name, stdout=null, stderr=null)
    finally:
        os.close(null)
    if result.divergence is not None:
        raise CannotRedact(
            name, f"two replays of the copy differ: {result.divergence.observed}", result.divergence.where
        )
    return result.events
