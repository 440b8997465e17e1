"""The walks over a million nodes in two equivalent versions: in Python, and in C if the extension is built."""

from __future__ import annotations

import importlib
from array import array
from typing import Any, Protocol, TypeAlias

from replaydbg.heap.snapshot import Strings
from replaydbg.heap.walks import column_prediction, column_ranges, graph_walks, object_comparison, path_matching
from replaydbg.heap.walks.object_comparison import Columns, Matching

Column: TypeAlias = "array[int]"
AnyColumn: TypeAlias = "array[Any]"
_Graph: TypeAlias = "tuple[Column, Column]"


class Kernel(Protocol):
    """The walks over all nodes and edges. The columns are those of graph_walks.py and object_comparison.py."""

    def strong(self, first_edge: Column, target: Column, label: Column) -> Column:
        """Return the targets of all edges, where weak edges are turned into loops."""

    def tree(self, first_edge: Column, target: Column, label: Column, roots: Column, preferred: int) -> _Graph:
        """Return parents and edges of the best paths from the roots; the first `preferred` roots take precedence."""

    def dominators(self, first_edge: Column, target: Column, roots: Column) -> _Graph:
        """Return immediate dominators, and an order in which they come first."""

    def retained(self, dominator: Column, order: Column, size: Column) -> Column:
        """Return the retained size of each node, and at last the sum of all."""

    def retained_by(
        self, dominator: Column, order: Column, group: Column, retained: Column, chosen: bytes, groups: int
    ) -> Column:
        """Return the common retained size of the chosen nodes of each group."""

    def missing(self, column: Column) -> bytes:
        """Return for each entry of a column whether it is UNREACHED."""

    def census(self, group: Column, size: Column, chosen: bytes, groups: int) -> _Graph:
        """Return the number of chosen nodes in each group, and their bytes."""

    def edges_to(self, target: Column, chosen: bytes) -> Column:
        """Return the edges that lead to chosen nodes."""

    def tops(self, dominator: Column, chosen: bytes) -> Column:
        """Return the chosen nodes that no other chosen node dominates."""

    def origins(
        self, tree: _Graph, label: Column, type: Column, strings: Strings, of_root: bytes, of_type: bytes
    ) -> bytes:
        """Return the origin of each node, as a number, derived from those of roots and types; 0: the program's own."""

    def translate(self, before: Strings, after: Strings) -> Column:
        """Return for each text of a table its index in another one, or UNREACHED."""

    def match(self, before: Column, after: Column, since: Column, number: int) -> _Graph:
        """Return which nodes are the same, in both directions."""

    def match_paths(self, before: Columns, after: Columns, types: Column, texts: Column, roots: Column) -> _Graph:
        """Return which nodes of two runs are the same, in both directions."""

    def unlike(self, before: Columns, after: Columns, matching: Matching) -> Column:
        """Return the matched nodes before that have changed."""

    def degrees(self, first_edge: Column) -> Column:
        """Return the number of edges of each node."""

    def other_bits(self, one: AnyColumn, other: AnyColumn) -> bytes:
        """Return the bits that differ between two columns. Raises ValueError if they are not equally long."""

    def renumbered(self, column: Column, table: Column, mask: int, kind: int, shift: int) -> Column:
        """Return a column whose number above the lowest `shift` bits is replaced by its entry in the table.

        Only where the bits under `mask` are `kind`. Raises IndexError.
        """

    def rises(self, column: AnyColumn, *, is_strict: bool) -> bool:
        """Whether no number of a column is lower than the one before it; if strict, nor equal to it."""

    def highest(self, column: Column, mask: int, kind: int) -> int:
        """Return the highest number whose bits under `mask` are `kind`; -1: there is none."""


class PythonKernel:
    """The walks in Python: a million nodes take seconds."""

    strong = staticmethod(graph_walks.strong)
    tree = staticmethod(graph_walks.tree)
    dominators = staticmethod(graph_walks.dominators)
    retained = staticmethod(graph_walks.retained)
    retained_by = staticmethod(graph_walks.retained_by)
    missing = staticmethod(graph_walks.missing)
    census = staticmethod(graph_walks.census)
    edges_to = staticmethod(graph_walks.edges_to)
    tops = staticmethod(graph_walks.tops)
    origins = staticmethod(graph_walks.origins)
    translate = staticmethod(object_comparison.translate)
    match = staticmethod(object_comparison.match)
    match_paths = staticmethod(path_matching.match_paths)
    unlike = staticmethod(object_comparison.unlike)
    degrees = staticmethod(column_prediction.degrees)
    other_bits = staticmethod(column_prediction.other_bits)
    renumbered = staticmethod(column_prediction.renumbered)
    rises = staticmethod(column_ranges.rises)
    highest = staticmethod(column_ranges.highest)


