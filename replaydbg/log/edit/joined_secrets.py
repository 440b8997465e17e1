"""Secrets of which a program received a part, and then the rest: no value of the log has the form of one.

The values that the same line received, one after the other, are put together; those of calls with equal arguments, as
of one of several connections; and those of all lines. There the rules are asked, only around their hints: most values
have none, and are passed over.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from replaydbg.log.entries.leaves import CONTENT, LeafReader, Sifted
from replaydbg.native import compiled
from replaydbg.native.finding import find
from replaydbg.secrets.secret_rules import HINTS, MOST_BEFORE, WIDEST, SecretPlace, places_in
from replaydbg.secrets.user_patterns import current_patterns, searching_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.native._leaves import Sieve

_MOST_OF_HINT = max(map(len, HINTS)) - 1
"""Bytes of a hint that a value can end with, while the next one has the rest."""
_BEFORE = MOST_BEFORE + _MOST_OF_HINT
"""Bytes of a value without hints that the next one may need."""
_ENOUGH = 4 * WIDEST
"""Bytes behind a hint at which they are searched: less often, or tiny values would be searched again and again."""
_MOST_ENDS = 4
"""Values in which a secret may go on, up to which it is looked for one that ends earlier."""
_MOST_BEHIND = 16
"""Values from one with a hint on, with each of which a secret may end."""
_CHUNK = re.compile(rb"\r\n[0-9A-Fa-f]{1,8}(?:;[^\r\n]{0,99})?\r\n")
"""Between two chunks of the body of an HTTP response (RFC 9112, section 7.1)."""
_MOST_STREAMS = 1 << 16
"""Places and different arguments whose values are put together: the paths of files may all be different."""
_SORTED = sorted(HINTS)
_ENDS = frozenset(b"".join(each[:-1] for each in HINTS))
"""The bytes that a value may end with and begin a hint."""
_PAIRS = frozenset(one << 8 | other for each in HINTS for one, other in pairwise(each))
"""Two bytes that are one behind the other in a hint."""
_EVERY = -1
"""The number of the stream with the first value of each record, in a sieve."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.edit.content_parts import Contents

Span = tuple[int, int]
"""The first byte of a content in its section, and the one behind its last."""
_NOWHERE = (-1, -1)


