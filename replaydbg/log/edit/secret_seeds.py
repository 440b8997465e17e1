"""Beginnings and ends of known secrets in bytes, where not all of a secret is: there it may go on in another value."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from replaydbg.classes import NamedTuple
from replaydbg.native.finding import find
from replaydbg.secrets.secret_pieces import ENOUGH

SEED = 4
"""Bytes at the beginning and at the end of a form that are searched."""
_TOGETHER = 1 << 20
"""Bytes of a log that may be between a beginning and an end of fewer: in 300 MB four bytes are there by chance."""
_MOST_WINDOWS = 256
"""Places in contents around which lines are looked at: a word such as `password` may be everywhere."""
_MOST_BYTES = 1 << 17
"""Of forms that are searched for values in their middle without a beginning or an end of six bytes."""


class SeedHit(NamedTuple):
    """A part of a form in the bytes of a section."""

    at: int
    """Where it begins, or ends, if it is the form's end."""
    form: bytes
    length: int
    """How much of the form is there at most: what follows may have the form's bytes by chance."""


class Seeds:
    """Beginnings and ends of forms in the bytes of sections that are there without the rest beside them."""

    def __init__(self, forms: Collection[bytes]) -> None:
        self.forms = forms
        self.broken_off: set[bytes] = set()
        """The forms of which enough was found."""
        self.begins: dict[str, list[SeedHit]] = {"log": [], "content": []}
        """By section, in order."""
        self.ends: dict[str, list[SeedHit]] = {"log": [], "content": []}
        self._forms: dict[bytes, list[bytes]] = {}
        """By their first and last bytes."""
        for form in forms:
            for seed in {form[:SEED], form[-SEED:]}:
                self._forms.setdefault(seed, []).append(form)
        self._words = tuple(self._forms)
        self._longest = max(map(len, forms), default=0)
        self._first: dict[bytes, tuple[str, int]] = {}
        """Of forms, where the last short beginning is."""

    @property
    def are_few(self) -> bool:
        """Whether there are so few forms that each value can be searched in all of them."""
        return sum(map(len, self.forms)) <= _MOST_BYTES

    @property
    def in_contents(self) -> list[int]:
        """Where beginnings and ends are in the contents, in order; only some, if there are many."""
        hits = [*self.begins["content"], *self.ends["content"]]
        return sorted(each.at for each in hits if each.length >= ENOUGH)[:_MOST_WINDOWS]

    def search(self, section: str, pieces: Iterator[bytes], offset: int) -> None:
        """Search a section, whose pieces begin at `offset`."""
        data, start, done = b"", offset, offset
        for piece in pieces:
            data += piece
            end = start + len(data) - self._longest  # behind it there may be more
            if end > done:
                self._look(section, data, start, range(done, end))
                done = end
            first = max(done - self._longest - start, 0)
            data, start = data[first:], start + first
        self._look(section, data, start, range(done, start + len(data)))

    def _look(self, section: str, data: bytes, start: int, places: range) -> None:
        """Note what is at some places; the data has what is before and behind them."""
        for at, number in find(self._words, data):
            if start + at in places:
                forms = self._forms[self._words[number]]
                self._note_begins(section, [(_begun(data, at, form), form) for form in forms], start + at)
                end = at + SEED
                self._note_ends(section, [(_ended(data, end, form), form) for form in forms], start + end)

    def _note_begins(self, section: str, found: list[tuple[int, bytes]], at: int) -> None:
        whole = _longest_whole(found)
        for length, form in found:
            if length > whole:
                self.begins[section].append(SeedHit(at, form, length))
                self._first[form] = section, at
                if length >= ENOUGH:
                    self.broken_off.add(form)

    def _note_ends(self, section: str, found: list[tuple[int, bytes]], at: int) -> None:
        whole = _longest_whole(found)
        for length, form in found:
            if length > whole:
                self.ends[section].append(SeedHit(at, form, length))
                if length >= ENOUGH or self._has_begun(form, section, at):
                    self.broken_off.add(form)

    def _has_begun(self, form: bytes, section: str, at: int) -> bool:
        """Whether a short beginning of a form is not far before a place, or in another section."""
        where, begin = self._first.get(form, ("", 0))
        return where != "" and (where != section or begin > at - _TOGETHER)


def _begun(data: bytes, at: int, form: bytes) -> int:
    """Return how much of the beginning of a form is at a place; 0: less than a seed."""
    return common_length(data[at : at + len(form)], form) if data.startswith(form[:SEED], at) else 0


def _ended(data: bytes, end: int, form: bytes) -> int:
    """Return how much of the end of a form ends at a place; 0: less than a seed."""
    if not data.endswith(form[-SEED:], 0, end):
        return 0
    return common_length(data[max(end - len(form), 0) : end][::-1], form[::-1])


def _longest_whole(found: list[tuple[int, bytes]]) -> int:
    """Return the length of the longest form that is whole, 0 if none is: what is shorter is a part of it."""
    return max((length for length, form in found if length == len(form)), default=0)


def common_length(one: bytes, other: bytes) -> int:
    """Return how many bytes two have in common at their beginnings."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(at for at in range(length) if one[at] != other[at])
