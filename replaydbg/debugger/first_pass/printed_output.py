"""The moments at which output was printed: a buffered stream writes it later."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

from replaydbg.debugger.session_results import Output


def printed(entries: Iterable[Sequence[Any]], starts: Sequence[int]) -> tuple[Output, ...]:
    """Return output to the standard streams in the order in which it was printed.

    `entries` are writes of the program: count of lines, event, stream and data; and prints to its streams: count of
    lines, stream, number of newlines, count at the line of the function that printed, point of the line. `starts`: for
    each event, the number of lines that had begun when it was consumed. A stream with other writes (as by os.write) has
    more newlines than were printed: its output is dated by the moment at which it was written.
    """
    written: dict[int, list[Output]] = {}
    given: dict[int, list[_Given]] = {}
    for each in entries:
        if isinstance(each[3], bytes):
            written.setdefault(each[2], []).append(Output(each[0], each[1], each[2], each[3], line=each[0]))
        else:
            given.setdefault(each[1], []).append(_Given(each[0], each[2], each[3], each[4]))
    found = (_by_lines(chunks, given.get(stream, []), starts) for stream, chunks in written.items())
    return tuple(sorted(chain.from_iterable(found), key=lambda each: each.count))


class _Given(NamedTuple):
    at: int
    newlines: int
    line: int
    point: int


def _by_lines(chunks: list[Output], given: list[_Given], starts: Sequence[int]) -> Iterable[Output]:
    data = b"".join(each.data for each in chunks)
    if not given or data.count(b"\n") > sum(each.newlines for each in given):
        return chunks
    counts = _counts(given, chunks[-1].count)
    timed = ((next(counts), text) for text in _lines(data))
    return [
        Output(count, bisect_left(starts, count), chunks[0].stream, b"".join(text for _, text in group), line, point)
        for (count, line, point), group in groupby(timed, key=lambda each: each[0])
    ]


def _lines(data: bytes) -> list[bytes]:
    """Only newlines end them."""
    parts = data.split(b"\n")
    return [each + b"\n" for each in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _counts(given: list[_Given], otherwise: int) -> Iterator[tuple[int, int, int]]:
    """Yield, line by line, when it was ended; of what no newline ends, when something was printed last."""
    for each in given:
        for _ in range(each.newlines):
            yield each.at, each.line, each.point
    last = given[-1]
    while True:
        yield (last.at, last.line, last.point) if last.newlines == 0 else (otherwise, otherwise, 0)
