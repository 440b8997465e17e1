"""Whether the columns of a snapshot fit together: what is read from a file is used without a further look."""

from __future__ import annotations

from array import array
from itertools import islice
from operator import le, lt

from replaydbg.errors import Corrupt
from replaydbg.heap.labels import KINDS, PLAIN, kind_of, number_of
from replaydbg.heap.snapshot import FLOAT, TEXT, Snapshot, Strings


def check(snapshot: Snapshot, path: str) -> None:
    """Raise Corrupt, with `path`, if a number in the columns leads nowhere."""
    problem = _problem(snapshot)
    if problem:
        raise Corrupt(path, f"in a snapshot {problem}")


def check_texts(*tables: Strings, path: str) -> None:
    """Raise Corrupt if texts do not lie one behind the other, or are none."""
    for table in tables:
        if table.ends and (table.ends[-1] != len(table.data) or not _rises(table.ends, le)):
            raise Corrupt(path, "in a snapshot the texts do not lie one behind the other")
        if not table.ends and table.data:
            raise Corrupt(path, "in a snapshot a text has no end")
        try:
            table.data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise Corrupt(path, "in a snapshot a text is none") from None


def _rises(column: array[int], how: object) -> bool:
    compare = lt if how is lt else le
    return all(map(compare, column, islice(column, 1, None)))


def _problem(s: Snapshot) -> str:
    nodes, edges = len(s.address), len(s.target)
    if not len(s.since) == len(s.type) == len(s.size) == len(s.value) == nodes or len(s.first_edge) != nodes + 1:
        return "the columns are not equally long"
    if len(s.label) != edges or s.first_edge[0] != 0 or s.first_edge[-1] != edges or not _rises(s.first_edge, le):
        return "the references do not add up"
    if not _rises(s.address, lt):
        return "the objects are not sorted"
    if edges and max(s.target) >= nodes:
        return "a reference leads nowhere"
    if nodes and max(s.type) >= len(s.types):
        return "an object has no type"
    if any(root.node >= nodes for root in s.roots):
        return "a root leads nowhere"
    return _problem_of_numbers(s)


def _problem_of_numbers(s: Snapshot) -> str:
    texts, floats = len(s.strings), len(s.floats)
    for step in set(s.label):
        if kind_of(step) >= KINDS or (kind_of(step) == PLAIN and number_of(step) >= texts):
            return "a reference has no name"
    for value in set(s.value):
        kind, number = value & 3, value >> 2
        if (kind == TEXT and number >= texts) or (kind == FLOAT and number >= floats):
            return "a value is missing"
    return ""
