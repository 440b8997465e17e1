"""Build a snapshot from single nodes and edges, in any order: for tests and examples, not for a million of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replaydbg.heap.labels import INDEX, PLAIN, label
from replaydbg.heap.snapshot import FLOAT, NO_VALUE, TEXT, Root, Snapshot, Strings, Taken, fits_small, small_value


@dataclass(frozen=True, slots=True)
class Node:
    """An object to build a snapshot from."""

    address: int
    type: str = "builtins.object"
    size: int = 16
    value: int | float | str | None = None
    """An int or a float, or the source text of anything else."""
    since: int = 0


class _Texts:
    def __init__(self) -> None:
        self.places: dict[str, int] = {"": 0}

    def place(self, text: str) -> int:
        return self.places.setdefault(text, len(self.places))


def _value(of: int | float | str | None, texts: _Texts, floats: array[float]) -> int:
    if of is None:
        return NO_VALUE
    if isinstance(of, float):
        floats.append(of)
        return (len(floats) - 1) << 2 | FLOAT
    if isinstance(of, int) and fits_small(of):
        return small_value(of)
    return texts.place(str(of)) << 2 | TEXT


def _step(of: str | int | tuple[int, int], texts: _Texts) -> int:
    if isinstance(of, str):
        return label(PLAIN, texts.place(of.removeprefix("~")), is_weak=of.startswith("~"))
    return label(INDEX, of) if isinstance(of, int) else label(*of)


def build(
    nodes: Iterable[Node],
    edges: Iterable[tuple[int, str | int | tuple[int, int], int]] = (),
    roots: Sequence[tuple[str, int]] = (),
    *,
    taken: Taken | None = None,
    cut: Sequence[str] = (),
) -> Snapshot:
    """Return a snapshot of `nodes` with `edges` between their addresses, and `roots` at addresses.

    The step of an edge is its source text (`.price`, with `~` before it if it is weak), or an int for an item, or
    another kind of labels.py with its number. Edges keep the order in which they are given.
    """
    listed = sorted(nodes, key=lambda each: each.address)
    at = {node.address: place for place, node in enumerate(listed)}
    texts, kinds, floats = _Texts(), _Texts(), array("d")
    del kinds.places[""]
    held: list[list[tuple[int, int]]] = [[] for _ in listed]
    for source, how, target in edges:
        held[at[source]].append((_step(how, texts), at[target]))
    first = array("I", [0])
    for each in held:
        first.append(first[-1] + len(each))
    return Snapshot(
        taken=taken or Taken(),
        address=array("Q", [node.address for node in listed]),
        since=array("I", [node.since for node in listed]),
        type=array("I", [kinds.place(node.type) for node in listed]),
        size=array("Q", [node.size for node in listed]),
        value=array("I", [_value(node.value, texts, floats) for node in listed]),
        first_edge=first,
        target=array("I", [target for each in held for _, target in each]),
        label=array("I", [how for each in held for how, _ in each]),
        roots=tuple(Root(name, at[address]) for name, address in roots),
        types=tuple(kinds.places),
        strings=Strings.of(tuple(texts.places)),
        floats=floats,
        cut=tuple(cut),
    )
