"""Recognize records that repeat earlier ones byte for byte, so that checking a uniform log takes little time.

Whether a record is valid depends on its bytes and on the definitions before it, which are never withdrawn. So records
that were decoded once need not be decoded again wherever the same bytes follow. A log that compresses well, such as
that of a loop of ten million equal calls, consists of little else.
"""

from __future__ import annotations

from bisect import bisect_right

KEY = 16
"""Bytes by which a repetition is found: at most eight records. Shorter ones are not worth the search."""

_SHORT = 64
"""Repeated records up to this number are remembered as if they had been decoded: a loop's next round begins there."""


class Repeats:
    """The records decoded so far in `data`, a part of a log.

    They form stretches without gaps; what was skipped as a repetition is a gap.
    """

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self._starts: list[int] = []
        # The number of events before each of them.
        self._events: list[int] = []
        self._latest: dict[bytes, int] = {}
        # The index at which each stretch but the first begins.
        self._stretches: list[int] = []

    def add(self, start: int, events: int) -> None:
        """Add a record that begins at `start`, after `events` events, where the one before it ends."""
        self._latest[self.data[start : start + KEY]] = len(self._starts)
        self._starts.append(start)
        self._events.append(events)

    def end_stretch(self, end: int, events: int) -> None:
        """End the stretch at `end`: the record there cannot be repeated, or was skipped."""
        self._starts.append(end)
        self._events.append(events)
        self._stretches.append(len(self._starts))

    def skip(self, start: int, events: int) -> tuple[int, int]:
        """Return the end of the records from `start` on that repeat earlier ones, and the number of events there.

        All records before `start` were added or skipped.
        """
        key = self.data[start : start + KEY]
        first = self._latest.get(key) if len(key) == KEY else None
        if first is None:
            return start, events
        source = self._starts[first]
        equal = self._equal(source, start)
        stretch = bisect_right(self._stretches, first)
        if stretch < len(self._stretches):
            last = bisect_right(self._starts, source + equal, first, self._stretches[stretch]) - 1
            end = start + self._starts[last] - source
            after = events + self._events[last] - self._events[first]
            if last - first <= _SHORT:
                self._repeat(first, last, start - source, events - self._events[first])
                return end, after
        else:
            # The source's stretch ends where the repetition begins, so it may go round many times.
            period = start - source
            rounds, rest = divmod(equal, period)
            last = bisect_right(self._starts, source + rest, first) - 1
            end = start + rounds * period + self._starts[last] - source
            after = events + rounds * (events - self._events[first]) + self._events[last] - self._events[first]
        if end > start:
            self.end_stretch(start, events)
        return end, after

    def _repeat(self, first: int, last: int, further: int, more: int) -> None:
        """Add the records from `first` to before `last` again, `further` bytes and `more` events on."""
        if first < last:
            self._latest[self.data[self._starts[first] : self._starts[first] + KEY]] = len(self._starts)
        self._starts += [each + further for each in self._starts[first:last]]
        self._events += [each + more for each in self._events[first:last]]

    def _equal(self, one: int, other: int) -> int:
        """Return how many bytes from `one` on equal those from `other` on."""
        data, size, equal = self.data, 4 * KEY, KEY
        most = len(data) - other
        # Twice as many each time, and half as many after the first difference: each step is one comparison in C.
        while (
            equal + size <= most
            and data[one + equal : one + equal + size] == data[other + equal : other + equal + size]
        ):
            equal += size
            size *= 2
        while size:
            if (
                equal + size <= most
                and data[one + equal : one + equal + size] == data[other + equal : other + equal + size]
            ):
                equal += size
            size //= 2
        return equal
