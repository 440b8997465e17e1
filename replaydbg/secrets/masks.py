"""Overwrite secrets in sections with asterisks, and keep what was there, so that it can be put back."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from copy import copy

from replaydbg.native._words import find
from replaydbg.secrets.patches import Patches

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

    @property
    def patches(self) -> Patches:
        """The bytes that were overwritten so far."""
        return {name: patches for name, patches in self._patches.items() if patches}

    def masked(self, data: bytes) -> bytes:
        """Return data with the words masked, for good: nothing is kept of them."""
        masks = copy(self)
        masks._patches = defaultdict(list)
        return b"".join(masks.pieces("", [data]))

    def with_beginnings(self) -> Masks:
        """Return masks for data in which texts are cut off: of a word the first 8 bytes or more count as well."""
        return Masks((each for some in self._whole.values() for each in some), shortest=_BEGINNING)

    def pieces(self, section: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a section with the words masked; each has its length."""
        if not self._words:
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
        spans = [(offset, until)] if until > offset else []
        for at, word in find(self._words, data):
            if at < len(piece):
                start, end = offset + at, offset + at + self._length(data, at, self._words[word])
                if spans and start <= spans[-1][1]:
                    spans[-1] = spans[-1][0], max(end, spans[-1][1])
                else:
                    spans.append((start, end))
        if not spans:
            return piece, until
        masked, last = bytearray(piece), offset + len(piece)
        for start, end in spans:
            inside = slice(start - offset, min(end, last) - offset)
            self._patches[section].append((start, piece[inside]))
            masked[inside] = MASK * (inside.stop - inside.start)
        return bytes(masked), spans[-1][1]

    def _length(self, data: bytes, at: int, found: bytes) -> int:
        """Return how much of a word is there, of which the part that is searched was found."""
        return max(_common(data, at, each, len(found)) for each in self._whole[found])


def _common(data: bytes, at: int, word: bytes, known: int) -> int:
    if data.startswith(word, at):
        return len(word)
    most = min(len(word), len(data) - at)
    return next((length for length in range(known, most) if data[at + length] != word[length]), max(most, known))
