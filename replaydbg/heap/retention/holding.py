"""The owners of an object: its best strong path from a root, its holders, and its retained size."""

from __future__ import annotations

import heapq
import sys
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from replaydbg.classes import dataclass
from replaydbg.heap.labels import INDEX, MASK, MEMBER, PLAIN, VALUE, is_weak, lowest_bytes
from replaydbg.heap.snapshot import FRAME_TYPE, Root, Snapshot
from replaydbg.heap.walks.graph_walks import UNREACHED, is_attribute
from replaydbg.heap.walks.kernel import KERNEL, Column, Kernel
from replaydbg.installed import PACKAGES, is_installed

MINE = "mine"
STANDARD = "standard"
LIBRARY = "library"
"""The origins of objects: the program's own code, the standard library, other installed packages."""

ORIGINS = (MINE, STANDARD, LIBRARY)

MOST_STEPS = 30
"""Maximum number of steps of a path that are written out; a longer path is abbreviated in the middle."""

MAIN = "__main__"
_NAMED = {
    "builtins.function": "function",
    "builtins.builtin_function_or_method": "function",
    "builtins.type": "class",
    "builtins.module": "module",
}
"""Types whose objects are shown by their name."""
_KINDS = bytes(byte & MASK for byte in range(256))
_ANYBODYS = ("builtins", MAIN)


@dataclass(frozen=True, slots=True)
class Holder:
    """An object that refers to another one."""

    path: str
    """In source syntax, up to the object that is held; for a frame, with the frame after it."""
    step: str
    """The last step alone."""
    type: str
    """The type of the holder."""
    node: int
    """The node of the holder."""
    is_weak: bool
    """Whether the reference is weak and keeps nothing alive."""
    frees: int
    """Bytes that cutting this reference alone would free."""


@dataclass(frozen=True, slots=True)
class RetainedGroup:
    """A new or removed object with everything that it alone held, which no other new or removed object alone held."""

    path: str
    type: str
    text: str
    """The object's value, or its type and number of items."""
    retained: int
    address: int
    origin: str


def is_of_lane(label: str) -> bool:
    """Whether a root belongs to a lane, as a call does; others are modules."""
    return label.startswith("thread ")