def _pair_bits() -> bytes:
    """Return a bit for each two bytes: whether they are one behind the other in a hint."""
    bits = bytearray((1 << 16) // 8)
    for each in _PAIRS:
        bits[each // 8] |= 1 << each % 8
    return bytes(bits)


class JoinedSecrets:
    """The secrets of one log that are in several of its values, as far as it was read."""

    def __init__(self, contents: Contents, branch: int = 0) -> None:
        """The user's patterns that are in effect now are in effect for all that follows.

        `contents` are those to which the log refers. `branch`: so many bytes behind the header are those of a parent,
        in whose log they are searched. Of them only the last ones count here, with which something may go on.
        """
        self._patterns = current_patterns()
        self._contents = contents
        self._first = max(branch - WIDEST, 0)
        self._reader = LeafReader(self._first)
        # This module can be imported where nothing is compiled.
        self._sieve: Sieve = compiled("_leaves", "Sieve")(_pair_bits(), _BEFORE, _MOST_STREAMS, bool(self._patterns))
        self._streams: dict[int, _Stream] = {}
        """Those in which something may go on, by their numbers: all others are in the sieve."""
        self._hints: list[int] = []
        """Where hints begin in the last pieces."""
        self._next = 0
        """The index of the first one that is behind the last value."""
        self._tail, self._length = b"", 0
        self._found: set[bytes] = set()

    def add(self, piece: bytes) -> None:
        """Take the next piece of the log, the first one from behind its header."""
        data = self._tail + piece
        before = self._length - len(self._tail)
        last = self._hints[-1] if self._hints else -1
        del self._hints[: self._next]
        self._next = 0
        if before + len(data) > self._first:
            self._hints += (before + at for at, _ in find(HINTS, data) if before + at > last)
        self._tail, self._length = data[-_MOST_OF_HINT:], self._length + len(piece)
        with searching_for(self._patterns):
            self._take_values(*self._reader.sifted(piece, self._sieve, self._hints))

    def found(self) -> set[bytes]:
        """Return the secrets that were found so far."""
        self._reader.wait_for_no_more()
        with searching_for(self._patterns):
            self._take_values(*self._reader.sifted(b"", self._sieve, self._hints))
            for each in self._streams.values():
                self._found.update(each.new_secrets())
        return self._found

    def _take_values(self, data: bytes, position: int, values: list[Sifted]) -> None:
        taken, hints = _NOWHERE, self._hints[:0]
        touched: dict[int, _Stream] = {}
        for number, other, end, bound, kind, first, last in values:
            stream = touched[number] = self._stream(number, other, end, bound)
            if kind == CONTENT:
                self._found.update(stream.add_content((first, last)))
                continue
            if (first, last) != taken:
                taken, hints = (first, last), self._hints_in(first, last)
            self._found.update(stream.add(data[first - position : last - position], hints))
        self._next = bisect_left(self._hints, self._reader.position, self._next)
        for number, stream in touched.items():
            if stream.rests:
                self._sieve.rest(number, *stream.kept)
                del self._streams[number]
        for number in [each for each in self._streams if _EVERY < each < self._sieve.first]:
            self._found.update(self._streams.pop(number).new_secrets())

    def _stream(self, number: int, other: int, end: bytes, bound: int) -> _Stream:
        """Return a stream. A new one begins as another one, or with what the sieve has kept."""
        found = self._streams.get(number)
        if found is None:
            is_always = bool(self._patterns)
            found = _Stream(self._contents, is_of_place=number != _EVERY, is_always=is_always)
            self._streams[number] = found
            if other in self._streams and other != number:
                found.begin_as(self._streams[other])
            else:
                found.begin_with(end, bound)
        return found

    def _hints_in(self, start: int, end: int) -> list[int]:
        """Return where hints begin in a value, counted from its first byte; those up to its end are passed over."""
        hints = self._hints
        if self._next == len(hints) or hints[self._next] >= end:
            return []
        first = bisect_left(hints, start, self._next)
        self._next = bisect_left(hints, end, first)
        return [each - start for each in hints[first : self._next]]


class _Stream:
    """Values that are put together: the last ones, as far as they are needed."""

    def __init__(self, contents: Contents, *, is_of_place: bool, is_always: bool) -> None:
        self.is_collecting = is_always
        """Whether what comes next may belong to a secret."""
        self._contents = contents
        self._is_always = is_always
        """Whether secrets may have no hint."""
        self._is_of_place = is_of_place
        """Whether one place received them: then they go on where the one before ended."""
        self._data: bytes | bytearray = b""
        """Of bytes, if nothing is collected."""
        self._bounds: list[int] = []
        """Where values begin, except the first."""
        self._hints: list[int] = []
        self._unread = _NOWHERE
        """The part of the section with contents that was received and is read only when something else follows."""
        self._is_new = False
        """Whether something was added since `new_secrets`."""

    def add(self, value: bytes, hints: Sequence[int]) -> Iterable[bytes]:
        """Take the next value, in which hints are; return secrets that are known by now."""
        if not (hints or self.is_collecting or self._unread != _NOWHERE):  # nearly always
            before = self._data
            if not before or before[-1] << 8 | value[0] not in _PAIRS:
                self._keep_end(before, value)
                return ()
        if self._unread == _NOWHERE:
            return self._add(value, hints)
        return {*self._read(), *self._add(value, hints)}

    def add_content(self, content: Span) -> Iterable[bytes]:
        """Take the next value, which is a content.

        What is in contents of which one lies behind the other is found where their section is searched.
        """
        start, end = content
        if start == self._unread[1]:
            self._unread = self._unread[0], end
            return ()
        found = self._read()
        if self.is_collecting or (self._data and self._data[-1] in _ENDS):
            value = self._contents.read(start, min(start + WIDEST + 1, end))
            if value:
                found = {*found, *self._add(value, [at for at, _ in find(HINTS, value)])}
            self._unread = start + len(value), end
        else:
            self._unread = content
        return found

    def _read(self) -> Iterable[bytes]:
        """Take what was received of contents and not read: of much of it, its end."""
        start, end = self._unread
        self._unread = _NOWHERE
        first = max(end - WIDEST - _BEFORE, start)
        value = self._contents.read(first, end) if first < end else b""
        if not value:
            return ()
        hints = [at for at, _ in find(HINTS, value)]
        if first == start:
            return self._add(value, hints)
        found = self.secrets()
        self._begin_with(value, hints)
        return found

    def _add(self, value: bytes, hints: Sequence[int]) -> Iterable[bytes]:
        begun = self._hint_begun(value)
        if not self.is_collecting:
            before = self._data
            if not hints and begun < 0:
                self._keep_end(before, value)
                return ()
            self._data, self._hints, self.is_collecting = bytearray(before), [], True
        if begun >= 0:
            self._hints.append(begun)
        if len(value) > WIDEST:  # what begins before is over in it
            self._append(value[:WIDEST], ())
            found = {*self.secrets(), *_in_chunks(value)}
            self._begin_with(value, hints)
            return found
        self._append(value, hints)
        return self._checked() if len(self._data) - min(self._hints, default=0) > _ENOUGH else ()

    def _keep_end(self, before: bytes | bytearray, value: bytes) -> None:
        """Keep what the next value may need of one that has no hint, and of those before it."""
        if len(value) >= _BEFORE:
            self._data, self._bounds = value[-_BEFORE:], []
        else:
            self._data = before[-_BEFORE:] + value
            self._bounds = [len(self._data) - len(value)] if before else []

    def begin_with(self, end: bytes, bound: int) -> None:
        """Take over what is kept of values without hints, of which the last one begins at `bound` (0: there is one)."""
        self._data, self._bounds = bytearray(end) if self.is_collecting else end, [bound] if bound else []

    @property
    def rests(self) -> bool:
        """Whether nothing in it goes on."""
        return not self.is_collecting and self._unread == _NOWHERE

    @property
    def kept(self) -> tuple[bytes, int]:
        """What `begin_with` takes."""
        return bytes(self._data), self._bounds[-1] if self._bounds else 0

    def begin_as(self, other: _Stream) -> None:
        """Take over what another one has."""
        self._data, self.is_collecting, self._is_new = other._data[:], other.is_collecting, True
        self._bounds, self._hints, self._unread = [*other._bounds], [*other._hints], other._unread

    def secrets(self) -> Iterable[bytes]:
        """Return the secrets that are in several values."""
        return set(self._joined()) if self.is_collecting else ()

    def new_secrets(self) -> Iterable[bytes]:
        """Return the same; nothing if nothing was added since the last call."""
        is_new, self._is_new = self._is_new, False
        return self.secrets() if is_new else ()

    def _begin_with(self, value: bytes, hints: Sequence[int]) -> None:
        """Keep the end of a long value alone: what begins in its middle ends in it."""
        first = max(len(value) - WIDEST - _BEFORE, 0)
        self._data, self._bounds, self._hints, self.is_collecting = bytearray(), [], [], True
        self._append(value[first:], [each - first for each in hints if each >= first + _BEFORE])
        self._rest()

    def _checked(self) -> Iterable[bytes]:
        """Return the secrets so far, and keep what may go on."""
        found = self.secrets()
        self._cut(WIDEST + _BEFORE)
        self._rest()
        return found

    def _rest(self) -> None:
        """Collect nothing if no hint is left."""
        if not self._hints and not self._is_always:
            self.is_collecting = False
            self._cut(_BEFORE)
            self._data = bytes(self._data)

    def _append(self, data: bytes, hints: Sequence[int]) -> None:
        self._is_new = True
        end = len(self._data)
        if end:
            self._bounds.append(end)
        self._hints += (end + each for each in hints)
        self._data += data

    def _cut(self, size: int) -> None:
        """Keep only the last bytes, and the hints that have something before them."""
        first = max(len(self._data) - size, 0)
        self._data = bytearray(self._data[first:])
        self._bounds = [each - first for each in self._bounds if each > first]
        self._hints = [each - first for each in self._hints if each >= first + min(first, _BEFORE)]

    def _hint_begun(self, value: bytes) -> int:
        """Return where a hint begins of which the next value has the rest; -1: there is none."""
        data = self._data
        if not data or data[-1] << 8 | value[0] not in _PAIRS:
            return -1
        first = max(len(data) - _MOST_OF_HINT, 0)
        around = bytes(data[first:]) + value[:_MOST_OF_HINT]
        bound = len(data) - first
        return next((first + at for at, hint in find(HINTS, around) if at < bound < at + len(HINTS[hint])), -1)

    def _joined(self) -> Iterator[bytes]:
        data = bytes(self._data)
        yield from _in_chunks(data)
        if self._bounds:
            yield from self._across(data)
            yield from self._up_to_ends(data)

    def _up_to_ends(self, data: bytes) -> Iterator[bytes]:
        """Yield what is a secret if nothing follows its value: what does may be of another file or connection."""
        wanted: dict[int, int] = {}
        for hint in self._hints:
            first = bisect_right(self._bounds, hint)
            for bound in self._bounds[first : first + _MOST_BEHIND]:
                if bound - hint <= WIDEST:
                    wanted.setdefault(bound, max(hint - MOST_BEFORE, 0))
        for bound, low in wanted.items():
            for place in places_in(data[low:bound]):
                if low + place.at + len(place.text) == bound and place.counts(place.text):
                    yield place.text

    def _across(self, data: bytes) -> Iterator[bytes]:
        """Yield what is a secret across the end of a value."""
        for place in places_in(data):
            bounds = [
                each for each in self._bounds if place.since < each < place.until and self._may_be_in(place, each)
            ]
            if bounds and place.counts(place.text):
                yield place.text
            # What follows may be something else, that looks as if the value went on. Of tiny values it would be much.
            end = place.at + len(place.text)
            inside = [each for each in bounds if place.at < each < end]
            for bound in inside if len(inside) <= _MOST_ENDS else ():
                yield from _up_to(data[:bound], place)

    def _may_be_in(self, place: SecretPlace, bound: int) -> bool:
        """Whether a value may begin there: between a name and its value only if one place has received both."""
        return (
            self._is_of_place
            or bound > place.at
            or _is_hint(bytes(self._data[place.since : bound]), bytes(self._data[bound : bound + _MOST_OF_HINT]))
        )


def _in_chunks(data: bytes) -> Iterator[bytes]:
    """Yield the secrets in which one chunk of a body ends and the next one begins."""
    if _CHUNK.search(data) is None:
        return
    parts = _CHUNK.split(data)
    ends = list(accumulate(map(len, parts)))
    for place in places_in(b"".join(parts)):
        at = bisect_right(ends, place.at)
        if at < len(ends) - 1 and ends[at] < place.at + len(place.text) and place.counts(place.text):
            yield place.text


def _is_hint(begun: bytes, data: bytes) -> bool:
    """Whether something and what `data` begins with are a hint together."""
    at = bisect_left(_SORTED, begun)
    while at < len(_SORTED) and _SORTED[at].startswith(begun):
        if len(begun) < len(_SORTED[at]) and data.startswith(_SORTED[at][len(begun) :]):
            return True
        at += 1
    return False


def _up_to(data: bytes, found: SecretPlace) -> Iterator[bytes]:
    """Yield a secret if it is one, too, when it ends with `data`."""
    for place in places_in(data, start=found.since):
        if place.at == found.at and place.at + len(place.text) == len(data) and place.counts(place.text):
            yield place.text
