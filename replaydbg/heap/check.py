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
    problem = check_numbers(snapshot)
    if problem:
        raise Corrupt(path, problem)


def check_texts(*tables: Strings, path: str) -> None:
    """Raise Corrupt if texts do not lie one behind the other, or are none."""
    for table in tables:
        problem = _problem_of_texts(table)
        if problem:
            raise Corrupt(path, problem)


def check_numbers(s: Snapshot) -> str:
    """Return what is wrong with a snapshot; empty: nothing is."""
    nodes, edges = len(s.address), len(s.target)
    if not len(s.since) == len(s.type) == len(s.size) == len(s.value) == nodes or len(s.first_edge) != nodes + 1:
        return "the snapshot's columns are not equally long"
    if len(s.label) != edges or s.first_edge[0] != 0 or s.first_edge[-1] != edges or not _rises(s.first_edge):
        return "the snapshot's references do not add up"
    if not _rises_strictly(s.address):
        return "the snapshot's objects are not sorted"
    if edges and max(s.target) >= nodes:
        return "a reference in the snapshot leads nowhere"
    if nodes and max(s.type) >= len(s.types):
        return "an object in the snapshot has no type"
    if any(root.node >= nodes for root in s.roots):
        return "a root of the snapshot leads nowhere"
    return _problem_of_texts(s.strings) or _problem_of_numbers(s)


def _rises(column: array[int]) -> bool:
    return all(map(le, column, islice(column, 1, None)))


def _rises_strictly(column: array[int]) -> bool:
    return all(map(lt, column, islice(column, 1, None)))


def _problem_of_texts(table: Strings) -> str:
    last = table.ends[-1] if table.ends else 0
    if last != len(table.data) or not _rises(table.ends):
        return "the snapshot's texts do not lie one behind the other"
    try:
        table.data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return "a text of the snapshot is none"
    return ""


def _problem_of_numbers(s: Snapshot) -> str:
    texts, floats = len(s.strings), len(s.floats)
    for step in set(s.label):
        if kind_of(step) >= KINDS or (kind_of(step) == PLAIN and number_of(step) >= texts):
            return "a reference in the snapshot has no name"
    for value in set(s.value):
        kind, number = value & 3, value >> 2
        if (kind == TEXT and number >= texts) or (kind == FLOAT and number >= floats):
            return "a value in the snapshot is missing"
    return ""
