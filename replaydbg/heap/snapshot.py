"""The model of a snapshot: which objects there were, what they were, and which held which, in columns.

A million objects are a handful of arrays; nothing is made for a single object before somebody asks for it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from replaydbg.heap.labels import INDEX, MEMBER, PLAIN, REFERENT, VALUE, kind_of, number_of

FRAME_TYPE = "<frame>"
"""The type of the nodes that stand for calls that are running. They are no objects: they hold local variables."""

NO_VALUE = 0
TEXT = 1
SMALL = 2
FLOAT = 3
"""The lowest two bits of a value: it has none; the rest is the index of its text, a small int, an index of `floats`."""

_WHOLE = "\0#"
"""Behind it stands a hash of the whole text, where only its beginning was kept: so the rest can be compared."""


class Strings(Sequence[str]):
    """A table of texts in one piece of bytes; each is decoded when it is asked for. The first one is empty."""

    __slots__ = ("_data", "_ends")

    def __init__(self, data: bytes, ends: array[int]) -> None:
        """Take UTF-8 (with surrogates passed), and the offset behind each text."""
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
        """Return a text as it is stored: what is equal as text is equal here."""
        return self._data[self._ends[index - 1] if index else 0 : self._ends[index]]

    def __getitem__(self, index: int) -> str:  # type: ignore[override]  # no slices
        try:
            return self.raw(index).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            # Of a file that was made so: it cuts a character in two.
            return self.raw(index).decode("utf-8", "replace")

    @property
    def data(self) -> bytes:
        """All texts, one behind the other."""
        return self._data

    @property
    def ends(self) -> array[int]:
        """Where each of them ends in `data`."""
        return self._ends


class Root(NamedTuple):
    """Where the walk began."""

    label: str
    """The name of a module, or a lane with the function that runs in it and its line."""
    node: int
    """The index of the module's node, or of the frame's."""


class Edge(NamedTuple):
    """A reference from one object to another."""

    label: int
    """Which: see labels.py."""
    target: int
    """The index of the node that it leads to."""


@dataclass(frozen=True, slots=True)
class Taken:
    """When a snapshot was taken, and why."""

    number: int = 1
    """Its number among those of its run, from 1."""
    event: int = 0
    """Crossings before it."""
    step: int = 0
    """Lines before it, if the program was counted; else 0."""
    name: str = ""
    """What the program or the user called it."""
    reason: str = "asked"
    """`asked`, `named`, `interval`, `exception`, `signal`."""
    time_ns: int = 0
    """Nanoseconds since the start of the run."""
    run: str = ""
    """Which process the addresses belong to: identity holds only between snapshots of one. Empty: unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The objects that a program could reach at a moment. Nodes are sorted by address.

    An object of this snapshot is one of an earlier snapshot of the same run if it has the same `address`, and its
    `since` is not after that snapshot's number. Address and `since` together name it within the run.
    """

    taken: Taken
    address: array[int]
    """Q. Where the object lies."""
    since: array[int]
    """I. Its memory was last freed, or used anew, before the snapshot of that number; 0: never since the first one."""
    type: array[int]
    """I. Index into `types`."""
    size: array[int]
    """Q. Bytes of the object itself, with what nobody else owns: its dictionary, the storage of a list."""
    value: array[int]
    """I. A short text, an int or a float: see `value_text`."""
    first_edge: array[int]
    """I, one more than nodes. Those of node i are the edges from first_edge[i] to first_edge[i + 1]."""
    target: array[int]
    """I, per edge. The index of the node that it leads to."""
    label: array[int]
    """I, per edge. Which step leads there: see labels.py."""
    roots: tuple[Root, ...]
    types: tuple[str, ...]
    """`module.qualname` of each type."""
    strings: Strings
    floats: array[float]
    cut: tuple[str, ...] = ()
    """Sentences about what limits left out; none: it is all there."""

    def __len__(self) -> int:
        return len(self.address)

    def type_name(self, node: int) -> str:
        """Return the type of a node."""
        return self.types[self.type[node]]

    def value_text(self, node: int) -> str:
        """Return the value of a node as Python would write it, cut if it is long; empty if none was kept."""
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
        """Return what the value of a node is compared by: a text that was cut has a hash of the whole."""
        kept = self.value[node]
        return self.strings[kept >> 2] if kept & 3 == TEXT else self.value_text(node)

    def find(self, address: int) -> int | None:
        """Return the node at an address."""
        place = bisect_left(self.address, address)
        return place if place < len(self.address) and self.address[place] == address else None

    def edges(self, node: int) -> Iterator[Edge]:
        """Yield what a node refers to."""
        for place in range(self.first_edge[node], self.first_edge[node + 1]):
            yield Edge(self.label[place], self.target[place])

    def step(self, source: str, label: int) -> str:
        """Return the expression for what the step `label` leads to, from the one for where it begins.

        For an object (not for a frame) evaluating it leads there, too.
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
        """Return a step alone, short, for people: `.price`, `[3]`, `{member 3}`, `~` before a weak one."""
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
    """Return how a small int stands in the column of values."""
    return (number << 1 ^ number >> 31) << 2 | SMALL


def fits_small(number: int) -> bool:
    """Whether an int has its place in the column of values itself."""
    return -(1 << 28) <= number < 1 << 28
