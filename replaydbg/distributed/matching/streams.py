"""Match the two sides of a stream whose sends have a known order, and whose receives have: both are counted.

The send that made byte N is matched with the receive that took byte N. Wherever a send and a receive end at the same
byte, the digests of what came before are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from replaydbg.distributed.matching.columns import Moves
from replaydbg.distributed.matching.digests import PRIME, Powers
from replaydbg.distributed.matching.segments import AMBIGUOUS, SURE, UNSURE, Contradiction, Segments


class Rest(NamedTuple):
    """The receives behind the bytes of all sends that ended."""

    receives: Sequence[int]
    missing: int
    """Bytes of the first one that no send is known for."""
    at: int
    """Offset of the first of these bytes."""


def match_ordered(sends: Moves, receives: Moves) -> tuple[Segments, Contradiction | None]:
    """Return the segments of two sides that are in order, and where their bytes differ first; None: nowhere."""
    found = Segments()
    # One long loop over a million transfers: a call for each would double its time.
    send, receive, first, length = found.send.append, found.receive.append, found.first.append, found.length.append
    sent, sent_digests, taken, taken_digests = sends.length, sends.digest, receives.length, receives.digest
    powers = Powers()
    count, counted = len(sends), len(receives)
    i = j = at = agreed = agreed_segments = 0
    left, missing = (sent[0] if count else 0), (taken[0] if counted else 0)
    one = other = 0  # the digests of what ended since both sides agreed
    is_unknown = False  # sendfile() and splice(): the bytes were not seen
    contradiction = None
    while i < count and j < counted:
        step = left if left < missing else missing
        send(i)
        receive(j)
        first(at)
        length(step)
        at += step
        left -= step
        missing -= step
        if not left:
            digest = sent_digests[i]
            is_unknown |= not digest
            one = (one * powers[sent[i]] + digest) % PRIME if one else digest
            i += 1
            left = sent[i] if i < count else 0
            is_end = not missing
        else:
            is_end = False
        if not missing:
            digest = taken_digests[j]
            is_unknown |= not digest
            other = (other * powers[taken[j]] + digest) % PRIME if other else digest
            j += 1
            missing = taken[j] if j < counted else 0
        if is_end:
            if contradiction is None:
                if one == other or is_unknown:
                    agreed, agreed_segments = at, len(found.send)
                else:
                    contradiction = Contradiction(i - 1, j - 1, agreed, at)
            one = other = 0
            is_unknown = False
    found.certainty = bytearray(len(found.send))
    if contradiction is not None:
        found.certainty[agreed_segments:] = bytes([UNSURE]) * (len(found.send) - agreed_segments)
    if sends.sources:
        add_open(found, sends, receives, Rest(range(j, counted), missing, at), is_unsure=contradiction is not None)
    return found, contradiction


def add_counted(
    found: Segments, sends: Moves, receives: Moves, order: Sequence[int], takers: Sequence[int], at: int = 0
) -> Rest:
    """Add the segments of sends and receives in a given order, by counting alone; `at` is the first byte's offset."""
    send, receive, first, length = found.send.append, found.receive.append, found.first.append, found.length.append
    sent, taken = sends.length, receives.length
    begin = len(found.send)
    i = j = 0
    left, missing = (sent[order[0]] if order else 0), (taken[takers[0]] if takers else 0)
    while i < len(order) and j < len(takers):
        step = left if left < missing else missing
        send(order[i])
        receive(takers[j])
        first(at)
        length(step)
        at += step
        left -= step
        missing -= step
        if not left:
            i += 1
            left = sent[order[i]] if i < len(order) else 0
        if not missing:
            j += 1
            missing = taken[takers[j]] if j < len(takers) else 0
    found.certainty.extend(bytes(len(found.send) - begin))
    return Rest(takers[j:], missing, at)


def add_open(found: Segments, sends: Moves, receives: Moves, rest: Rest, *, is_unsure: bool) -> None:
    """Add the bytes that no send is known for as those of sends that had not ended, if there are such sends."""
    sources = sends.sources
    if not sources:
        return
    certainty = UNSURE if is_unsure else SURE if len(sources) == 1 else AMBIGUOUS
    missing, at = rest.missing, rest.at
    for place, receive in enumerate(rest.receives):
        length = receives.length[receive] if place else missing
        if certainty == AMBIGUOUS:
            found.groups[len(found)] = sources
        found.add(sources[0], receive, at, length, certainty)
        at += length
