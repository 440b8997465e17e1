"""Snapshots of real Python objects, taken by inspecting them from outside: test data for differences."""

from __future__ import annotations

from typing import Any

from replaydbg.heap.builder import Node, build
from replaydbg.heap.labels import MEMBER, VALUE
from replaydbg.heap.snapshot import Snapshot, Taken

Step = str | int | tuple[int, int]


class Thing:
    """An object with attributes."""


def mirror(names: dict[str, Any], *, number: int = 1, run: str = "run", keep: list[Any] | None = None) -> Snapshot:
    """Return a snapshot of a module `app` with the variables `names`.

    The caller must keep the content of `keep` as long as identity matters: then no address is reused.
    """
    nodes: list[Node] = [Node(1, "module", 0, "app")]
    edges: list[tuple[int, Step, int]] = []
    seen: set[int] = set()
    todo: list[Any] = []

    def meet(source: int, step: Step, value: Any) -> None:
        edges.append((source, step, id(value)))
        if id(value) not in seen:
            seen.add(id(value))
            todo.append(value)

    for name, value in names.items():
        meet(1, f".{name}", value)
    for value in todo:
        nodes.append(_node(value))
        for step, part in _parts(value):
            meet(id(value), step, part)
    if keep is not None:
        keep.extend(todo)
    return build(nodes, edges, [("app", 1)], taken=Taken(number=number, run=run))


def _node(value: Any) -> Node:
    kind = type(value)
    name = f"app.{kind.__name__}" if kind is Thing else f"builtins.{kind.__name__}"
    text: Any = None
    if kind in (int, float):
        text = value
    elif kind in (str, bytes, bool, type(None)):
        text = repr(value)
    return Node(id(value), name, 16 + 8 * len(list(_parts(value))), text)


def _parts(value: Any) -> list[tuple[Step, Any]]:
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if isinstance(value, (set, frozenset)):
        return [((MEMBER, place), each) for place, each in enumerate(value)]
    if isinstance(value, dict):
        found: list[tuple[Step, Any]] = []
        for place, (key, each) in enumerate(value.items()):
            if isinstance(key, str):
                found.append((f"[{key!r}]", each))
            elif isinstance(key, int):
                found.append((key, each))
            else:
                found += [((MEMBER, place), key), ((VALUE, place), each)]
        return found
    return [(f".{name}", each) for name, each in vars(value).items()] if isinstance(value, Thing) else []
