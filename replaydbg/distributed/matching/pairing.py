"""Find the two ends of each connection by their addresses, and tell uses of the same addresses apart."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from replaydbg.distributed.matching.bounds import GroupBounds
from replaydbg.distributed.matching.columns import NEVER, Member, Moves
from replaydbg.distributed.matching.content_order import no_contents
from replaydbg.distributed.matching.crowded import SHORT, match_crowded
from replaydbg.distributed.matching.digests import PRIME, Powers
from replaydbg.distributed.matching.order_search import Effort
from replaydbg.distributed.matching.sides import ChannelSide
from replaydbg.distributed.matching.streams import match_ordered

MOST_COMPARED = 8
"""Uses of a pair of addresses that one use of the other end is compared with."""

MOST_UNKNOWN = 1000
"""Sockets without a peer that are compared."""

DOUBT = "this pair of addresses was used several times, and several of these uses match"


class ConnectionPair(NamedTuple):
    """The two ends of a connection; `other` is None if it is not recorded, and `one` itself if it talks to itself."""

    one: ChannelSide
    other: ChannelSide | None
    doubt: str = ""
    """Why it is not certain that they belong together."""


def pair_sockets(members: Sequence[Member], sides: Sequence[ChannelSide]) -> list[ConnectionPair]:
    """Return each socket with its other end."""
    by_ends: dict[tuple[str, str, str], list[ChannelSide]] = {}
    for side in sides:
        low, high = sorted((side.own, side.peer))
        by_ends.setdefault((side.kind, low, high), []).append(side)
    found: list[ConnectionPair] = []
    alone: list[ChannelSide] = []
    for (_, low, high), uses in by_ends.items():
        if low == high:
            found += [ConnectionPair(side, side) for side in uses]
            continue
        ones = [side for side in uses if side.own == low]
        others = [side for side in uses if side.own == high]
        pairs = _pair_uses(members, ones, others) if low else []
        found += pairs
        paired = {id(side) for pair in pairs for side in (pair.one, pair.other)}
        alone += [side for side in uses if id(side) not in paired]
    pairs, alone = _pair_unknown(alone)
    named, alone = _pair_named(members, alone)
    return found + pairs + named + _pair_by_bytes(members, alone)


def _pair_named(
    members: Sequence[Member], alone: Sequence[ChannelSide]
) -> tuple[list[ConnectionPair], list[ChannelSide]]:
    """Pair unix sockets of which one knows the path that it connected to, and the other the process that connected.

    One was closed before the other was first used, so neither knows the other. Time and bytes
    distinguish connections of one process to one path. Return those that are left, too.
    """
    unknown = [side for side in alone if side.kind == "unix" and not side.peer][:MOST_UNKNOWN]
    clients: dict[tuple[str, int], list[ChannelSide]] = {}
    servers: dict[tuple[str, int], list[ChannelSide]] = {}
    for side in unknown:
        if side.peer_path:
            for pid in {members[index].pid for index in side.members}:
                clients.setdefault((side.peer_path, pid), []).append(side)
        elif side.path and side.peer_pid:
            servers.setdefault((side.path, side.peer_pid), []).append(side)
    found: list[ConnectionPair] = []
    paired: set[int] = set()
    for name, accepted in servers.items():
        connected = [side for side in clients.get(name, []) if id(side) not in paired]
        for pair in _pair_uses(members, connected, accepted):
            if pair.other is not None and _explained(members, pair.one, pair.other) >= 0:
                found.append(pair)
                paired |= {id(pair.one), id(pair.other)}
    return found, [side for side in alone if id(side) not in paired]


def _pair_by_bytes(members: Sequence[Member], alone: Sequence[ChannelSide]) -> list[ConnectionPair]:
    """Pair unix sockets that do not know each other because one was closed before the other was first used.

    Their bytes must be the same, both ways. If they fit several, the path and the process id tell them apart.
    """
    unknown = [side for side in alone if side.kind == "unix" and not side.peer][:MOST_UNKNOWN]
    content = {id(side): _content(members, side) for side in unknown}
    by_content: dict[tuple[tuple[int, int], tuple[int, int]], list[ChannelSide]] = {}
    for side in unknown:
        by_content.setdefault(content[id(side)], []).append(side)
    found: list[ConnectionPair] = []
    paired: set[int] = set()
    for side in unknown:
        sent, received = content[id(side)]
        if id(side) in paired or sent == received:
            continue
        fitting = _best(members, side, by_content.get((received, sent), []))
        if fitting is None or _best(members, fitting, by_content[sent, received]) is not side:
            continue
        is_known = sent[0] + received[0] >= SHORT or _is_named(members, side, fitting)
        found.append(
            ConnectionPair(side, fitting, "" if is_known else "neither knows the other, and few bytes were moved")
        )
        paired |= {id(side), id(fitting)}
    return found + [ConnectionPair(side, None) for side in alone if id(side) not in paired]


def _best(members: Sequence[Member], side: ChannelSide, fitting: list[ChannelSide]) -> ChannelSide | None:
    """Return the only socket that fits, or the only one that the kernel names; None if there is none."""
    named = [each for each in fitting if _is_named(members, side, each)]
    wanted = named or fitting
    return wanted[0] if len(wanted) == 1 else None


def _is_named(members: Sequence[Member], one: ChannelSide, other: ChannelSide) -> bool:
    """Whether one connected to the path of the other, by a process whose id the other knows."""
    for client, server in ((one, other), (other, one)):
        if client.peer_path and client.peer_path == server.path and server.peer_pid:
            return any(members[index].pid == server.peer_pid for index in client.members)
    return False


def _content(members: Sequence[Member], side: ChannelSide) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return length and digest of what was sent, and of what was received, through a socket."""
    found = []
    powers = Powers()
    for is_receive in (False, True):
        moves = Moves(members, side.parts(is_receive=is_receive))
        digest = 0
        for length, each in zip(moves.length, moves.digest, strict=True):
            digest = (digest * powers[length] + each) % PRIME
        found.append((moves.total, digest))
    return found[0], found[1]


