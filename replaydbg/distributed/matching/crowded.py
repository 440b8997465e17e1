"""Match the two sides of a stream that several processes or threads write or read at once.

The order of the tickets is taken first. Where both sides then differ, other orders are searched. Messages with equal
bytes that were on their way at once, and whose order is not known, are ambiguous: digests cannot tell them apart.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from replaydbg.distributed.matching.bounds import Bounds
from replaydbg.distributed.matching.chains import Chains, chains_of_receives, chains_of_sends
from replaydbg.distributed.matching.columns import NEVER, Moves
from replaydbg.distributed.matching.content_order import ContentOrder, Contents
from replaydbg.distributed.matching.digests import PRIME, Powers
from replaydbg.distributed.matching.exchange import Blocks, mark_exchangeable
from replaydbg.distributed.matching.order_search import Block, Effort, OrderSearch
from replaydbg.distributed.matching.segments import AMBIGUOUS, UNSURE, Contradiction, Segments
from replaydbg.distributed.matching.streams import add_counted, add_open

BACK = (0, 1, 2, 4, 8, 16)
"""Numbers of blocks to drop before searching for another order."""

SHORT = 16
"""Bytes that can be equal by chance."""


def match_crowded(
    sends: Moves, receives: Moves, bounds: Callable[[int], Bounds], effort: Effort, contents: Contents
) -> tuple[Segments, Contradiction | None]:
    """Return the segments, and where no order makes both sides agree; None: nowhere."""
    return _Matching(chains_of_sends(sends, bounds), chains_of_receives(receives, bounds), effort, contents).run()


class _Matching:
    """The orders of both sides as far as they agree, in blocks that begin and end at the same bytes."""

    def __init__(self, sends: Chains, receives: Chains, effort: Effort, contents: Contents) -> None:
        self.sends, self.receives = sends, receives
        self.sent, self.received = array("I"), array("I")
        """The sends and receives in order."""
        self.blocks = Blocks(self.sent, self.received, array("I", [0]), array("I", [0]), array("Q", [0]))
        self.offset = 0
        """Offset up to which both sides agree."""
        self._is_sent, self._is_received = bytearray(len(sends.moves)), bytearray(len(receives.moves))
        self._search = OrderSearch(sends, receives, effort)
        self._by_content = ContentOrder(sends, receives, contents, effort)
        self._powers = Powers()
        self._doubtful: list[int] = []
        """Blocks with few bytes in an order that only they confirm: that of the tickets was not contradicted."""
        self._end: Block | None = None
        """The rest in an order that the digests do not contradict, and do not confirm."""

    def run(self) -> tuple[Segments, Contradiction | None]:
        """Match everything."""
        contradiction = None
        while True:
            sent, received, is_end = self._walk()
            if not sent or not received:
                break  # what is left of one side has nothing on the other
            if self._find_order(is_end=is_end):
                continue
            if not is_end and not self._end:
                last = self.offset + sum(map(self.sends.moves.length.__getitem__, sent))
                contradiction = Contradiction(sent[-1], received[-1], self.offset, last)
            break
        found = Segments()
        add_counted(found, self.sends.moves, self.receives.moves, self.sent, self.received)
        mark_exchangeable(found, self.sends, self.receives, self.blocks)
        self._mark_doubtful(found)
        self._add_rest(found, is_unsure=contradiction is not None)
        return found, contradiction

    def _add_rest(self, found: Segments, *, is_unsure: bool) -> None:
        """Add what follows the last byte at which both sides agree, in the order of the tickets."""
        sends, receives = self.sends.moves, self.receives.moves
        rest, takers = list(_unused(self._is_sent)), list(_unused(self._is_received))
        if self._end is not None:
            first, first_takers = set(self._end.sends), set(self._end.receives)
            rest = self._end.sends + [at for at in rest if at not in first]
            takers = self._end.receives + [at for at in takers if at not in first_takers]
        begin = len(found)
        behind = add_counted(found, sends, receives, rest, takers, self.offset)
        if is_unsure:
            found.certainty[begin:] = bytes([UNSURE]) * (len(found) - begin)
        else:
            self._mark_rest(found, begin)
        add_open(found, sends, receives, behind, is_unsure=is_unsure)
        self._mark_early(found)

    def _mark_doubtful(self, found: Segments) -> None:
        for block in self._doubtful:
            first, last = (bisect_left(found.first, self.blocks.ends[each]) for each in (block - 1, block))
            for at in range(first, last):
                ticket = self.receives.moves.ticket[found.receive[at]]
                tickets = self.sends.moves.ticket
                near = range(max(found.send[at] - 8, 0), min(found.send[at] + 8, len(tickets)))
                found.certainty[at] = AMBIGUOUS
                found.groups[at] = tuple(each for each in near if tickets[each] < ticket or each == found.send[at])

    def _mark_early(self, found: Segments) -> None:
        """Mark what was received before it was sent: another send has equal bytes, or an open one made them."""
        sends, receives = self.sends.moves, self.receives.moves
        for at, (send, receive) in enumerate(zip(found.send, found.receive, strict=True)):
            if send < len(sends) and sends.ticket[send] >= (receives.ticket[receive] or NEVER):
                found.certainty[at] = AMBIGUOUS
                found.groups[at] = tuple(sorted({send, *sends.sources}))

    def _mark_rest(self, found: Segments, begin: int) -> None:
        """Mark what no digest confirms, where other sends or receives could be next as well."""
        sends, receives = self.sends, self.receives
        first = sends.available(sends.positions(self._is_sent))
        takers = receives.available(receives.positions(self._is_received))
        for at in range(begin, len(found)):
            ticket = receives.moves.ticket[found.receive[at]] or NEVER
            fitting = {each for each in first if sends.moves.ticket[each] < ticket} | {found.send[at]}
            if self._end is not None:
                fitting.update(self._end.sends)
            if len(fitting) > 1 or len(takers) > 1 or not (sends.is_known and receives.is_known):
                found.certainty[at] = AMBIGUOUS
                found.groups[at] = tuple(sorted(fitting))

    def _walk(self) -> tuple[Sequence[int], Sequence[int], bool]:
        """Go on in the order of the tickets, as far as both sides agree.

        Return the sends and receives after that up to where they differ, or with True the rest in which none ends where
        one of the other side does.
        """
        begin, begin_taken = len(self.sent), len(self.received)
        is_end = self._walk_blocks(_unused(self._is_sent), _unused(self._is_received))
        sent, received = self.sent[self.blocks.sent_ends[-1] :], self.received[self.blocks.received_ends[-1] :]
        self.blocks.cut(len(self.blocks.ends))
        self._mark(self.sent[begin:], self.received[begin_taken:], 1)
        self.offset = self.blocks.ends[-1]
        return sent, received, is_end

    def _walk_blocks(self, sends: Iterator[int], receives: Iterator[int]) -> bool:
        """Take sends and receives in turn; True if either side ends, False where they differ."""
        # One loop over a million transfers, as in streams.
        lengths, taken = self.sends.moves.length, self.receives.moves.length
        digests, taken_digests = self.sends.moves.digest, self.receives.moves.digest
        add_sent, add_received = self.sent.append, self.received.append
        blocks, powers = self.blocks, self._powers
        offset = self.offset
        ahead = one = other = 0
        is_unknown = False  # sendfile() and splice(): the bytes were not seen
        while True:
            if ahead <= 0:
                at = next(sends, -1)
                if at < 0:
                    return True
                add_sent(at)
                length, digest = lengths[at], digests[at]
                is_unknown |= not digest
                one = (one * powers[length] + digest) % PRIME if one else digest
                ahead += length
                offset += length
            else:
                at = next(receives, -1)
                if at < 0:
                    return True
                add_received(at)
                length, digest = taken[at], taken_digests[at]
                is_unknown |= not digest
                other = (other * powers[length] + digest) % PRIME if other else digest
                ahead -= length
            if not ahead:
                if one != other and not is_unknown:
                    return False
                blocks.add(offset)
                one = other = 0
                is_unknown = False

    def _agree(self, sent: Sequence[int], received: Sequence[int]) -> None:
        self._mark(sent, received, 1)
        self.offset += sum(map(self.sends.moves.length.__getitem__, sent))
        self.sent.extend(sent)
        self.received.extend(received)
        self.blocks.add(self.offset)

    def _find_order(self, *, is_end: bool) -> bool:
        """Go on in another order; whether there is one."""
        blocks = self.blocks
        positions = self.sends.positions(self._is_sent), self.receives.positions(self._is_received)
        block = self._by_content.find(*positions)
        if block is not None:
            self._agree(block.sends, block.receives)
            return True
        for back in BACK if not is_end else BACK[:1]:
            if back >= len(blocks.ends):
                break
            begin = -1 - back
            undone, untaken = self.sent[blocks.sent_ends[begin] :], self.received[blocks.received_ends[begin] :]
            self._mark(undone, untaken, 0)
            beyond = self.offset - blocks.ends[begin]
            positions = self.sends.positions(self._is_sent), self.receives.positions(self._is_received)
            found = self._search.find(*positions, beyond)
            if found:
                blocks.cut(len(blocks.ends) - back)
                self.offset -= beyond
                for block in found:
                    self._agree(block.sends, block.receives)
                    if is_end and blocks.ends[-1] - blocks.ends[-2] < SHORT:
                        self._doubtful.append(len(blocks.ends) - 1)
                return True
            self._mark(undone, untaken, 1)
            if not back:
                self._end = self._search.last
        return False

    def _mark(self, sent: Sequence[int], received: Sequence[int], is_used: int) -> None:
        for at in sent:
            self._is_sent[at] = is_used
        for at in received:
            self._is_received[at] = is_used


def _unused(is_used: bytearray) -> Iterator[int]:
    """Return the indexes that are not used."""
    first = is_used.find(0)
    if first < 0:
        return iter(())
    return (at for at in range(first, len(is_used)) if not is_used[at]) if any(is_used) else iter(range(len(is_used)))
