"""Match datagrams: whole messages, of which some are lost, and between two sockets none overtakes another.

The receives are found among the sends in their order, once each as early as possible and once each as late as possible.
Where both agree there is one answer; otherwise payloads are equal, and any send between the two fits.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from replaydbg.distributed.matching.columns import NEVER, Moves
from replaydbg.distributed.matching.segments import AMBIGUOUS, SURE, Segments

MOST_CANDIDATES = 16
"""Sends that are listed for an ambiguous receive."""


def match_datagrams(sends: Moves, receives: Moves) -> Segments:
    """Return a segment for each receive whose send is known, or could be one of several."""
    found = Segments()
    early = _in_order(sends, receives) if sends.is_chain and receives.is_chain else None
    late = _in_order_from_the_end(sends, receives) if early is not None else None
    if early is None or late is None:
        _match_any_order(found, sends, receives)
        return found
    for receive, (first, last) in enumerate(zip(early, late, strict=True)):
        length = receives.length[receive]
        if first == last:
            found.add(first, receive, 0, length)
            continue
        kind = sends.length[first], sends.digest[first]
        fitting = (at for at in range(first, last + 1) if (sends.length[at], sends.digest[at]) == kind)
        candidates = [at for at, _ in zip(fitting, range(MOST_CANDIDATES), strict=False)]
        # The last one is what the receive certainly comes after at most: a cut needs it.
        found.groups[len(found)] = tuple(dict.fromkeys([*candidates, last]))
        found.add(first, receive, 0, length, AMBIGUOUS)
    return found


def _in_order(sends: Moves, receives: Moves) -> list[int] | None:
    """Return the first send that each receive can have taken, if none overtakes another; None: some did."""
    found: list[int] = []
    at, count = 0, len(sends)
    lengths, digests, tickets = sends.length, sends.digest, sends.ticket
    for length, digest, ticket in zip(receives.length, receives.digest, receives.ticket, strict=True):
        while at < count and (lengths[at] != length or digests[at] != digest):
            at += 1
        if at == count or (ticket and tickets[at] >= ticket):
            return None
        found.append(at)
        at += 1
    return found


def _in_order_from_the_end(sends: Moves, receives: Moves) -> list[int] | None:
    """Return the last send that each receive can have taken."""
    found: list[int] = []
    at = len(sends) - 1
    lengths, digests, tickets = sends.length, sends.digest, sends.ticket
    columns = (reversed(receives.length), reversed(receives.digest), reversed(receives.ticket))
    for length, digest, ticket in zip(*columns, strict=True):
        limit = ticket or NEVER
        while at >= 0 and (lengths[at] != length or digests[at] != digest or tickets[at] >= limit):
            at -= 1
        if at < 0:
            return None
        found.append(at)
        at -= 1
    found.reverse()
    return found


def _match_any_order(found: Segments, sends: Moves, receives: Moves) -> None:
    """Match by payload alone: several processes or threads, or datagrams that overtook others or came twice."""
    by_payload: dict[tuple[int, int], _Equal] = {}
    for at in range(len(sends)):  # in the order of their tickets
        equal = by_payload.setdefault((sends.length[at], sends.digest[at]), _Equal([], []))
        equal.sends.append(at)
        equal.tickets.append(sends.ticket[at])
    for receive in range(len(receives)):
        length = receives.length[receive]
        known = by_payload.get((length, receives.digest[receive]))
        before = bisect_left(known.tickets, receives.ticket[receive] or NEVER) if known is not None else 0
        if known is None or not before:
            continue
        # One that came twice is matched twice.
        chosen = known.sends[min(known.taken, before - 1)]
        known.taken += 1
        if before > 1:
            found.groups[len(found)] = known.sends  # those behind the receive are left out where they are asked for
        found.add(chosen, receive, 0, length, AMBIGUOUS if before > 1 else SURE)


@dataclass
class _Equal:
    """Sends of one payload."""

    sends: list[int]
    tickets: list[int]
    taken: int = 0
    """How many of them are matched."""
