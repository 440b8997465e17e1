"""Check that the sends and receives of a copied group belong together as they did."""

from __future__ import annotations

from replaydbg.distributed.matching.matching import Matched
from replaydbg.distributed.matching.segments import Segment
from replaydbg.errors import CannotRedact
from replaydbg.groups.opened_group import OpenedGroup


def check_pairs(original: OpenedGroup, copy: OpenedGroup, name: str) -> None:
    """Raise CannotRedact, with the line of a send, if it is not known of the copy that a receive took its bytes.

    Then what a process receives has a pseudonym that the sender does not compute, or only a part of a secret.
    """
    for process, problem in copy.problems.items():
        raise CannotRedact(f"{name}/{process}", f"its copy cannot be read: {problem}")
    for before, after in zip(original.matching.channels, copy.matching.channels, strict=True):
        was, made = original.matching.match(before), copy.matching.match(after)
        at = _first_difference(was, made)
        if at is not None:
            raise _refusal(original, was, at, name)


def _first_difference(was: Matched, made: Matched) -> int | None:
    """Return the first segment of a channel that the copy does not have, or is less certain of; None: there is none."""
    for at in range(len(was.segments)):
        if at >= len(made.segments) or not _has(made.segments[at], was.segments[at]):
            return at
    if made.contradiction is not None and was.contradiction is None:
        return next((at for at in range(len(was.segments)) if was.segments[at].send == made.contradiction.send), 0)
    return None


def _has(made: Segment, was: Segment) -> bool:
    return made[:-1] == was[:-1] and made.certainty <= was.certainty


def _refusal(original: OpenedGroup, was: Matched, at: int, name: str) -> CannotRedact:
    segment = was.segments[at]
    (sender, send), (receiver, receive) = was.sends.place(segment.send), was.receives.place(segment.receive)
    members = original.matching.members
    process, event = members[sender].process, members[sender].transfers.event[send]
    other, taken = members[receiver].process, members[receiver].transfers.event[receive]
    reason = (
        f"it sends a secret that another process receives in another form, or in pieces: "
        f"at event {event}, it would send other bytes than process {other} receives at event {taken}"
    )
    site = original.site(process, event) if event else None
    where = f'File "{site.file}", line {site.line}' if site is not None and site.file else f"at event {event}"
    return CannotRedact(f"{name}/{process}", reason, where)
