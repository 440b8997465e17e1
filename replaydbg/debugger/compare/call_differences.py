"""Two runs as trees of calls: which functions one of them called and the other did not, or not as often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from replaydbg.classes import dataclass
from replaydbg.debugger.calls.call_tree import CallEntry


@dataclass(frozen=True, slots=True)
class CallDifference:
    """A function that one run called and the other did not, or not as often; or a caller of such functions."""

    depth: int
    """How many callers it has among the rows before it."""
    left: CallEntry | None
    """None: only the right one called it."""
    right: CallEntry | None

    @property
    def entry(self) -> CallEntry:
        """The calls of one of the runs, the left one if it has any."""
        entry = self.left if self.left is not None else self.right
        assert entry is not None
        return entry

    @property
    def differs(self) -> bool:
        """Whether the calls differ, and not only what they called."""
        return self.left is None or self.right is None or self.left.count != self.right.count


def call_differences(left: Sequence[CallEntry], right: Sequence[CallEntry]) -> list[CallDifference]:
    """Return the rows of a tree that has the differences, each below its callers; nothing if there is none.

    Functions are compared by file, name and thread: those of edited code have other lines.
    """
    rows = list(_all_rows(left, right))
    kept: list[CallDifference] = []
    wanted = 0  # depth of the row that needs its caller
    for row in reversed(rows):
        if row.differs or row.depth < wanted:
            kept.append(row)
            wanted = row.depth
    return kept[::-1]


def _all_rows(left: Sequence[CallEntry], right: Sequence[CallEntry]) -> Iterator[CallDifference]:
    """Yield all pairs, each before what it called; not recursive, since calls are nested as deeply as a stack."""
    levels = [_paired(left, right)]
    while levels:
        pair = next(levels[-1], None)
        if pair is None:
            levels.pop()
            continue
        yield CallDifference(len(levels) - 1, *pair)
        if pair[0] is not None and pair[1] is not None:
            levels.append(_paired(pair[0].entries, pair[1].entries))


def _paired(
    left: Sequence[CallEntry], right: Sequence[CallEntry]
) -> Iterator[tuple[CallEntry | None, CallEntry | None]]:
    keys = [[(each.lane, each.code.file, each.code.function) for each in side] for side in (left, right)]
    for kind, first, last, begin, end in SequenceMatcher(a=keys[0], b=keys[1]).get_opcodes():
        if kind == "equal":
            yield from zip(left[first:last], right[begin:end], strict=True)
            continue
        yield from ((each, None) for each in left[first:last])
        yield from ((None, each) for each in right[begin:end])
