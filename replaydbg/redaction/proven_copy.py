"""Write one recording with pseudonyms in the place of its secrets, and prove by a replay that nothing else differs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

from replaydbg.classes import NamedTuple, dataclass
from replaydbg.errors import CannotRedact
from replaydbg.log.entries.new_checksums import with_new_checksums
from replaydbg.log.reader import Recording
from replaydbg.log.sealed.origin import is_own, own_key
from replaydbg.redaction.lines import line_of_event
from replaydbg.redaction.redacted_sections import redacted_sections, write_sections
from replaydbg.redaction.redigesting import agreeing_events, redigested, tell_output
from replaydbg.redaction.same_end import check_same_end, check_same_texts
from replaydbg.redaction.told import ToldEnd
from replaydbg.redaction.told_output import Derived, derived_output
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
    derived: int = 0
    """How many pieces of output are computed from secrets, and others in the copy."""


class Proven(NamedTuple):
    """What the replays of a copy have proven."""

    events: int
    """How many events agreed with it."""
    derived: int
    """See Redacted."""


def write_proven(
    recording: Recording, target: Path, pseudonyms: Pseudonyms, secrets: set[bytes], name: str, *, may_derive: bool
) -> Proven:
    """Write the copy `target`, of which `secrets` have `pseudonyms`; return what was proven.

    `may_derive`: output may be computed from secrets. Another file, with `.draft` after its name, is beside it
    meanwhile. Raises CannotRedact.
    """
    sections = redacted_sections(recording, pseudonyms, secrets, name)
    key = own_key() if is_own(recording.path) else None
    draft = target.with_name(f"{target.name}.draft")
    write_sections(sections, draft, key)
    with TemporaryFile(dir=target.parent) as before, TemporaryFile(dir=target.parent) as after:
        original = tell_output(recording, name, before, pseudonyms)
        made = redigested(draft, name, after)
        sections |= made.sections
        check_same_end(original, made.ended, name)
        found = derived_output(before, after, pseudonyms)
        derived = _check_output(found, recording, made.ended.end, name, may_derive=may_derive)
        check_same_texts(original, made.ended, name, may_derive=may_derive)
    draft.unlink()
    if recording.header.durable:
        for each in ("log", "world"):
            whole = b"".join(recording.pieces(each))[: len(sections[each])]
            gates, is_world = recording.header.gates, each == "world"
            sections[each] = with_new_checksums(whole, sections[each], gates, is_world=is_world)
    write_sections(sections, target, key)
    return Proven(agreeing_events(target, name, made.ended), derived)


def _check_output(
    found: Iterator[Derived], recording: Recording, end: ToldEnd | None, name: str, *, may_derive: bool
) -> int:
    """Return how many pieces of output are computed from secrets. Raises CannotRedact if that may not be."""
    number = 0
    for each in found:
        number += 1
        if may_derive and not each.is_longer_or_shorter:
            continue
        what = "how many bytes it writes" if each.is_longer_or_shorter else "what it writes"
        hint = "" if each.is_longer_or_shorter else " (--derived accepts that)"
        seen = f"at event {each.event:,} the copy would write {each.text!r}"
        reason = f"{what} depends on the value of a secret{hint}: {seen}"
        raise CannotRedact(name, reason, line_of_event(recording, each.event, end))
    return number
