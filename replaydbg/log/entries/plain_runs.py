"""Pass by many events at once: runs of records whose values have a simple form, which a regular expression finds.

It matches complete and valid records alone, so what it does not match is left to the decoder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from replaydbg.events.values import STAT_FIELDS
from replaydbg.log.coding import encode
from replaydbg.log.coding.decode import Cursor

MOST_RECORDS = 1 << 12
"""Of one run."""


def _one_of(tags: Iterable[int]) -> bytes:
    return b"[%s]" % b"".join(re.escape(bytes((tag,))) for tag in tags)


# At most 63 bits: whether a longer number is valid is for the decoder to find out.
_NUMBER = rb"[\x80-\xff]{0,8}+[\x00-\x7f]"
_VALUE = b"(?:%s|%s%s|%s.{8}|%s(?:%s){%d})" % (
    _one_of((encode.NONE, encode.FALSE, encode.TRUE, *range(encode.SMALL_INT, encode.SMALL_INT_END))),
    _one_of((encode.INT,)),
    _NUMBER,
    _one_of((encode.FLOAT,)),
    _one_of((encode.STAT,)),
    _NUMBER,
    len(STAT_FIELDS),
)


class Run(NamedTuple):
    """Records of events, one after the other."""

    end: int
    """Where they end in the bytes."""
    events: int
    """How many they are."""
    site: int
    """The number of the site of the last one."""
    arguments: list[int]
    """The numbers of their arguments, each once, in the order in which they come first."""


class PlainRuns:
    """The records of some sites."""

    def __init__(self, without: Iterable[int], with_arguments: Iterable[int]) -> None:
        """Take the numbers of sites whose events have no arguments, and of those whose events have; nothing else."""
        kinds = [_any_of({encode.varint(each << 2) for each in without})]
        kinds.append(_any_of({encode.varint(each << 2) for each in with_arguments}) + _NUMBER)
        record = b"(%s)%s" % (b"|".join(kinds), _VALUE)
        self._record = re.compile(record, re.DOTALL)
        self._run = re.compile(b"(?:%s){1,%d}+" % (record, MOST_RECORDS), re.DOTALL)

    def at(self, data: bytes, pos: int) -> Run | None:
        """Return the run that begins at a position; None: there is none."""
        whole = self._run.match(data, pos)
        if whole is None:
            return None
        records: list[bytes] = self._record.findall(data, pos, whole.end())
        arguments: dict[int, None] = {}
        for each in dict.fromkeys(records):
            cursor = Cursor(each)
            cursor.varint()
            if cursor.pos < len(each):
                arguments[cursor.varint()] = None
        last = Cursor(records[-1]).varint() >> 2
        return Run(whole.end(), len(records), last, list(arguments))


def _any_of(heads: set[bytes]) -> bytes:
    """Return an expression for any of some varints: none of them is the beginning of another one."""
    if not heads:
        return b"(?!)"
    by_first: dict[int, set[bytes]] = {}
    for each in heads:
        by_first.setdefault(each[0], set()).add(each[1:])
    ends = [first for first, rests in by_first.items() if rests == {b""}]
    more = [_one_of((first,)) + _any_of(rests) for first, rests in by_first.items() if rests != {b""}]
    return b"(?:%s)" % b"|".join(([_one_of(ends)] if ends else []) + more)
