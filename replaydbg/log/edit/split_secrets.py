"""Known secrets that a program received, or wrote, in several pieces: at the edge of a buffer, or in lines.

The pieces are values of a log and contents of files beside it, and the lines of values, as in base64 with line ends.
The bytes are searched first: for the first and the last bytes of each form of a secret where not all of it is. Only
around those, values are compared.

- A beginning of a form of six bytes or more is a piece wherever a value or a line ends with it, and an end of a form
  where one begins with it; so is a value that is in the middle of a form. They may come in any order, several times,
  or without the rest.
- Shorter pieces are found from such a one on, behind a beginning and before an end: in the next values, perhaps with
  others between them. Fewer than four bytes at the other end must come from the same kind of call.

A form is not found if neither its first nor its last piece has six bytes, unless both have four, or two values, one
behind the other, are in the middle of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from replaydbg.classes import NamedTuple
from replaydbg.log.edit.secret_seeds import SEED, SeedHit, Seeds, common_length
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.secrets.secret_pieces import ENOUGH, is_long_piece, without_longer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.edit.content_parts import Parts, Pieces

_NEAR = 1 << 16
"""Bytes before what is new that are searched again: pieces are near each other."""
_APART = 256
"""Values that may be between two pieces: other threads, and what else is recorded of each call."""
_LONGEST = 1 << 13
_BREAK = re.compile(rb"\r?\n[ \t]*")
"""Between two lines of a value that was wrapped."""


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

    `since`: so many bytes of each section were searched for these forms before.
    """
    known = [each for each in forms if SEED < len(each) <= _LONGEST]
    if not known:
        return []
    seeds = Seeds(known)
    first = {name: max(since.get(name, 0) - _NEAR, 0) for name in ("log", "content")}
    for name, start in first.items():
        seeds.search(name, pieces(name, start), start)
    # What grows is searched many times: looking at all its values each time would take too long.
    if not seeds.broken_off and (since or not seeds.are_few):
        return []
    # Imported here: recordings without secrets do not need it.
    from replaydbg.log.edit.content_parts import ContentParts
    from replaydbg.log.entries.leaves import Leaf, leaves

    search = _Search(seeds)
    contents = ContentParts(pieces, seeds.in_contents)
    for each in leaves(pieces("log", LOG_HEADER), max(first["log"] - LOG_HEADER, 0)):
        if isinstance(each, Leaf):
            search.add("log", each.gate, [(each.start + LOG_HEADER, each.data)])
        else:
            search.add("content", each.gate, contents.parts(each))
    return list(search.found.values())


def words_in(places: Iterable[SplitPlace]) -> set[bytes]:
    """Return the pieces that are masked wherever they are: in snapshots of the heap, and in texts about a run."""
    return set(filter(is_long_piece, (each.form[each.start : each.end] for each in places)))


class _Value(NamedTuple):
    """A value, or the part of a long one that is at its end."""

    section: str
    gate: int
    """The number of the gate of its call."""
    at: int
    data: bytes


class _Chain(NamedTuple):
    """Pieces of a form, one behind the other, from its beginning on."""

    form: bytes
    places: tuple[SplitPlace, ...]
    gate: int
    """Of the call with the first one."""
    number: int
    """Of the value with the last one."""

    @property
    def end(self) -> int:
        """How much of the form they are."""
        return self.places[-1].end


