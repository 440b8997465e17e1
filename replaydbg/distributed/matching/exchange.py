"""Find messages of a crowded channel that could be exchanged: equal bytes, under way at once, in no known order."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from replaydbg.distributed.matching.chains import Chains
from replaydbg.distributed.matching.columns import NEVER
from replaydbg.distributed.matching.digests import PRIME, Powers
from replaydbg.distributed.matching.segments import AMBIGUOUS, Segments

MOST_COMPARED = 16
"""Equal messages before a message that it is compared with."""

MOST_PASSED = 64
"""How many sends or receives to move one past when searching for another order."""


class Blocks(NamedTuple):
    """Sends and receives in order, and the places at which both sides agree: one ends there on each side."""

    sent: array[int]
    received: array[int]
    sent_ends: array[int]
    """Index behind the last send of each block, 0 before the first."""
    received_ends: array[int]
    ends: array[int]
    """The offset at which each ends."""

    def add(self, offset: int) -> None:
        """End a block after all sends and receives so far."""
        self.sent_ends.append(len(self.sent))
        self.received_ends.append(len(self.received))
        self.ends.append(offset)

    def cut(self, length: int) -> None:
        """Forget all blocks but the first ones."""
        del self.sent_ends[length:], self.received_ends[length:], self.ends[length:]
        del self.sent[self.sent_ends[-1] :], self.received[self.received_ends[-1] :]

    def sends_of(self, block: int) -> array[int]:
        """Return the sends of a block; the first one has number 1."""
        return self.sent[self.sent_ends[block - 1] : self.sent_ends[block]]

    def receives_of(self, block: int) -> array[int]:
        """Return the receives of a block."""
        return self.received[self.received_ends[block - 1] : self.received_ends[block]]


def mark_exchangeable(found: Segments, sends: Chains, receives: Chains, blocks: Blocks) -> None:
    """Mark the segments whose send could be another one as well, with the sends that fit."""
    alike = _Alike(found)
    _mark_blocks(alike, sends, receives, blocks)
    if len(sends.chains) > 1:
        _mark_pieces(alike, sends, blocks.sent, found.send)
    if len(receives.chains) > 1:
        _mark_pieces(alike, receives, blocks.received, found.receive)
    alike.finish()


class _Alike:
    """Groups of sends that could be in each other's place."""

    def __init__(self, found: Segments) -> None:
        self.found = found
        self._root: dict[int, int] = {}
        self._segments: set[int] = set()

    def join(self, segments: Iterable[int], others: Iterable[int]) -> None:
        """Mark segments whose sends can be in each other's place."""
        marked = {*segments, *others}
        sends = {self.found.send[at] for at in marked}
        if len(sends) > 1:
            self._segments |= marked
            root = self._find(min(sends))
            for send in sends:
                self._root[self._find(send)] = root

    def _find(self, send: int) -> int:
        root = send
        while (above := self._root.setdefault(root, root)) != root:
            root = above
        while send != root:
            self._root[send], send = root, self._root[send]
        return root

    def finish(self) -> None:
        """Mark the segments as ambiguous, each with its group."""
        groups: dict[int, list[int]] = {}
        for send in sorted(self._root):
            groups.setdefault(self._find(send), []).append(send)
        for at in sorted(self._segments):
            self.found.certainty[at] = AMBIGUOUS
            self.found.groups[at] = groups[self._find(self.found.send[at])]