def _pair_unknown(alone: Sequence[ChannelSide]) -> tuple[list[ConnectionPair], list[ChannelSide]]:
    """Pair sockets of which only one knows the other; return those that are left, too."""
    by_own: dict[tuple[str, str], list[ChannelSide]] = {}
    for side in alone:
        if not side.peer:
            by_own.setdefault((side.kind, side.own), []).append(side)
    found: list[ConnectionPair] = []
    paired: set[int] = set()
    for side in alone:
        fitting = by_own.get((side.kind, side.peer), []) if side.peer else []
        if len(fitting) == 1 and id(fitting[0]) not in paired:
            found.append(ConnectionPair(side, fitting[0]))
            paired |= {id(side), id(fitting[0])}
    return found, [side for side in alone if id(side) not in paired]


def _pair_uses(members: Sequence[Member], ones: list[ChannelSide], others: list[ChannelSide]) -> list[ConnectionPair]:
    """Pair the uses of two addresses. Most are used once; otherwise time, lengths and digests tell uses apart."""
    if len(ones) == 1 and len(others) == 1:
        return [ConnectionPair(ones[0], others[0])]
    spans = {id(side): side.span(members) for side in (*ones, *others)}
    unused, others = (sorted(each, key=lambda side: spans[id(side)]) for each in (ones, others))
    found: list[ConnectionPair] = []
    doubtful: set[int] = set()
    for place, other in enumerate(others):
        count = bisect_right(unused, spans[id(other)][1], key=lambda side: spans[id(side)][0])
        # The oldest, if it reads late, or the newest, if older ones were never read.
        near = unused[: min(MOST_COMPARED, count)] + unused[max(MOST_COMPARED, count - MOST_COMPARED) : count]
        explained = {id(one): _explained(members, one, other) for one in near}
        most = max(explained.values(), default=-1)
        fitting = [one for one in near if explained[id(one)] == most >= 0]
        if not fitting:
            continue
        if len(fitting) > 1:
            doubtful.update(map(id, fitting))
        # Uses follow each other on both ends. Those that were never read are rather the older ones.
        one = fitting[max(len(fitting) - (len(others) - place), 0)]
        unused.remove(one)
        found.append(ConnectionPair(one, other, DOUBT if id(one) in doubtful else ""))
    return found


def _explained(members: Sequence[Member], one: ChannelSide, other: ChannelSide) -> int:
    """Return how many bytes each of two uses can have received from the other; -1: they do not belong together."""
    total = 0
    for source, target in ((one, other), (other, one)):
        sends, receives = Moves(members, source.parts(is_receive=False)), Moves(members, target.parts(is_receive=True))
        if not _fits(members, sends, receives):
            return -1
        total += receives.total
    return total


def _fits(members: Sequence[Member], sends: Moves, receives: Moves) -> bool:
    """Whether these sends can have made all bytes of these receives."""
    if receives.total > sends.total and not sends.sources:
        return False
    if sends.is_chain and receives.is_chain:
        found, contradiction = match_ordered(sends, receives)
    else:
        found, contradiction = match_crowded(sends, receives, GroupBounds(members), Effort(), no_contents)
    closed = ((send, receive) for send, receive in zip(found.send, found.receive, strict=True) if send < len(sends))
    return contradiction is None and all(
        sends.ticket[send] < (receives.ticket[receive] or NEVER) for send, receive in closed
    )