class _Search:
    """Finds the pieces of forms in the values of a log."""

    def __init__(self, seeds: Seeds) -> None:
        self.found: dict[tuple[str, int, int], SplitPlace] = {}
        """By section, first byte, and length."""
        self._broken_off = without_longer(seeds.broken_off)
        forms = seeds.forms if seeds.are_few else seeds.broken_off
        self._begins = {name: _of_forms(hits, seeds.broken_off) for name, hits in seeds.begins.items()}
        self._ends = {name: _of_forms(hits, seeds.broken_off) for name, hits in seeds.ends.items()}
        self._middles: defaultdict[bytes, list[tuple[bytes, int]]] = defaultdict(list)
        """By six bytes, the forms that have them, and where."""
        for form in sorted(forms):
            for at in range(len(form) - ENOUGH + 1):
                self._middles[form[at : at + ENOUGH]].append((form, at))
        self._longest = max(map(len, forms), default=0)
        self._chains: defaultdict[int, dict[tuple[bytes, int], _Chain]] = defaultdict(dict)
        """By the byte with which they go on; by form, and how much of it was found: the latest."""
        self._before: deque[tuple[str, int, int, bytes]] = deque(maxlen=_APART)
        """The last values, each as in `_Value`."""
        self._number = 0

    def add(self, section: str, gate: int, parts: Parts) -> None:
        """Take the next value."""
        self._number += 1
        (begin, data), last = parts[0], parts[-1]
        end = last[0] + len(last[1])
        if begin == end:
            return
        # What nearly all values have not is asked first.
        if data[0] in self._chains:
            self._follow(_Value(section, gate, begin, data))
        begins, ends = self._begins[section], self._ends[section]
        for each in _between(begins, begin, end - 1) if begins else ():
            self._take_begin(each, _part_at(section, gate, parts, each.at), is_last=each.at >= last[0])
        for each in _between(ends, begin + 1, end) if ends else ():
            self._take_end(each, _part_at(section, gate, parts, each.at - 1), is_first=each.at <= begin + len(data))
        if data[:ENOUGH] in self._middles and len(parts) == 1:
            self._take_middle(_Value(section, gate, begin, data))
        self._before.append((section, gate, *last))

    def _follow(self, value: _Value) -> None:
        """Let pieces that were found go on in the next value."""
        chains = self._chains[value.data[0]]
        for key, chain in list(chains.items()):
            if self._number - chain.number > _APART:
                del chains[key]
            else:
                self._go_on(chain, value, 0)
        if not chains:
            del self._chains[value.data[0]]

    def _note(self, places: Iterable[SplitPlace]) -> None:
        for place in places:
            self.found.setdefault((place.section, place.at, place.end - place.start), place)

    def _take_middle(self, value: _Value) -> None:
        """Note a value that is a part of a form; of one without other pieces only if the next value goes on with it."""
        data = value.data
        if len(data) < self._longest and is_long_piece(data):
            for form, start in self._middles.get(data[:ENOUGH], ()):
                if len(data) < len(form) and form.startswith(data, start):
                    place = SplitPlace(value.section, value.at, form, start, start + len(data))
                    if form in self._broken_off:
                        self._note([place])
                    if place.end < len(form):
                        self._keep(_Chain(form, (place,), value.gate, self._number))

    # ---- from a beginning on ----

    def _take_begin(self, hit: SeedHit, value: _Value, *, is_last: bool) -> None:
        """Note the beginning of a form if a value or a line ends with it, and follow it."""
        first, size = hit.at - value.at, len(value.data)
        if is_last and size - first <= hit.length:
            length, following = size - first, size
        else:
            found = _BREAK.search(value.data, first, first + hit.length + 2)
            if found is None or found.start() - first > hit.length:
                return
            length, following = found.start() - first, found.end()
            while following < size and value.data[following] in b" \t":
                following += 1
        if length < SEED:
            return
        place = SplitPlace(value.section, hit.at, hit.form, 0, length)
        if length >= ENOUGH:
            self._note([place])
        chain = _Chain(hit.form, (place,), value.gate, self._number)
        if following < size:
            self._go_on(chain, value, following)
        else:
            self._keep(chain)

    def _keep(self, chain: _Chain) -> None:
        chains = self._chains[chain.form[chain.end]]
        known = chains.get((chain.form, chain.end))
        # One that ends in the same value, and began earlier, knows more.
        if known is None or known.number != chain.number or chain.places[0].start < known.places[0].start:
            chains[chain.form, chain.end] = chain

    def _go_on(self, chain: _Chain, value: _Value, first: int) -> None:
        """Follow pieces into a value, whose bytes from `first` on may go on with them."""
        form, data = chain.form, value.data
        while first < len(data):
            length = common_length(data[first : first + len(form) - chain.end], form[chain.end :])
            if not length:
                return
            place = SplitPlace(value.section, value.at + first, form, chain.end, chain.end + length)
            first += length
            found = _BREAK.match(data, first)
            if place.end < len(form) and first < len(data) and found is None:
                return
            chain = self._longer(chain, place, value)
            if place.end == len(form):
                return
            first = found.end() if found is not None else first
        self._keep(chain)

    def _longer(self, chain: _Chain, place: SplitPlace, value: _Value) -> _Chain:
        """Note pieces of which a form is made, or that are in its middle; return them with the next one."""
        begin, length = chain.places[0], place.end - place.start
        is_known = begin.end - begin.start >= ENOUGH and value.gate == chain.gate
        if begin.start:
            if is_long_piece(place.form[place.start : place.end]) or (place.end == len(place.form) and is_known):
                self._note((*chain.places, place))
                self._go_back(begin, value, 0)
        elif place.end == len(place.form) and (length >= SEED or is_known):
            self._note((*chain.places, place))
        return _Chain(chain.form, (*chain.places, place), chain.gate, self._number)

    # ---- from an end back ----

    def _take_end(self, hit: SeedHit, value: _Value, *, is_first: bool) -> None:
        """Note the end of a form if a value or a line begins with it, and look for what is before it."""
        end = hit.at - value.at
        if is_first and end <= hit.length:
            length, before = end, 0
        else:
            found = _last_break(value.data, end, hit.length)
            if found is None or end - found.end() > hit.length:
                return
            length, before = end - found.end(), found.start()
        if length < ENOUGH:
            return
        place = SplitPlace(value.section, hit.at - length, hit.form, len(hit.form) - length, len(hit.form))
        if hit.form in self._broken_off:
            self._note([place])
        self._go_back(place, value, before)

    def _go_back(self, last: SplitPlace, value: _Value, end: int) -> None:
        """Look for the pieces before one: in the bytes of its value before `end`, and in the values before it."""
        places, form, gate = [last], last.form, value.gate
        own = value._replace(data=value.data[:end])
        for section, its_gate, at, data in (own, *reversed(self._before)):
            stop = len(data)
            # Nearly all values end with another byte.
            while stop > 0 and data[stop - 1] == form[places[-1].start - 1]:
                left = form[: places[-1].start]
                if data.endswith(left, 0, stop):
                    if len(left) >= SEED or its_gate == gate:
                        self._note((SplitPlace(section, at + stop - len(left), form, 0, len(left)), *places))
                        return
                    break
                found = _last_break(data, stop, len(left))
                begin = found.end() if found is not None else 0
                if not (begin < stop and stop - begin < len(left) and left.endswith(data[begin:stop])):
                    break
                places.append(SplitPlace(section, at + begin, form, len(left) - (stop - begin), len(left)))
                stop = found.start() if found is not None else 0


def _of_forms(hits: Iterable[SeedHit], forms: Collection[bytes]) -> list[SeedHit]:
    return sorted(each for each in hits if each.form in forms)


def _between(hits: list[SeedHit], first: int, last: int) -> list[SeedHit]:
    """Return the hits from a byte to another one."""
    low = bisect_left(hits, first, key=_place)
    return hits[low : bisect_right(hits, last, lo=low, key=_place)] if low < len(hits) else []


def _place(hit: SeedHit) -> int:
    return hit.at


def _part_at(section: str, gate: int, parts: Parts, place: int) -> _Value:
    """Return the part of a value with a place; the last one before it if none has it: a long content lacks some."""
    at, data = next((each for each in reversed(parts) if each[0] <= place), parts[0])
    return _Value(section, gate, at, data)


def _last_break(data: bytes, end: int, length: int) -> re.Match[bytes] | None:
    """Return the last end of a line before `end`, if no more than so many bytes are behind it."""
    return next(reversed([*_BREAK.finditer(data, max(end - length - 66, 0), end)]), None)
