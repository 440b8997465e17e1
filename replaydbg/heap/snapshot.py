"""The model of a snapshot: the objects, their values, and the references between them, in columns.

A million objects are a handful of arrays; no Python object is made for a single one before a query needs it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from replaydbg.classes import dataclass
from replaydbg.heap.labels import INDEX, MEMBER, PLAIN, REFERENT, VALUE, kind_of, number_of

FRAME_TYPE = "<frame>"
"""The type of nodes that represent running calls. They are not objects: they hold local variables."""

NO_VALUE = 0
TEXT = 1
SMALL = 2
FLOAT = 3
"""The lowest two bits of a value: no value; or the rest is the index of its text, a small int, an index of `floats`."""

_WHOLE = "\0#"
"""Precedes a hash of the whole text, where only its beginning was kept: so the rest can be compared."""


class Strings(Sequence[str]):
    """A table of texts in one bytes object; each is decoded when it is needed. The first one is empty."""

    __slots__ = ("_data", "_ends")

    def __init__(self, data: bytes, ends: array[int]) -> None:
        """Take UTF-8 (with surrogates passed), and the end offset of each text."""
        self._data = data
        self._ends = ends

    @classmethod
    def of(cls, texts: Sequence[str]) -> Strings:
        """Return a table of `texts`."""
        ends = array("I")
        data = bytearray()
        for text in texts:
            data += text.encode("utf-8", "surrogatepass")
            ends.append(len(data))
        return cls(bytes(data), ends)

    def __len__(self) -> int:
        return len(self._ends)

    def raw(self, index: int) -> bytes:
        """Return a text as it is stored: equal texts have equal bytes."""
        return self._data[self._ends[index - 1] if index else 0 : self._ends[index]]

    def __getitem__(self, index: int) -> str:  # type: ignore[override]  # no slices
        try:
            return self.raw(index).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            # A file made with an invalid offset: it cuts a character in two.
            return self.raw(index).decode("utf-8", "replace")

    @property
    def data(self) -> bytes:
        """All texts, one after the other."""
        return self._data

    @property
    def ends(self) -> array[int]:
        """The end offset of each of them in `data`."""
        return self._ends


class Root(NamedTuple):
    """A starting point of the walk."""

    label: str
    """The name of a module, or a thread with the function that runs in it and its line."""
    node: int
    """The index of the module's node, or of the frame's."""


class Edge(NamedTuple):
    """A reference from one object to another."""

    label: int
    """The step: see labels.py."""
    target: int
    """The index of its target node."""


@dataclass(frozen=True, slots=True)
class Taken:
    """When and why a snapshot was taken."""

    number: int = 1
    """Its number among those of its run, from 1."""
    event: int = 0
    """Number of crossings before it."""
    step: int = 0
    """Number of lines before it, if lines were counted; else 0."""
    name: str = ""
    """The name given by the program or the user."""
    reason: str = "asked"
    """`asked`, `named`, `interval`, `exception`, `signal`."""
    time_ns: int = 0
    """Nanoseconds since the start of the run."""
    run: str = ""
    """The process to which the addresses belong: identity holds only between snapshots of one. Empty: unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The objects that a program could reach at a moment. Nodes are sorted by address.

    An object of this snapshot is one of an earlier snapshot of the same run if it has the same `address`, and its
    `since` is not after that snapshot's number. Address and `since` together identify it within the run.
    """

    taken: Taken
    address: array[int]
    """Q. The object's address."""
    since: array[int]
    """I. Its memory was last freed, or reused, before the snapshot of that number; 0: never since the first one."""
    type: array[int]
    """I. Index into `types`."""
    size: array[int]
    """Q. Bytes of the object itself, with parts that no other object owns: its dictionary, the storage of a list."""
    value: array[int]
    """I. A short text, an int or a float: see `value_text`."""
    first_edge: array[int]
    """I, one more than nodes. The edges of node i are those from first_edge[i] to first_edge[i + 1]."""
    target: array[int]
    """I, per edge. The index of its target node."""
    label: array[int]
    """I, per edge. The step: see labels.py."""
    roots: tuple[Root, ...]
    types: tuple[str, ...]
    """`module.qualname` of each type."""
    strings: Strings
    floats: array[float]
    cut: tuple[str, ...] = ()
    """Sentences about parts that limits left out; empty: the snapshot is complete."""

    def __len__(self) -> int:
        return len(self.address)

    def type_name(self, node: int) -> str:
        """Return the type of a node."""
        return self.types[self.type[node]]

    def value_text(self, node: int) -> str:
        """Return the value of a node as Python source, cut if it is long; empty if none was kept."""
        kept = self.value[node]
        number = kept >> 2
        match kept & 3:
            case 1:  # TEXT
                return self.strings[number].partition(_WHOLE)[0]
            case 2:  # SMALL
                return str(number >> 1 ^ -(number & 1))
            case 3:  # FLOAT
                return repr(self.floats[number])
        return ""

    def value_key(self, node: int) -> str:
        """Return the comparison key of a node's value: a text that was cut has a hash of the whole."""
        kept = self.value[node]
        return self.strings[kept >> 2] if kept & 3 == TEXT else self.value_text(node)

    def find(self, address: int) -> int | None:
        """Return the node at an address."""
        place = bisect_left(self.address, address)
        return place if place < len(self.address) and self.address[place] == address else None

    def edges(self, node: int) -> Iterator[Edge]:
        """Yield the references of a node."""
        for place in range(self.first_edge[node], self.first_edge[node + 1]):
            yield Edge(self.label[place], self.target[place])

    def step(self, source: str, label: int) -> str:
        """Return the expression for the target of the step `label`, given the one for its source.

        For an object (not for a frame) evaluating it returns the target, too.
        """
        number = number_of(label)
        match kind_of(label):
            case 0:  # PLAIN
                return source + self.strings[number]
            case 1:  # INDEX
                return f"{source}[{number}]"
            case 2:  # MEMBER
                return f"list({source})[{number}]"
            case 3:  # VALUE
                return f"list({source}.values())[{number}]"
        return f"gc.get_referents({source})[{number}]"

    def step_text(self, label: int) -> str:
        """Return a step alone, in short form: `.price`, `[3]`, `{member 3}`, with `~` before a weak one."""
        weak = "~" if label & 8 else ""
        number = number_of(label)
        text = {
            PLAIN: lambda: self.strings[number],
            INDEX: lambda: f"[{number}]",
            MEMBER: lambda: f"{{member {number}}}",
            VALUE: lambda: f"{{value {number}}}",
            REFERENT: lambda: f".<{number}>",
        }[kind_of(label)]()
        return weak + text


def small_value(number: int) -> int:
    """Return the encoding of a small int in the column of values."""
    return (number << 1 ^ number >> 31) << 2 | SMALL


def fits_small(number: int) -> bool:
    """Whether an int fits into the column of values itself."""
    return -(1 << 28) <= number < 1 << 28
