"""Validate the columns of a snapshot: data read from a file is used without further checks."""

from __future__ import annotations

from replaydbg.errors import Corrupt
from replaydbg.heap.labels import KINDS, MASK, PLAIN, kind_of, lowest_bytes
from replaydbg.heap.snapshot import FLOAT, TEXT, Snapshot, Strings
from replaydbg.heap.walks.kernel import KERNEL


def check(snapshot: Snapshot, path: str) -> None:
    """Raise Corrupt, with `path`, if a number in the columns is out of range."""
    problem = check_numbers(snapshot)
    if problem:
        raise Corrupt(path, problem)


def check_texts(*tables: Strings, path: str) -> None:
    """Raise Corrupt if texts are not stored one after the other, or are invalid."""
    for table in tables:
        problem = _problem_of_texts(table)
        if problem:
            raise Corrupt(path, problem)


def check_numbers(s: Snapshot, *, is_summed: bool = False) -> str:
    """Return the problem of a snapshot; empty if there is none.

    `is_summed`: the columns that must increase were added up from differences, and do.
    """
    nodes, edges = len(s.address), len(s.target)
    if not len(s.since) == len(s.type) == len(s.size) == len(s.value) == nodes or len(s.first_edge) != nodes + 1:
        return "the snapshot's columns are not equally long"
    if len(s.label) != edges or s.first_edge[0] != 0 or s.first_edge[-1] != edges:
        return "the snapshot's references do not add up"
    if not is_summed and not KERNEL.rises(s.first_edge, is_strict=False):
        return "the snapshot's references do not add up"
    if not KERNEL.rises(s.address, is_strict=True):
        return "the snapshot's objects are not sorted"
    if KERNEL.highest(s.target, 0, 0) >= nodes:
        return "a reference in the snapshot leads nowhere"
    if KERNEL.highest(s.type, 0, 0) >= len(s.types):
        return "an object in the snapshot has no type"
    if any(root.node >= nodes for root in s.roots):
        return "a root of the snapshot leads nowhere"
    return _problem_of_texts(s.strings, is_summed=is_summed) or _problem_of_numbers(s)


def _problem_of_texts(table: Strings, *, is_summed: bool = False) -> str:
    last = table.ends[-1] if table.ends else 0
    if last != len(table.data) or not (is_summed or KERNEL.rises(table.ends, is_strict=False)):
        return "the snapshot's texts are not contiguous"
    try:
        table.data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return "a text of the snapshot is not valid"
    return ""


def _problem_of_numbers(s: Snapshot) -> str:
    texts, floats = len(s.strings), len(s.floats)
    kinds = lowest_bytes(s.label)
    if kinds.translate(None, bytes(byte for byte in range(256) if kind_of(byte) < KINDS)):
        return "a reference in the snapshot has an unknown kind"
    if KERNEL.highest(s.label, MASK, PLAIN) >> 4 >= texts:
        return "a reference in the snapshot has no name"
    if KERNEL.highest(s.value, 3, TEXT) >> 2 >= texts:
        return "a value in the snapshot is missing"
    if KERNEL.highest(s.value, 3, FLOAT) >> 2 >= floats:
        return "a value in the snapshot is missing"
    return ""
