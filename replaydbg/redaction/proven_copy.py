"""Write one recording with pseudonyms in the place of its secrets, and prove by a replay that nothing else differs."""

from __future__ import annotations

from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.log.entries.new_checksums import with_new_checksums
from replaydbg.log.reader import Recording
from replaydbg.log.sealed.origin import is_own, own_key
from replaydbg.redaction.redacted_sections import redacted_sections, write_sections
from replaydbg.redaction.redigesting import agreeing_events, redigested
from replaydbg.secrets.pseudonyms import Pseudonyms


@dataclass(frozen=True, slots=True)
class Redacted:
    """A copy without secrets."""

    size: int
    """Its size in bytes."""
    secrets: int
    """How many secrets were replaced."""
    events: int
    """How many events the replays had that agreed with it."""
    processes: int = 1
    """How many recordings it has."""


def write_proven(recording: Recording, target: Path, pseudonyms: Pseudonyms, secrets: set[bytes], name: str) -> int:
    """Write the copy `target`, of which `secrets` have `pseudonyms`; return how many events agreed with it.

    Another file, with `.draft` after its name, is beside it meanwhile. Raises CannotRedact.
    """
    sections = redacted_sections(recording, pseudonyms, secrets, name)
    key = own_key() if is_own(recording.path) else None
    draft = target.with_name(f"{target.name}.draft")
    write_sections(sections, draft, key)
    sections |= redigested(draft, name)
    draft.unlink()
    if recording.header.durable:
        for each in ("log", "world"):
            before = b"".join(recording.pieces(each))[: len(sections[each])]
            gates, is_world = recording.header.gates, each == "world"
            sections[each] = with_new_checksums(before, sections[each], gates, is_world=is_world)
    write_sections(sections, target, key)
    return agreeing_events(target, name)