class NativeKernel:
    """The walks in C."""

    def __init__(self, module: Any) -> None:
        """Wrap `module`, which is replaydbg.native._graph."""
        self._c = module

    def strong(self, first_edge: Column, target: Column, label: Column) -> Column:
        """Return the targets of all edges, where weak edges are turned into loops."""
        return array("I", self._c.strong(first_edge, target, label))

    def tree(self, first_edge: Column, target: Column, label: Column, roots: Column, preferred: int) -> _Graph:
        """Return parents and edges of the best paths from the roots; the first `preferred` roots take precedence."""
        return _both(self._c.tree(first_edge, target, label, roots, preferred))

    def dominators(self, first_edge: Column, target: Column, roots: Column) -> _Graph:
        """Return immediate dominators, and an order in which they come first."""
        return _both(self._c.dominators(first_edge, target, roots))

    def retained(self, dominator: Column, order: Column, size: Column) -> Column:
        """Return the retained size of each node, and at last the sum of all."""
        return array("Q", self._c.retained(dominator, order, size))

    def retained_by(
        self, dominator: Column, order: Column, group: Column, retained: Column, chosen: bytes, groups: int
    ) -> Column:
        """Return the common retained size of the chosen nodes of each group."""
        return array("Q", self._c.retained_by(dominator, order, group, retained, chosen, groups))

    def missing(self, column: Column) -> bytes:
        """Return for each entry of a column whether it is UNREACHED."""
        found: bytes = self._c.missing(column)
        return found

    def census(self, group: Column, size: Column, chosen: bytes, groups: int) -> _Graph:
        """Return the number of chosen nodes in each group, and their bytes."""
        counts, sizes = self._c.census(group, size, chosen, groups)
        return array("Q", counts), array("Q", sizes)

    def edges_to(self, target: Column, chosen: bytes) -> Column:
        """Return the edges that lead to chosen nodes."""
        return array("I", self._c.edges_to(target, chosen))

    def tops(self, dominator: Column, chosen: bytes) -> Column:
        """Return the chosen nodes that no other chosen node dominates."""
        return array("I", self._c.tops(dominator, chosen))

    def origins(
        self, tree: _Graph, label: Column, type: Column, strings: Strings, of_root: bytes, of_type: bytes
    ) -> bytes:
        """Return the origin of each node, as a number, derived from those of roots and types; 0: the program's own."""
        found: bytes = self._c.origins(*tree, label, type, strings.data, strings.ends, of_root, of_type)
        return found

    def translate(self, before: Strings, after: Strings) -> Column:
        """Return for each text of a table its index in another one, or UNREACHED."""
        return array("I", self._c.translate(before.data, before.ends, after.data, after.ends))

    def match(self, before: Column, after: Column, since: Column, number: int) -> _Graph:
        """Return which nodes are the same, in both directions."""
        return _both(self._c.match(before, after, since, number))

    def match_paths(self, before: Columns, after: Columns, types: Column, texts: Column, roots: Column) -> _Graph:
        """Return which nodes of two runs are the same, in both directions."""
        return _both(self._c.match_paths(tuple(before), tuple(after), types, texts, roots))

    def unlike(self, before: Columns, after: Columns, matching: Matching) -> Column:
        """Return the matched nodes before that have changed."""
        return array("I", self._c.unlike(tuple(before), tuple(after), *matching))

    def degrees(self, first_edge: Column) -> Column:
        """Return the number of edges of each node."""
        return array("I", self._c.degrees(first_edge))

    def other_bits(self, one: AnyColumn, other: AnyColumn) -> bytes:
        """Return the bits that differ between two columns. Raises ValueError if they are not equally long."""
        found: bytes = self._c.other_bits(one, other)
        return found

    def renumbered(self, column: Column, table: Column, mask: int, kind: int, shift: int) -> Column:
        """Return a column whose number above the lowest `shift` bits is replaced by its entry in the table.

        Raises IndexError.
        """
        return array("I", self._c.renumbered(column, table, mask, kind, shift))

    def rises(self, column: AnyColumn, *, is_strict: bool) -> bool:
        """Whether no number of a column is lower than the one before it; if strict, nor equal to it."""
        found: bool = self._c.rises(column, column.itemsize, is_strict)
        return found

    def highest(self, column: Column, mask: int, kind: int) -> int:
        """Return the highest number whose bits under `mask` are `kind`; -1: there is none."""
        found: int = self._c.highest(column, mask, kind)
        return found


def _both(columns: tuple[bytes, bytes]) -> _Graph:
    return array("I", columns[0]), array("I", columns[1])


def load_kernel() -> Kernel:
    """Return the native kernel, or the one in Python if that was not built."""
    try:
        return NativeKernel(importlib.import_module("replaydbg.native._graph"))
    except ImportError:
        # A checkout without the extension can open recordings, too.
        return PythonKernel()


KERNEL: Kernel = load_kernel()
"""The kernel in use."""
