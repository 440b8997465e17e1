"""Known secrets that a program received, or wrote, in several pieces: at the edge of a buffer, or in lines.

The pieces are values of a log and contents of files beside it, one behind the other, perhaps with others between them;
and the lines of one value, as in base64 with line ends. Decoding a log takes a hundred times as long as searching its
bytes, so the bytes are searched first: for the first and the last bytes of each form of a secret where not all of it
is. Only for those the log is decoded. A form is not found if neither its first nor its last piece has six bytes, unless
both have four.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from replaydbg.classes import NamedTuple
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import bytes_behind
from replaydbg.native._words import find

Pieces = Callable[[str], Iterator[bytes]]
"""Returns a section's bytes, in pieces."""

_SEED = 4
"""Bytes at the beginning and at the end of a form that are searched."""
_ENOUGH = 6
"""Bytes of a beginning, or an end, that are enough for decoding the log: fewer are there by chance too often."""
_LONG_PIECE = 8
"""Bytes of a piece that is a secret of its own: a shorter one would be found everywhere."""
_NEAR = 1 << 16
"""Bytes before what is new that are searched again: pieces are near each other."""
_APART = 256
"""Values that may be between two pieces: other threads, and what else is recorded of each call."""
_LONGEST = 1 << 13
_LINE = re.compile(rb"\r?\n[ \t]*")


class SplitPlace(NamedTuple):
    """A piece of a form of a secret."""

    section: str
    at: int
    """Its first byte in the section."""
    form: bytes
    start: int
    """The piece is `form[start:end]`."""
    end: int


def split_secrets(
    forms: Iterable[bytes], pieces: Pieces, since: Mapping[str, int] = MappingProxyType({})
) -> list[SplitPlace]:
    """Return the pieces of all forms that are nowhere whole where they are, in a log and the contents beside it.

    `since`: so many bytes of each section had nothing of that kind; if there is something behind them, all is searched.
    """
    known = [each for each in forms if _SEED < len(each) <= _LONGEST]
    wanted = _broken_off(known, lambda name: bytes_behind(max(since.get(name, 0) - _NEAR, 0), pieces(name)))
    if not wanted:
        return []
    # Imported here: nearly all recordings with secrets come only this far.
    from replaydbg.log.entries.leaves import Leaf, Leaves

    search = _Search(wanted)
    contents = _Contents(pieces)
    for each in Leaves(bytes_behind(LOG_HEADER, pieces("log"))).with_contents():
        value = _Value("log", each.start + LOG_HEADER, each.data) if isinstance(each, Leaf) else contents.value(each)
        search.add(value)
    return search.found


def words_in(places: Iterable[SplitPlace]) -> set[bytes]:
    """Return the pieces that are long enough to be secrets wherever they are: for snapshots of the heap."""
    found = {each.form[each.start : each.end] for each in places}
    return {each for each in found if len(each) >= _LONG_PIECE and not each.isalpha()}


# ---- in the bytes ----


def _broken_off(forms: Collection[bytes], pieces: Pieces) -> set[bytes]:
    """Return the forms of which a beginning or an end is somewhere without the rest beside it."""
    seeds: dict[bytes, list[bytes]] = {}
    for form in forms:
        for seed in {form[:_SEED], form[-_SEED:]}:
            seeds.setdefault(seed, []).append(form)
    words = tuple(seeds)
    first: dict[bytes, int] = {}
    last: dict[bytes, int] = {}
    longest = max(map(len, forms), default=0)
    for data in (each for name in ("log", "content") for each in _overlapping(pieces(name), longest)):
        for at, number in find(words, data):
            for form in seeds[words[number]]:
                _note(form, data, at, first, last)
    return {
        form
        for form in {*first, *last}
        if (form in first and form in last) or max(first.get(form, 0), last.get(form, 0)) >= _ENOUGH
    }


