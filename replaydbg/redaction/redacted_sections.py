"""The sections of a recording with pseudonyms in the place of its secrets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from replaydbg.errors import CannotRedact, Corrupt, SecretsMasked
from replaydbg.log.container import Writer, split
from replaydbg.log.edit.split_secrets import SplitPlace, split_secrets
from replaydbg.log.reader import Recording
from replaydbg.log.transfers import SECTION as TRANSFERS
from replaydbg.record.caches.sources import source_name
from replaydbg.record.hiding import keeps_secrets, masked_snapshot, masks_of, secrets_of
from replaydbg.secrets.pseudonyms import Pseudonyms
from replaydbg.secrets.secret_pieces import is_long_piece

_FIRST = ("header", "world", "log", "content", TRANSFERS)
_READ_FIRST = ("log", "header", "world", "content", TRANSFERS)
"""The log first: of a program that still runs, the others have by then what it refers to."""
_SNAPSHOTS = "heap/"


def check_source(recording: Recording, name: str) -> None:
    """Raise SecretsMasked without the key for its secrets, or Corrupt if the recording is damaged."""
    if recording.is_hidden:
        raise SecretsMasked(str(recording.path), recording.masked_for)
    recording.check()
    if recording.damage:
        raise Corrupt(str(recording.path), recording.damage[0].rstrip("."))


def secrets_in_recording(recording: Recording) -> set[bytes]:
    """Return the secrets of a recording."""
    return secrets_of(recording.pieces, (b"".join(recording.pieces(each)) for each in _sources(recording)))


def add_pieces(pseudonyms: Pseudonyms, recordings: Iterable[Recording]) -> None:
    """Let pseudonyms stand for the long pieces of secrets, too, in which programs received them."""
    for recording in recordings:
        for each in split_secrets(pseudonyms.forms, recording.pieces):
            if is_long_piece(each.form[each.start : each.end]):
                pseudonyms.add_piece(each.form, each.start, each.end)


def redacted_sections(recording: Recording, pseudonyms: Pseudonyms, secrets: set[bytes], name: str) -> dict[str, bytes]:
    """Return the sections with the secrets replaced; sources have the names of their new contents.

    `secrets` are all that are replaced. Raises CannotRedact if something that is masked would be in the clear.
    """
    read: dict[str, bytes] = {}
    renamed: dict[str, str] = {}
    split_places = split_secrets(pseudonyms.forms, recording.pieces)
    for each in (*(n for n in _READ_FIRST if n in recording.sections), *_sources(recording)):
        data = b"".join(recording.pieces(each))
        made = _with_pieces(pseudonyms.replaced(data), each, split_places, pseudonyms)
        # The pseudonym of a short piece may be the piece: special characters stay.
        known = [(piece.at, piece.at + piece.end - piece.start) for piece in split_places if piece.section == each]
        _check_masks(recording, each, data, made, known, name)
        if each.startswith("source/"):
            renamed[each.removeprefix("source/")] = source_name(made)
            each = f"source/{source_name(made)}"
        read[each] = made
    sections = {each: read.pop(each) for each in _FIRST if each in read} | read
    has_snapshots = _may_have_snapshots(recording, secrets)
    if has_snapshots:
        sections.update(_snapshots(recording, secrets))
    if recording.end is not None:
        end = json.loads(pseudonyms.replaced(b"".join(recording.pieces("end"))))
        end["sources"] = {path: renamed.get(each, each) for path, each in end.get("sources", {}).items()}
        if not has_snapshots:
            end["snapshots"] = None
        sections["end"] = json.dumps(end).encode()
    return sections


def _with_pieces(data: bytes, section: str, places: Iterable[SplitPlace], pseudonyms: Pseudonyms) -> bytes:
    """Return a section with the pieces of secrets replaced that the program received one behind the other."""
    made = bytearray(data)
    for each in places:
        if each.section == section:
            piece = pseudonyms.of_piece(each.form, each.start, each.end)
            made[each.at : each.at + len(piece)] = piece
    return bytes(made)


def write_sections(sections: dict[str, bytes], target: Path, key: bytes | None) -> None:
    """Write a recording; `key` marks it as its user's own. Raises FileExistsError."""
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        writer = Writer(file, key=key, size=sum(len(sections.get(each, b"")) for each in _FIRST))
        for name, data in sections.items():
            writer.section(name, split(data), is_compressed=not name.startswith(_SNAPSHOTS))
        writer.finish()


def _sources(recording: Recording) -> list[str]:
    names = set(recording.end.sources.values()) if recording.end is not None else set()
    return sorted({f"source/{each}" for each in names} | {n for n in recording.sections if n.startswith("source/")})


def _may_have_snapshots(recording: Recording, secrets: set[bytes]) -> bool:
    """Whether the snapshots are masked, or can be: they are compressed when a recording is sealed."""
    if recording.is_live or not any(each.startswith(_SNAPSHOTS) for each in recording.sections):
        return True
    return not keeps_secrets(b"".join(recording.pieces("header"))) and secrets <= secrets_in_recording(recording)


def _snapshots(recording: Recording, secrets: set[bytes]) -> Iterator[tuple[str, bytes]]:
    masks = masks_of(secrets)
    for each in recording.sections:
        if each.startswith(_SNAPSHOTS):
            data = b"".join(recording.pieces(each))
            yield each, masked_snapshot(masks, data) if recording.is_live else data


def _check_masks(
    recording: Recording, section: str, data: bytes, made: bytes, known: list[tuple[int, int]], name: str
) -> None:
    """Raise CannotRedact if something masked was not found, and is not in a `known` place: it would be in the clear."""
    for offset, masked in recording.secrets.get(section, ()):
        end = offset + len(masked)
        if data[offset:end] == made[offset:end] and not any(first <= offset and end <= last for first, last in known):
            raise CannotRedact(name, f"what is masked at byte {offset:,} of its section {section!r} is not found again")