class Holding:
    """Queries over the graph of one snapshot. The first query of a kind walks over all of it, and caches the result."""

    def __init__(self, snapshot: Snapshot, kernel: Kernel = KERNEL) -> None:
        self.snapshot = snapshot
        self.kernel = kernel
        self._depths: dict[int, int] = {len(snapshot): 0}
        self._types: dict[str, str] = {}
        self._items: dict[int, int] = {}

    @cached_property
    def strong(self) -> Column:
        """The targets of all edges, where weak edges are turned into loops."""
        return self.kernel.strong(self.snapshot.first_edge, self.snapshot.target, self.snapshot.label)

    @cached_property
    def roots(self) -> Column:
        """The nodes of `named_roots`."""
        return array("I", [root.node for root in self.named_roots])

    @cached_property
    def named_roots(self) -> tuple[Root, ...]:
        """The roots, modules first: a path from a module is still valid when the calls have returned."""
        return tuple(sorted(self.snapshot.roots, key=lambda root: is_of_lane(root.label)))

    @property
    def modules(self) -> tuple[str, ...]:
        """The names of the modules that are roots."""
        return tuple(root.label for root in self.snapshot.roots if not is_of_lane(root.label))

    @cached_property
    def tree(self) -> tuple[Column, Column]:
        """The tree of the best paths: parents, and the edges from them."""
        modules = sum(not is_of_lane(root.label) for root in self.snapshot.roots)
        return self.kernel.tree(self.snapshot.first_edge, self.strong, self.snapshot.label, self.roots, modules)

    @cached_property
    def dominators(self) -> tuple[Column, Column]:
        """Immediate dominators, and an order in which they come first."""
        return self.kernel.dominators(self.snapshot.first_edge, self.strong, self.roots)

    @cached_property
    def retained(self) -> Column:
        """Bytes that freeing each object would free; the last entry is the sum of all that is held."""
        return self.kernel.retained(*self.dominators, self.snapshot.size)

    # ---- paths ----

    def is_held(self, node: int) -> bool:
        """Whether a strong path leads to a node; if false, only weak references do."""
        return self.tree[0][node] != UNREACHED

    def depth(self, node: int) -> int:
        """Return the number of steps of the best path to a node; a root has 1."""
        parent = self.tree[0]
        way = []
        while node not in self._depths:
            if parent[node] == UNREACHED:
                return UNREACHED
            way.append(node)
            node = parent[node]
        depth = self._depths[node]
        for each in reversed(way):
            depth += 1
            self._depths[each] = depth
        return depth

    def path(self, node: int) -> str:
        """Return the best strong path to a node, in source syntax: the shortest of those with the most names."""
        return self._path(node, ())

    def path_of(self, node: int, *edges: int) -> str:
        """Return the path to `node` extended by steps."""
        return self._path(node, edges)

    def _path(self, node: int, more: tuple[int, ...]) -> str:
        snapshot = self.snapshot
        parent, via = self.tree
        if parent[node] == UNREACHED:
            edges = list(more)
            text, root = f"<{snapshot.type_name(node)} at 0x{snapshot.address[node]:x}, unreferenced>", None
        else:
            edges = list(reversed(more))
            while parent[node] != len(snapshot):
                edges.append(via[node])
                node = parent[node]
            edges.reverse()
            root = self.named_roots[via[node]]
            text = root.label
        if root is None or not is_of_lane(text):
            first = snapshot.step_text(snapshot.label[edges[0]]) if edges and text == MAIN else ""
            # Variables of the program itself have the names from its source.
            is_variable = first.startswith(".") and first[1:].isidentifier()
            return self._steps(first[1:], edges[1:]) if is_variable else self._steps(text, edges)
        if not edges:
            return f"<{text}>"
        name, taken = self._variable(edges)
        return f"{self._steps(name, edges[taken:])} in {text}"

    def _variable(self, edges: list[int]) -> tuple[str, int]:
        """Return the name of a variable of a call, and the number of edges that lead to its value."""
        snapshot = self.snapshot
        text = snapshot.step_text(snapshot.label[edges[0]])
        _, found, name = text.partition(".f_locals[")
        if found:
            return name[1:-2], 1
        if text.startswith(".<cell "):
            is_content = len(edges) > 1 and snapshot.step_text(snapshot.label[edges[1]]) == ".cell_contents"
            return text[7:-1], 2 if is_content else 1
        return text.removeprefix("."), 1

    def _steps(self, text: str, edges: list[int]) -> str:
        snapshot = self.snapshot
        left_out = len(edges) - MOST_STEPS
        if left_out <= 1:
            for edge in edges:
                text = snapshot.step(text, snapshot.label[edge])
            return text
        for edge in edges[: MOST_STEPS // 2]:
            text = snapshot.step(text, snapshot.label[edge])
        last = "".join(snapshot.step_text(snapshot.label[edge]) for edge in edges[left_out + MOST_STEPS // 2 :])
        return f"{text} <{left_out:,} more steps> {last}"

    @cached_property
    def origins(self) -> bytes:
        """The origin of each object, by the path to it, as an index into ORIGINS."""
        snapshot = self.snapshot
        of_type = bytes(ORIGINS.index(self.whose_type(name)) for name in snapshot.types)
        of_root = bytes(ORIGINS.index(self._whose_root(root)) for root in self.named_roots)
        return self.kernel.origins(self.tree, snapshot.label, snapshot.type, snapshot.strings, of_root, of_type)

    def origin(self, node: int) -> str:
        """Return the origin of an object, by the path to it.

        Attributes of a library's objects belong to that library.
        """
        return ORIGINS[self.origins[node]]

    def origin_of(self, node: int, edge: int | None = None) -> str:
        """Return the origin of a node, or of the target of one of its edges."""
        found = self.origin(node)
        if edge is None or found != MINE or not is_attribute(self.snapshot.strings, self.snapshot.label[edge]):
            return found
        return self.whose_type(self.snapshot.type_name(node))

    @cached_property
    def _own(self) -> frozenset[str]:
        """The top-level packages of the program's own modules."""
        tops = {root.label.partition(".")[0] for root in self.snapshot.roots if not is_of_lane(root.label)}
        return frozenset(tops - sys.stdlib_module_names).union(_ANYBODYS)

    def is_frame(self, node: int) -> bool:
        """Whether a node represents a running call."""
        return self.snapshot.type_name(node) == FRAME_TYPE

    def _whose_root(self, root: Root) -> str:
        if not is_of_lane(root.label):
            return self._whose(root.label)
        file = self.snapshot.value_text(root.node).partition(" of ")[2] if self.is_frame(root.node) else ""
        if any(part in file for part in PACKAGES):
            return LIBRARY
        return STANDARD if file.startswith("<frozen ") or is_installed(file) else MINE

    def whose_type(self, name: str) -> str:
        """Return the origin of a type. Types without a dot are frames and modules, whose names contain the origin."""
        if name not in self._types:
            self._types[name] = MINE if "." not in name else self._whose(name)
        return self._types[name]

    def _whose(self, name: str) -> str:
        top = name.partition(".")[0]
        if top in self._own:
            return MINE
        return STANDARD if top in sys.stdlib_module_names else LIBRARY

    # ---- descriptions of objects ----

    def items(self, node: int) -> int:
        """Return the number of items of a container; 0 for everything else."""
        known = self._items.get(node)
        if known is None:
            known = self._items[node] = self._counted_items(node)
        return known

    def _counted_items(self, node: int) -> int:
        snapshot = self.snapshot
        labels = snapshot.label[snapshot.first_edge[node] : snapshot.first_edge[node + 1]]
        # There may be a million items: counting bytes is thirty times as fast as reading each label.
        kinds = lowest_bytes(labels).translate(_KINDS)
        listed = kinds.count(INDEX) + kinds.count(VALUE)
        if PLAIN in kinds:
            raw = snapshot.strings.raw
            listed += sum(raw(each >> 4)[:1] == b"[" for each in labels if each & MASK == PLAIN)
        return listed or kinds.count(MEMBER)

    def text(self, node: int) -> str:
        """Return a short text for an object: its value, or its type and number of items."""
        value = self.snapshot.value_text(node)
        if value:
            kind = _NAMED.get(self.snapshot.type_name(node))
            return f"<{kind} {value}>" if kind else value
        name = self.snapshot.type_name(node)
        items = self.items(node)
        short = name.removeprefix("builtins.").removeprefix(f"{MAIN}.")
        if items or short in ("list", "dict", "tuple", "set", "frozenset"):
            return f"<{short} of {items:,}>"
        return f"<{short}>"

    def census(self, chosen: bytes = b"") -> tuple[Counter[str], Counter[str]]:
        """Return the number of objects of each type, and their bytes: of all, or of chosen nodes."""
        snapshot = self.snapshot
        every = chosen or b"\1" * len(snapshot)
        counts, sizes = self.kernel.census(snapshot.type, snapshot.size, every, len(snapshot.types))
        found: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        for name, count, size in zip(snapshot.types, counts, sizes, strict=True):
            if count:
                found[0][name] += count
                found[1][name] += size
        return found

    def largest(self, most: int | None = None) -> tuple[RetainedGroup, ...]:
        """Return the objects with the largest retained size, without modules and calls."""
        snapshot = self.snapshot
        held = self.retained
        nodes = (
            node for node in self.dominators[1] if held[node] > snapshot.size[node] and "." in snapshot.type_name(node)
        )
        found = heapq.nsmallest(most or len(snapshot), nodes, key=lambda node: (-held[node], node))
        return tuple(self.retained_group(node) for node in found)

    def retained_group(self, node: int) -> RetainedGroup:
        """Return an object with everything that it alone holds."""
        return RetainedGroup(
            path=self.path(node),
            type=self.snapshot.type_name(node),
            text=self.text(node),
            retained=self.retained[node],
            address=self.snapshot.address[node],
            origin=self.origin(node),
        )

    # ---- holders ----

    def source(self, edge: int) -> int:
        """Return the node that an edge leads from."""
        return bisect_right(self.snapshot.first_edge, edge) - 1

    def edges_to(self, node: int) -> Iterator[int]:
        """Yield the edges that lead to a node."""
        target, place = self.snapshot.target, -1
        try:
            while True:
                place = target.index(node, place + 1)
                yield place
        except ValueError:
            return

    def holders(self, node: int) -> tuple[Holder, ...]:
        """Return the objects that refer to a node, strong references with short paths first."""
        snapshot = self.snapshot
        cut = self._only_edge(node)
        found = []
        for edge in self.edges_to(node):
            source, weak = self.source(edge), is_weak(snapshot.label[edge])
            order = (weak, not self.is_held(source), self.depth(source), edge)
            holder = Holder(
                path=self.path_of(source, edge),
                step=snapshot.step_text(snapshot.label[edge]),
                type=snapshot.type_name(source),
                node=source,
                is_weak=weak,
                frees=self.retained[node] if edge == cut else 0,
            )
            found.append((order, holder))
        return tuple(holder for _, holder in sorted(found, key=lambda each: each[0]))

    def _only_edge(self, node: int) -> int | None:
        """Return the edge that alone keeps the node alive; None: there is none."""
        if node in self.roots or not self.is_held(node):
            return None
        # An edge from an object that the node itself holds does not keep it alive.
        keeping = [
            edge
            for edge in self.edges_to(node)
            if self.strong[edge] == node
            and self.is_held(source := self.source(edge))
            and not self.is_dominated(source, node)
        ]
        return keeping[0] if len(keeping) == 1 else None

    def is_dominated(self, node: int, by: int) -> bool:
        """Whether every strong path to `node` leads through `by`, which may be `node` itself."""
        dominator = self.dominators[0]
        while node not in (by, len(self.snapshot), UNREACHED):
            node = dominator[node]
        return node == by

    def chain(self, node: int) -> Iterator[int]:
        """Yield the dominators of a node, nearest first: freeing any of these would free it."""
        dominator = self.dominators[0]
        at = dominator[node]
        while at not in (len(self.snapshot), UNREACHED):
            yield at
            at = dominator[at]