def _note(form: bytes, data: bytes, at: int, first: dict[bytes, int], last: dict[bytes, int]) -> None:
    """Note how much of a form is there, of whose beginning or end the seed at `at` is; all of it is no piece."""
    if data.startswith(form[:_SEED], at):
        length = _common(data[at : at + len(form)], form)
        if length < len(form):
            first[form] = max(first.get(form, 0), length)
    if data.startswith(form[-_SEED:], at):
        end = at + _SEED
        length = _common(data[max(end - len(form), 0) : end][::-1], form[::-1])
        if length < len(form):
            last[form] = max(last.get(form, 0), length)


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes two have in common at their beginnings."""
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)


def _overlapping(pieces: Iterator[bytes], longest: int) -> Iterator[bytes]:
    """Yield pieces, each behind the end of the one before, so that what is whole is so in one of them."""
    before = b""
    for piece in pieces:
        yield before + piece
        before = piece[-2 * longest :]


# ---- in the values ----


class _Value(NamedTuple):
    """What a program received or wrote, with its place: of a long one only the two ends are known."""

    section: str
    at: int
    data: bytes
    tail: bytes = b""
    """The end of a long content; empty: `data` is all of it."""
    tail_at: int = 0


class _Contents:
    """Reads the two ends of contents, which lie one behind the other."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._rest: Iterator[bytes] = iter(())
        self._at, self._held = 0, b""

    def value(self, place: tuple[int, int]) -> _Value:
        """Return the content between two bytes of its section."""
        start, end = place
        if end - start <= 2 * _LONGEST:
            return _Value("content", start, self._read(start, end))
        tail_at = end - _LONGEST
        return _Value("content", start, self._read(start, start + _LONGEST), self._read(tail_at, end), tail_at)

    def _read(self, start: int, end: int) -> bytes:
        if start < self._at or not self._held:
            self._rest, self._at, self._held = self._pieces("content"), 0, b""
        while self._at + len(self._held) < end:
            piece = next(self._rest, b"")
            if not piece:
                break
            drop = max(min(start - self._at, len(self._held)), 0)
            self._held = self._held[drop:] + piece
            self._at += drop
        return self._held[max(start - self._at, 0) : max(end - self._at, 0)]


class _Begun(NamedTuple):
    """A form of which some pieces were found."""

    places: tuple[SplitPlace, ...]
    seen: int
    """The number of the value with the last one."""


class _Search:
    """Follows the values of a log, and finds the forms whose pieces are one behind the other."""

    def __init__(self, forms: Iterable[bytes]) -> None:
        self.found: list[SplitPlace] = []
        self._forms = sorted(forms)
        self._begun: dict[tuple[bytes, int], _Begun] = {}
        """By form, and how much of it was found."""
        self._number = 0

    def add(self, value: _Value) -> None:
        """Take the next value; its lines are values of their own, too."""
        self._number += 1
        parts = ((value.at, value.data), (value.tail_at, value.tail))
        for at, data in (line for start, part in parts for line in _lines(start, part)):
            if data:
                self._go_on(value.section, at, data)
                self._begin(value.section, at, data)
        if self._number % _APART == 0:
            self._begun = {key: each for key, each in self._begun.items() if each.seen + _APART > self._number}

    def _go_on(self, section: str, at: int, data: bytes) -> None:
        for (form, done), begun in list(self._begun.items()):
            length = _common(data[: len(form) - done], form[done:])
            if done + length == len(form):
                self.found += [*begun.places, SplitPlace(section, at, form, done, len(form))]
            elif length == len(data):
                place = SplitPlace(section, at, form, done, done + length)
                self._begun[form, done + length] = _Begun((*begun.places, place), self._number)

    def _begin(self, section: str, at: int, data: bytes) -> None:
        for form in self._forms:
            for length in range(min(len(form) - 1, len(data)), 0, -1):
                if data.endswith(form[:length]):
                    place = SplitPlace(section, at + len(data) - length, form, 0, length)
                    self._begun[form, length] = _Begun((place,), self._number)


def _lines(at: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a value that is at `at`, with their places."""
    start = 0
    for match in _LINE.finditer(data):
        yield at + start, data[start : match.start()]
        start = match.end()
    yield at + start, data[start:]
