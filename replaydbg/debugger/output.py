"""When output was printed: a stream that does not lead to a terminal keeps it, and writes it later."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any

from replaydbg.debugger.values import Output


def printed(entries: Iterable[Sequence[Any]], starts: Sequence[int]) -> tuple[Output, ...]:
    """Return what was written to the standard streams in the order in which it was printed.

    `entries` are what left the program, as Output's fields, and what the streams were given: count of lines, stream,
    number of newlines. `starts`: for each event, how many lines had begun when it was consumed. A stream into which
    something was written besides (as by os.write) has more newlines than were given to it: its output is known by the
    moment at which it left.
    """
    written: dict[int, list[Output]] = {}
    given: dict[int, list[tuple[int, int]]] = {}
    for each in entries:
        if len(each) == 3:
            given.setdefault(each[1], []).append((each[0], each[2]))
        else:
            written.setdefault(each[2], []).append(Output(*each))
    found = (_by_lines(chunks, given.get(stream, []), starts) for stream, chunks in written.items())
    return tuple(sorted(chain.from_iterable(found), key=lambda each: each.count))


def _by_lines(chunks: list[Output], given: list[tuple[int, int]], starts: Sequence[int]) -> Iterable[Output]:
    data = b"".join(each.data for each in chunks)
    if not given or data.count(b"\n") > sum(newlines for _, newlines in given):
        return chunks
    counts = _counts(given, chunks[-1].count)
    timed = ((next(counts), line) for line in _lines(data))
    return [
        Output(count, bisect_left(starts, count), chunks[0].stream, b"".join(line for _, line in group))
        for count, group in groupby(timed, key=lambda each: each[0])
    ]


def _lines(data: bytes) -> list[bytes]:
    """Only newlines end them."""
    parts = data.split(b"\n")
    return [each + b"\n" for each in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _counts(given: list[tuple[int, int]], otherwise: int) -> Iterator[int]:
    """Yield, line by line, when it was ended; of what no newline ends, when something was printed last."""
    for count, newlines in given:
        for _ in range(newlines):
            yield count
    while True:
        yield given[-1][0] if given[-1][1] == 0 else otherwise