def _mark_blocks(alike: _Alike, sends: Chains, receives: Chains, blocks: Blocks) -> None:
    """Mark blocks of equal bytes that can have been exchanged."""
    powers = Powers()
    recent: dict[int, int | deque[int]] = {}
    length, digests = sends.moves.length, sends.moves.digest
    sent_ends, received_ends = blocks.sent_ends, blocks.received_ends
    has_readers = len(receives.chains) > 1
    for block in range(1, len(blocks.ends)):
        first, last = sent_ends[block - 1], sent_ends[block]
        digest = digests[blocks.sent[first]]
        for at in blocks.sent[first + 1 : last] if last - first > 1 else ():
            digest = (digest * powers[length[at]] + digests[at]) % PRIME
        if has_readers and last - first > 1 and received_ends[block] - received_ends[block - 1] > 1:
            _mark_inside(alike, receives, blocks, block)
        key = (blocks.ends[block] - blocks.ends[block - 1]) << 61 | digest
        before = recent.get(key)
        if before is None:  # nearly always: a number takes less memory than a tuple or a deque
            recent[key] = block
            continue
        if isinstance(before, int):
            before = recent[key] = deque([before], MOST_COMPARED)
        for each in before:
            if _is_exchangeable(sends, receives, blocks, each, block):
                _mark_pair(alike, blocks, each, block)
        before.append(block)


def _first_segments(column: Sequence[int], count: int) -> array[int]:
    """Return the first segment of each send, or receive; the others of it follow."""
    found = array("I", bytes(4 * count))
    for at in range(len(column) - 1, -1, -1):
        found[column[at]] = at
    return found


def _following(column: Sequence[int], at: int) -> range:
    """Return the segments of a send, or a receive, given its first one."""
    last = at
    while last < len(column) and column[last] == column[at]:
        last += 1
    return range(at, last)


def _is_exchangeable(sends: Chains, receives: Chains, blocks: Blocks, one: int, other: int) -> bool:
    """Whether the sends of two equal blocks could have been taken by each other's receives; `one` is before."""
    ticket = receives.moves.ticket[blocks.received[blocks.received_ends[one] - 1]] or NEVER
    if sends.moves.ticket[blocks.sent[blocks.sent_ends[other] - 1]] >= ticket:
        return False  # it had been received before the other one was sent
    if not sends.is_known or not receives.is_known:
        return True
    last_sent, last_received = (ends[one] - 1 for ends in (blocks.sent_ends, blocks.received_ends))
    first_sent, first_received = (ends[other - 1] for ends in (blocks.sent_ends, blocks.received_ends))
    return (
        sends.last[blocks.sent[last_sent]] > sends.first[blocks.sent[first_sent]]
        or receives.last[blocks.received[last_received]] > receives.first[blocks.received[first_received]]
    )


def _mark_pair(alike: _Alike, blocks: Blocks, one: int, other: int) -> None:
    sent, theirs = blocks.sends_of(one), blocks.sends_of(other)
    segments, others = _segments(alike.found, blocks, one), _segments(alike.found, blocks, other)
    if len(sent) != len(theirs):
        alike.join(segments, others)
        return
    for send, their in zip(sent, theirs, strict=True):
        alike.join(
            [at for at in segments if alike.found.send[at] == send],
            [at for at in others if alike.found.send[at] == their],
        )


def _segments(found: Segments, blocks: Blocks, block: int) -> range:
    first, last = (bisect_left(found.first, blocks.ends[each]) for each in (block - 1, block))
    return range(first, last)


def _mark_inside(alike: _Alike, receives: Chains, blocks: Blocks, block: int) -> None:
    """Mark a block of several sends that several processes read: any of its pieces could be of any of them."""
    if len({receives.chain[at] for at in blocks.receives_of(block)}) > 1:
        alike.join(_segments(alike.found, blocks, block), ())


def _mark_pieces(alike: _Alike, side: Chains, order: Sequence[int], column: Sequence[int]) -> None:
    """Mark equal sends, or equal receives, that could be in each other's place; `column` has those of the segments."""
    first, last = side.first, side.last
    length, digest = side.moves.length, side.moves.digest
    segments = _first_segments(column, len(side.moves))
    for place, one in enumerate(order):
        end = earliest = last[one]
        for other_place in range(place + 1, min(place + 1 + MOST_PASSED, len(order))):
            other = order[other_place]
            if end <= first[other]:
                break  # it is known to come after
            if length[one] == length[other] and digest[one] == digest[other] and earliest > first[other]:
                alike.join(_following(column, segments[one]), _following(column, segments[other]))
            earliest = min(earliest, last[other])
