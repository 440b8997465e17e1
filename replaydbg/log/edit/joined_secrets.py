"""Secrets of which a program received a part, and then the rest: no value of the log has the form of one.

The values that the same line received, one after the other, are put together; those of calls with equal arguments, as
of one of several connections; and those of all lines. There the rules are asked, only around their hints: most values
have none, and are passed over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from replaydbg.log.entries.leaves import CONTENT, LeafReader, Walked
from replaydbg.native._words import find
from replaydbg.secrets.secret_rules import HINTS, MOST_BEFORE, WIDEST, SecretPlace, places_in
from replaydbg.secrets.user_patterns import current_patterns, searching_for

_MOST_OF_HINT = max(map(len, HINTS)) - 1
"""Bytes of a hint that a value can end with, while the next one has the rest."""
_BEFORE = MOST_BEFORE + _MOST_OF_HINT
"""Bytes of a value without hints that the next one may need."""
_ENOUGH = 4 * WIDEST
"""Bytes behind a hint at which they are searched: less often, or tiny values would be searched again and again."""
_MOST_ENDS = 4
"""Values in which a secret may go on, up to which it is looked for one that ends earlier."""
_MOST_STREAMS = 1 << 16
"""Places and different arguments whose values are put together: the paths of files may all be different."""
_MOST_APART = 1 << 12
"""Pairs of contents apart from each other that are looked at."""
_SORTED = sorted(HINTS)
_ENDS = frozenset(b"".join(each[:-1] for each in HINTS))
"""The bytes that a value may end with and begin a hint."""
_GOES_ON = frozenset(b"".join(each[1:] for each in HINTS))

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.edit.content_parts import Pieces

_Key = tuple[int, int, int]
"""0 and a place of calls, or a gate and arguments of its calls; and which of the values of a record."""
Span = tuple[int, int]
"""The first byte of a content in its section, and the one behind its last."""


class JoinedSecrets:
    """The secrets of one log that are in several of its values, as far as it was read."""

    def __init__(self, branch: int = 0) -> None:
        """The user's patterns that are in effect now are in effect for all that follows.

        `branch`: so many bytes behind the header are those of a parent, in whose log they are searched. Of them only
        the last ones count here, with which something may go on.
        """
        self._patterns = current_patterns()
        self._first = max(branch - WIDEST, 0)
        self._reader = LeafReader(self._first)
        self._streams: dict[_Key, _Stream] = {}
        self._contents: dict[_Key, Span] = {}
        """The last content of each."""
        self._every = _Stream(is_of_place=False, is_always=bool(self._patterns))
        """The first value of each record. While one place receives all, without hints, its own stream is enough."""
        self._last: _Stream | None = None
        """The stream of the last value."""
        self._hints: list[int] = []
        """Where hints begin in the last pieces."""
        self._next = 0
        """The index of the first one that is behind the last value."""
        self._tail, self._length = b"", 0
        self._found: set[bytes] = set()
        self._apart: list[tuple[Span, Span]] = []
        """Contents of which one call after the other received, and which do not lie one behind the other."""

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
            self._take_values(*self._reader.walked(piece))

    def found(self) -> set[bytes]:
        """Return the secrets that were found so far."""
        self._reader.wait_for_no_more()
        with searching_for(self._patterns):
            self._take_values(*self._reader.walked(b""))
            for each in (self._every, *self._streams.values()):
                self._found.update(each.secrets())
        return self._found

    def _take_values(self, data: bytes, position: int, leaves: list[Walked]) -> None:
        for kind, gate, site, arguments, number, start, end in leaves:
            if not site or start == end:
                continue
            if kind == CONTENT:
                self._take_content(gate, site, arguments, (start, end))
                continue
            hints = self._hints_in(start, end)
            value = data[start - position : end - position]
            stream = self._stream((0, site, number))
            if not number:  # what else a record has, such as the names in a directory, goes on with nothing
                if self._every.is_collecting or stream is not self._last:
                    if not self._every.is_collecting and self._last is not None:
                        self._every.begin_as(self._last)
                    self._found.update(self._every.add(value, hints))
                self._last = stream
            self._found.update(stream.add(value, hints))
            if arguments:
                self._found.update(self._stream((gate, arguments, number)).add(value, hints))

    def _stream(self, key: _Key) -> _Stream:
        found = self._streams.get(key)
        if found is None:
            if len(self._streams) == _MOST_STREAMS:
                del self._streams[next(iter(self._streams))]
            found = self._streams[key] = _Stream(is_of_place=True, is_always=bool(self._patterns))
        return found

    def _take_content(self, gate: int, site: int, arguments: int, content: Span) -> None:
        """Note a content that goes on with another one; where it lies behind that one, its section is searched."""
        for key in ((0, site, 0), (gate, arguments, 0)):
            before = self._contents.get(key)
            if before is not None and before[1] != content[0] and len(self._apart) < _MOST_APART:
                self._apart.append((before, content))
            self._contents[key] = content

    def in_contents(self, pieces: Pieces) -> set[bytes]:
        """Return the secrets that begin in one content and go on in another, where the section has something between.

        `pieces` returns the sections of the log.
        """
        if not self._apart:
            return set()
        # Imported here: it takes two large files that a program reads at the same time.
        from replaydbg.log.edit.content_parts import ContentParts

        ends = {(max(end - WIDEST, start), end) for (start, end), _ in self._apart}
        begins = {(start, min(start + WIDEST, end)) for _, (start, end) in self._apart}
        reader = ContentParts(pieces, ())
        data = {each: reader.read(*each) for each in sorted(ends | begins)}
        found: set[bytes] = set()
        with searching_for(self._patterns):
            for (first, end), (start, last) in self._apart:
                both = _Stream(is_of_place=True, is_always=True)
                both.add(data[max(end - WIDEST, first), end], ())
                both.add(data[start, min(start + WIDEST, last)], ())
                found.update(both.secrets())
        return found

    def _hints_in(self, start: int, end: int) -> Sequence[int]:
        """Return where hints begin in a value, counted from its first byte; those up to its end are passed over."""
        hints = self._hints
        if self._next == len(hints) or hints[self._next] >= end:
            return ()
        first = bisect_left(hints, start, self._next)
        self._next = bisect_left(hints, end, first)
        return [each - start for each in hints[first : self._next]]


class _Stream:
    """Values that are put together: the last ones, as far as they are needed."""

    def __init__(self, *, is_of_place: bool, is_always: bool) -> None:
        self.is_collecting = is_always
        """Whether what comes next may belong to a secret."""
        self._is_always = is_always
        """Whether secrets may have no hint."""
        self._is_of_place = is_of_place
        """Whether one place received them: then they go on where the one before ended."""
        self._data: bytes | bytearray = b""
        """Of bytes, if nothing is collected."""
        self._bounds: list[int] = []
        """Where values begin, except the first."""
        self._hints: list[int] = []

    def add(self, value: bytes, hints: Sequence[int]) -> Iterable[bytes]:
        """Take the next value, in which hints are; return secrets that are known by now."""
        if not self.is_collecting:
            before = self._data
            is_begun = before and before[-1] in _ENDS and value[0] in _GOES_ON and self._ends_in_a_hint(value)
            if not hints and not is_begun:  # nearly always
                self._data = value[-_BEFORE:] if len(value) >= _BEFORE else before[-_BEFORE:] + value
                self._bounds = [len(self._data) - len(value)] if len(self._data) > len(value) else []
                return ()
            self._data, self.is_collecting = bytearray(before), True
            self._hints = [max(len(before) - _MOST_OF_HINT, 0)] if is_begun else []
        if len(value) > WIDEST:  # what begins before is over in it
            return self._begin_anew(value, hints)
        self._append(value, hints)
        return self._checked() if len(self._data) - min(self._hints, default=0) > _ENOUGH else ()

    def begin_as(self, other: _Stream) -> None:
        """Take over what another one has."""
        self._data, self.is_collecting = other._data[:], other.is_collecting
        self._bounds, self._hints = [*other._bounds], [*other._hints]

    def secrets(self) -> Iterable[bytes]:
        """Return the secrets that are in several values."""
        return set(self._joined()) if self.is_collecting and self._bounds else ()

    def _begin_anew(self, value: bytes, hints: Sequence[int]) -> Iterable[bytes]:
        """Take a long value, in which only the hints near its end are of interest."""
        self._append(value[:WIDEST], ())
        found = self.secrets()
        first = max(len(value) - WIDEST - _BEFORE, 0)
        self._data, self._bounds, self._hints = bytearray(), [], []
        self._append(value[first:], [each - first for each in hints if each >= first + _BEFORE])
        self._rest()
        return found

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

    def _ends_in_a_hint(self, value: bytes) -> bool:
        """Whether a hint begins in the last value and ends in the next one."""
        tail = bytes(self._data[-_MOST_OF_HINT:])
        return any(_is_hint(tail[at:], value) for at in range(len(tail)))

    def _joined(self) -> Iterator[bytes]:
        data = bytes(self._data)
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
