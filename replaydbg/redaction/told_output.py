"""What leaves the program: in the replay of a copy the same bytes as in that of the original, with pseudonyms in them.

Digests alone prove nothing here: those of the copy are computed from whatever it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from replaydbg.classes import NamedTuple
from replaydbg.redaction.told import output_pieces
from replaydbg.secrets.pseudonyms import Pseudonyms
from replaydbg.secrets.secret_pieces import end_pieces

_WINDOW = 1 << 24
"""Bytes that are compared at once: a secret may be written in several pieces."""
_AROUND = 24


class Derived(NamedTuple):
    """Something that the copy writes and that is not what the original wrote with pseudonyms in it."""

    event: int
    """The number of its event, if no other one came first."""
    text: bytes
    """The beginning of what is different in the copy, with some of what is around it."""
    is_longer_or_shorter: bool
    """Whether its length is different, too; nothing behind it was compared then."""


class _Window(NamedTuple):
    events: list[int]
    ends: list[int]
    """Of each piece where it ends in `data`."""
    data: bytes


def derived_output(original: BinaryIO, copy: BinaryIO, pseudonyms: Pseudonyms) -> Iterator[Derived]:
    """Yield what the replay of a copy has written in a different way, by what both replays have told."""
    ours, theirs = output_pieces(original), output_pieces(copy)
    while True:
        one, other = _window(ours), _window(theirs)
        wanted = pseudonyms.replaced(one.data)
        begin = 0
        for event, end, other_end in zip(other.events, one.ends, other.ends, strict=False):
            if end != other_end:
                yield Derived(event, other.data[begin : begin + _AROUND], is_longer_or_shorter=True)
                return
            if other.data[begin:end] not in (wanted[begin:end], _of_pieces(one.data[begin:end], pseudonyms)):
                at = next(at for at in range(begin, end) if wanted[at] != other.data[at])
                yield Derived(event, other.data[max(at - _AROUND, begin) : min(at + _AROUND, end)], False)
            begin = end
        if len(one.ends) != len(other.ends):
            more = [*one.events[len(other.ends) :], *other.events[len(one.ends) :]]
            yield Derived(more[0], other.data[begin : begin + _AROUND], is_longer_or_shorter=True)
            return
        if not one.ends:
            return


def _of_pieces(data: bytes, pseudonyms: Pseudonyms) -> bytes:
    """Return what was written at once with pseudonyms where it begins or ends with a piece of a secret."""
    made = bytearray(pseudonyms.replaced(data))
    for each in end_pieces(sorted(pseudonyms.forms), pseudonyms.forms, data):
        piece = pseudonyms.of_piece(each.form, each.start, each.end)
        made[each.at : each.at + len(piece)] = piece
    return bytes(made)


def _window(told: Iterator[tuple[int, bytes]]) -> _Window:
    events, ends, pieces, size = list[int](), list[int](), list[bytes](), 0
    for event, piece in told:
        size += len(piece)
        events.append(event)
        ends.append(size)
        pieces.append(piece)
        if size >= _WINDOW:
            break
    return _Window(events, ends, b"".join(pieces))
