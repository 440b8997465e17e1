"""Known secrets that a program received, or wrote, in several pieces: at the edge of a buffer, or in lines.

The pieces are values of a log and contents of files beside it, and the lines of values, as in base64 with line ends.
Decoding a log takes a hundred times as long as searching its bytes, so the bytes are searched first: for the first and
the last bytes of each form of a secret where not all of it is. Only for those the log is decoded. Then

- a beginning of a form of six bytes or more is a piece wherever a value or a line ends with it, and an end of a form
  where one begins with it: they may come in any order, several times, or without the rest;
- shorter pieces are found by following the values: they are one behind the other, perhaps with others between them.

A form is not found if neither its first nor its last piece has six bytes, unless both have four.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from replaydbg.classes import NamedTuple
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import bytes_behind
from replaydbg.native._words import find
from replaydbg.secrets.secret_pieces import is_long_piece

Pieces = Callable[[str], Iterator[bytes]]
"""Returns a section's bytes, in pieces."""

_SEED = 4
"""Bytes at the beginning and at the end of a form that are searched."""
_ENOUGH = 6
"""Bytes of a beginning, or an end, that are a piece wherever they are: fewer are there by chance too often."""
_TOGETHER = 1 << 20
"""Bytes of a log that may be between a beginning and an end of fewer: in 300 MB four bytes are there by chance."""
_NEAR = 1 << 16
"""Bytes before what is new that are searched again: pieces are near each other."""
_APART = 256
"""Values that may be between two pieces: other threads, and what else is recorded of each call."""
_LONGEST = 1 << 13
_MOST_WINDOWS = 256
"""Places in contents around which lines are looked at: a word such as `password` may be everywhere."""
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
    seeds = _Seeds(known)
    for name in ("log", "content"):
        first = max(since.get(name, 0) - _NEAR, 0)
        seeds.search(name, bytes_behind(first, pieces(name)), first)
    wanted = seeds.broken_off()
    if not wanted:
        return []
    # Imported here: nearly all recordings with secrets come only this far.
    from replaydbg.log.entries.leaves import Leaf, Leaves

    search = _Search(wanted)
    contents = _Contents(pieces, seeds.in_contents)
    for each in Leaves(bytes_behind(LOG_HEADER, pieces("log"))).with_contents():
        parts = [(each.start + LOG_HEADER, each.data)] if isinstance(each, Leaf) else contents.parts(each)
        search.add("log" if isinstance(each, Leaf) else "content", parts)
    return list(search.found.values())


def words_in(places: Iterable[SplitPlace]) -> set[bytes]:
    """Return the pieces that are masked wherever they are: in snapshots of the heap, and in texts about a run."""
    return set(filter(is_long_piece, (each.form[each.start : each.end] for each in places)))


# ---- in the bytes ----


