"""Overwrite secrets in sections with asterisks, and keep what was there, so that it can be put back."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from copy import copy

from replaydbg.native.finding import find
from replaydbg.secrets.patches import Patches
from replaydbg.secrets.secret_pieces import short_parts

MASK = b"*"
_BEGINNING = 8
"""Bytes of a secret that are masked where texts are cut off."""


class Masks:
    """Masks words in sections that pass through it."""

    def __init__(self, words: Iterable[bytes], *, shortest: int = 0) -> None:
        """`words`: what is a secret wherever it is, each of at least four bytes.

        `shortest`: so many of its first bytes count as well, and what follows of it; 0: only the whole word.
        """
        whole = sorted(set(words))
        self._longest = max(map(len, whole), default=0)
        self._whole: dict[bytes, list[bytes]] = {}
        """Of each word that is searched, those that begin so."""
        for each in whole:
            self._whole.setdefault(each[:shortest] if shortest else each, []).append(each)
        self._words = tuple(self._whole)
        self._patches: defaultdict[str, list[tuple[int, bytes]]] = defaultdict(list)
        self._places: dict[str, list[tuple[int, int]]] = {}
        """Of each section what is masked there, whatever it is: first byte, and the one behind the last, in order."""

    def mask_places(self, section: str, places: Iterable[tuple[int, int]]) -> None:
        """Mask what is between two bytes of a section, too: pieces of words, which are no words of their own."""
        self._places[section] = _merged(list(places))

    @property
    def patches(self) -> Patches:
        """The bytes that were overwritten so far."""
        return {name: patches for name, patches in self._patches.items() if patches}

    def masked(self, data: bytes) -> bytes:
        """Return data with the words masked, for good: nothing is kept of them."""
        masks = copy(self)
        masks._patches, masks._places = defaultdict(list), {}
        return b"".join(masks.pieces("", [data]))

    def with_beginnings(self) -> Masks:
        """Return masks for data in which texts are cut off: of a word the first 8 bytes or more count as well."""
        return Masks((each for some in self._whole.values() for each in some), shortest=_BEGINNING)

    def pieces(self, section: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a section with the words masked; each has its length."""
        if not self._words and section not in self._places:
            yield from pieces
            return
        offset, until = 0, 0
        held: deque[bytes] = deque()
        ahead = 0
        for piece in pieces:
            held.append(piece)
            ahead += len(piece)
            # A piece is held until enough of what follows is known to find each word that begins in it.
            while ahead - len(held[0]) >= self._longest - 1:
                masked, until = self._masked(section, offset, held, until)
                yield masked
                offset += len(masked)
                ahead -= len(masked)
        while held:
            masked, until = self._masked(section, offset, held, until)
            yield masked
            offset += len(masked)

    def _masked(self, section: str, offset: int, held: deque[bytes], until: int) -> tuple[bytes, int]:
        """Take the first piece, which is at `offset`; return it masked, and up to where a word goes on behind it.

        `until`: up to where a word of the piece before goes on.
        """
        piece = held.popleft()
        data = piece + b"".join(held)[: self._longest - 1]
        last = offset + len(piece)
        words = [
            (offset + at, offset + at + self._length(data, at, self._words[word]))
            for at, word in find(self._words, data)
            if at < len(piece)
        ]
        if until > offset:
            words.insert(0, (offset, until))
        spans = _merged(words)
        spans = sorted([*spans, *self._parts_between(section, offset, last, spans)])
        if not spans:
            return piece, until
        masked = bytearray(piece)
        for start, end in spans:
            inside = slice(start - offset, min(end, last) - offset)
            self._patches[section].append((start, piece[inside]))
            masked[inside] = MASK * (inside.stop - inside.start)
        return bytes(masked), max((end for _, end in words), default=until)

    def _parts_between(
        self, section: str, first: int, last: int, spans: list[tuple[int, int]]
    ) -> Iterator[tuple[int, int]]:
        """Yield the places in a piece that is between two bytes, in short parts, without what is masked as a word."""
        for start, end in self._places.get(section, ()):
            at = max(start, first)
            for begin, stop in [*(each for each in spans if each[1] > start and each[0] < end), (last, last)]:
                until = min(begin, end, last)
                yield from short_parts(at, until)
                at = max(at, stop)

    def _length(self, data: bytes, at: int, found: bytes) -> int:
        """Return how much of a word is there, of which the part that is searched was found."""
        return max(_common(data, at, each, len(found)) for each in self._whole[found])


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _common(data: bytes, at: int, word: bytes, known: int) -> int:
    if data.startswith(word, at):
        return len(word)
    most = min(len(word), len(data) - at)
    return next((length for length in range(known, most) if data[at + length] != word[length]), max(most, known))
