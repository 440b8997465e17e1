"""A snapshot of the test's own objects, and a walk over them in Python to compare it with."""

from __future__ import annotations

import gc
import os
import types
import weakref
from collections.abc import Iterator
from typing import Any

from replaydbg.heap.labels import is_weak
from replaydbg.heap.snapshot import Snapshot
from replaydbg.heap.storage.raw_snapshot import read_raw
from replaydbg.native import _core


def capture(
    roots: dict[str, Any], *, nodes: int = 10**7, edges: int = 10**8, items: int = 10**6, text: int = 80
) -> Snapshot:
    """Return a snapshot of everything reachable from `roots`, taken by the native core in this process."""
    fd = os.memfd_create("snapshot")
    try:
        _core.capture(fd, roots, nodes, edges, items, text)
        os.lseek(fd, 0, os.SEEK_SET)
        with open(fd, "rb", closefd=False) as file:
            return read_raw(file.read())
    finally:
        os.close(fd)


_PLAIN = (str, int, float, bytes, bool, type(None))


def referents(o: Any) -> list[Any]:
    """Return the strong references of a node for `o`, found without the core."""
    if isinstance(o, dict) and type(o) is dict:
        return [key for key in o if type(key) not in _PLAIN] + list(o.values())
    if isinstance(o, types.FunctionType):
        named = [*(o.__closure__ or ()), *(o.__defaults__ or ()), *(o.__kwdefaults__ or {}).values()]
        return named + list(o.__dict__.values())
    if isinstance(o, types.GeneratorType):
        return list(o.gi_frame.f_locals.values()) if o.gi_frame else []
    if isinstance(o, types.BuiltinFunctionType):
        return [] if isinstance(o.__self__, types.ModuleType) else [o.__self__]
    if isinstance(o, (type, types.ModuleType, types.CodeType, weakref.ref)):
        return []
    held: list[Any] = []
    keys = (
        {id(key) for key in o if type(key) in _PLAIN} - {id(each) for each in o.values()} if isinstance(o, dict) else ()
    )
    own = getattr(o, "__dict__", None)
    for each in gc.get_referents(o):
        if own is not None and each is own:
            held += own.values()
        elif each is not type(o) and id(each) not in keys:
            held.append(each)
    if type(o).__module__.startswith("tests."):  # a Python class, not one written in C
        held.append(type(o))
    return held


def reachable(roots: dict[str, Any]) -> dict[int, Any]:
    """Return all objects reachable from `roots`, by address."""
    found: dict[int, Any] = {}
    left = list(roots.values())
    while left:
        o = left.pop()
        if id(o) not in found:
            found[id(o)] = o
            left += referents(o)
    return found


def strong_targets(snapshot: Snapshot, node: int) -> Iterator[int]:
    """Yield the addresses of everything that a node keeps alive."""
    for edge in snapshot.edges(node):
        if not is_weak(edge.label):
            yield snapshot.address[edge.target]