class _Seeds:
    """Beginnings and ends of forms in the bytes of sections that are there without the rest beside them."""

    def __init__(self, forms: Collection[bytes]) -> None:
        self.in_contents: list[int] = []
        """Where they are in the contents, in order."""
        self._forms: dict[bytes, list[bytes]] = {}
        """By their first and last bytes."""
        for form in forms:
            for seed in {form[:_SEED], form[-_SEED:]}:
                self._forms.setdefault(seed, []).append(form)
        self._words = tuple(self._forms)
        self._longest = max(map(len, forms), default=0)
        self._broken: set[bytes] = set()
        self._first: dict[bytes, tuple[str, int]] = {}
        """Of forms, where the last short beginning is."""

    def search(self, section: str, pieces: Iterator[bytes], offset: int) -> None:
        """Search a section, whose pieces begin at `offset`."""
        before = b""
        for piece in pieces:
            # What is whole is so in one of them.
            data = before + piece
            for at, number in find(self._words, data):
                place = offset - len(before) + at
                most = max(self._note(form, data, at, (section, place)) for form in self._forms[self._words[number]])
                if most >= _ENOUGH and section == "content" and len(self.in_contents) < _MOST_WINDOWS:
                    self.in_contents.append(place)
            offset += len(piece)
            before = data[-2 * self._longest :]

    def broken_off(self) -> set[bytes]:
        """Return the forms of which enough was found."""
        return self._broken

    def _note(self, form: bytes, data: bytes, at: int, place: tuple[str, int]) -> int:
        """Note how many bytes of a form are there, of whose beginning or end the seed at `at` is, and return it.

        `place`: where the seed is. All of a form is no piece: 0.
        """
        first = _common(data[at : at + len(form)], form) if data.startswith(form[:_SEED], at) else 0
        end = at + _SEED
        has_end = data.startswith(form[-_SEED:], at)
        last = _common(data[max(end - len(form), 0) : end][::-1], form[::-1]) if has_end else 0
        most = max(each for each in (first, last, 0) if each < len(form))
        if most >= _ENOUGH or (0 < last < len(form) and self._has_begun(form, place)):
            self._broken.add(form)
        if 0 < first < len(form):
            self._first[form] = place
        return most

    def _has_begun(self, form: bytes, place: tuple[str, int]) -> bool:
        """Whether a short beginning of a form is not far before a place, or in another section."""
        section, at = self._first.get(form, ("", 0))
        return section != "" and (section != place[0] or at > place[1] - _TOGETHER)


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes two have in common at their beginnings."""
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)


# ---- in the values ----

Parts = list[tuple[int, bytes]]
"""A value that a program received or wrote: its parts in order, with their places. A long content lacks some parts."""


class _Contents:
    """Reads contents, which lie one behind the other: of long ones their two ends, and what is around some places."""

    def __init__(self, pieces: Pieces, places: Iterable[int]) -> None:
        self._pieces = pieces
        self._places = sorted(places)
        self._rest: Iterator[bytes] = iter(())
        self._at, self._held = 0, b""

    def parts(self, place: tuple[int, int]) -> Parts:
        """Return the parts of the content between two bytes of its section."""
        start, end = place
        spans = [(start, min(start + _LONGEST, end))]
        inside = self._places[bisect_left(self._places, start) : bisect_left(self._places, end)]
        around = [(max(each - _LONGEST, start), min(each + _LONGEST, end)) for each in inside]
        for low, high in [*around, (max(end - _LONGEST, start), end)]:
            if low <= spans[-1][1]:
                spans[-1] = spans[-1][0], max(high, spans[-1][1])
            else:
                spans.append((low, high))
        return [(low, self._read(low, high)) for low, high in spans]

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


class EndPiece(NamedTuple):
    """A piece of a form at the beginning or the end of a value, or all of the value."""

    at: int
    """Its first byte in the value."""
    form: bytes
    start: int
    """The piece is `form[start:end]`."""
    end: int


def without_longer(forms: Iterable[bytes]) -> set[bytes]:
    """Return the forms that begin with no other one.

    Where a secret is at the end of a value, what the next value begins with may go on with it, or be something else:
    then the end of both together is no piece of a secret by itself.
    """
    found: list[bytes] = []
    for form in sorted(forms):
        if not found or not form.startswith(found[-1]):
            found.append(form)
    return set(found)


def end_pieces(forms: Iterable[bytes], ends: Collection[bytes], data: bytes) -> Iterator[EndPiece]:
    """Yield what a value ends with of the beginning of each form, and begins with of its end, if it has six bytes.

    `ends`: the forms whose ends are looked for.
    """
    for form in forms:
        low = max(len(data) - len(form) + 1, 0)
        while (low := data.find(form[:_ENOUGH], low)) >= 0:
            if form.startswith(data[low:]):
                yield EndPiece(low, form, 0, len(data) - low)
                break
            low += 1
        if form not in ends:
            continue
        high = min(len(form) - 1, len(data))
        while (found := data.rfind(form[-_ENOUGH:], 0, high)) >= 0:
            high = found + _ENOUGH
            if form.endswith(data[:high]):
                yield EndPiece(0, form, len(form) - high, len(form))
                break
            high -= 1
        if is_long_piece(data) and len(data) < len(form) and (inside := form.find(data)) >= 0:
            yield EndPiece(0, form, inside, inside + len(data))


class _Following:
    """Follows values, and finds the forms whose pieces are one behind the other."""

    def __init__(self, forms: Iterable[bytes]) -> None:
        self._forms = forms
        self._begun: dict[tuple[bytes, int], _Begun] = {}
        """By form, and how much of it was found: the latest."""

    def found(self, number: int, section: str, at: int, data: bytes) -> Iterator[SplitPlace]:
        """Take the next one, of the value with a number; yield the pieces of the forms that end with it."""
        for (form, done), begun in list(self._begun.items()):
            length = _common(data[: len(form) - done], form[done:])
            place = SplitPlace(section, at, form, done, done + length)
            if place.end == len(form):
                yield from (*begun.places, place)
            elif length == len(data):
                self._begun[form, place.end] = _Begun((*begun.places, place), number)
        for form in self._forms:
            # Only where the form has the value's last byte can a beginning of it be the value's end.
            length = form.find(data[-1:], 0, len(data)) + 1
            while 0 < length < len(form):
                if data.endswith(form[:length]):
                    place = SplitPlace(section, at + len(data) - length, form, 0, length)
                    self._begun[form, length] = _Begun((place,), number)
                length = form.find(data[-1:], length, len(data)) + 1

    def forget(self, number: int) -> None:
        """Forget what was begun before the value with a number."""
        self._begun = {key: each for key, each in self._begun.items() if each.seen > number}


class _Search:
    """Finds the pieces of forms in the values of a log."""

    def __init__(self, forms: Iterable[bytes]) -> None:
        self.found: dict[tuple[str, int, int], SplitPlace] = {}
        """By section, first byte, and length."""
        self._forms = sorted(forms)
        self._ends = without_longer(self._forms)
        self._values, self._lines = _Following(self._forms), _Following(self._forms)
        self._number = 0

    def add(self, section: str, parts: Parts) -> None:
        """Take the next value; its lines are values of their own, too."""
        self._number += 1
        for at, part in parts:
            self._look(self._values, section, at, part)
            for line_at, line in _lines(at, part):
                self._look(self._lines, section, line_at, line)
        if self._number % _APART == 0:
            for each in (self._values, self._lines):
                each.forget(self._number - _APART)

    def _look(self, following: _Following, section: str, at: int, data: bytes) -> None:
        if not data:
            return
        ends = (SplitPlace(section, at + each.at, *each[1:]) for each in end_pieces(self._forms, self._ends, data))
        for place in (*ends, *following.found(self._number, section, at, data)):
            self.found.setdefault((section, place.at, place.end - place.start), place)


def _lines(at: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a value that is at `at`, with their places."""
    start = 0
    for match in _LINE.finditer(data):
        yield at + start, data[start : match.start()]
        start = match.end()
    yield at + start, data[start:]
