"""The parts of an object, and whether they can change."""

from __future__ import annotations

import sys

from replaydbg.engine.probe.core import object_at
from replaydbg.engine.probe.elements import deques, followed_arrays
from replaydbg.engine.probe.frames import frame_of, value_in
from replaydbg.engine.probe.immutability import frozen, is_of_fixed_content
from replaydbg.engine.probe.value_text import described, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.engine import queries
    from replaydbg.engine.probe.value_text import Described

PLAIN = (int, float, complex, str, bytes, bool, type(None))


MOST_ITEMS = 1000


def items_of(value: Any, first: int = 0, last: int = MOST_ITEMS) -> list[tuple[str, Any]]:
    """The items of a container with the indices from `first` up to `last`.

    Each has what is written behind the container's name to get it.
    """
    if isinstance(value, dict):
        return [(key_name(key), each) for key, each in list(value.items())[first:last]]
    if isinstance(value, (list, tuple)):
        return [(f"[{at}]", each) for at, each in enumerate(value[first:last], first)]
    return [("", each) for each in list(value)[first:last]] if isinstance(value, (set, frozenset)) else []


def key_name(key: Any) -> str:
    """The index by which an expression gets the item with a key."""
    return f"[{shown(key, 80)}]"


def attributes_of(value: Any) -> list[tuple[str, Any]]:
    found = [(f".{name}", each) for name, each in list(getattr(value, "__dict__", {}).items())]
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            # As the interpreter names those that begin with two underscores.
            is_private = name.startswith("__") and not name.endswith("__")
            held = f"_{kind.__name__.lstrip('_')}{name}" if is_private else name
            if name not in ("__dict__", "__weakref__") and hasattr(value, held):
                found.append((f".{name}", getattr(value, held)))
    return found


def opaque(query: queries.FindOpaqueType) -> str | None:
    """The type that keeps content of a value where only its own C code can read it; None: there is none."""
    frame = frame_of(query)
    value = value_in(frame, query.source)
    changing = (list, tuple, dict, set, frozenset, bytearray, *deques(), *followed_arrays(value))
    followed = (object, type, type(sys), *changing)
    for base in type(value).__mro__ if mutable(query) else ():
        methods = (type(each).__name__ for each in base.__dict__.values())
        if base in followed or base.__module__ == "typing" or is_of_fixed_content(base):
            continue
        if "method_descriptor" in methods:
            return None if issubclass(base, followed[1:]) else str(base.__name__)
    return None


def mutable(query: queries.IsMutable | queries.FindOpaqueType) -> bool:
    """Whether a value may change by itself."""
    frame = frame_of(query)
    return not frozen(value_in(frame, query.source))


def content(query: queries.GetContent) -> dict[str, Any] | None:
    """Return digests of an object and its parts: different ones show a change.

    None: it cannot change; an equal one may have another address.
    """
    value: Any = object_at(*query.object)
    if type(value) in PLAIN or frozen(value):
        return None  # a cache inside a path or a fraction is not content
    parts = [*items_of(value), *attributes_of(value)]
    return {
        "type": type(value).__name__,
        "text": shown(value),
        "held": held_by(value),
        "parts": {name: (held_by(each), shown(each)) for name, each in parts if name},
    }


def held_by(value: Any) -> int:
    """A number for what an object holds, and what the containers in it hold; of other objects, which ones they are."""
    kinds_of_items = (list, tuple, set, frozenset, *deques())
    held: list[Any] = []
    left: list[Any] = [value, *(each for _, each in attributes_of(value))]
    seen: set[int] = set()
    while left and len(held) < 100_000:
        each = left.pop()
        base: Any = next((kind for kind in (*kinds_of_items, dict) if isinstance(each, kind)), None)
        if base is not None:
            parts = [part for item in dict.items(each) for part in item] if base is dict else base.__iter__(each)
            left += () if id(each) in seen else parts
            seen.add(id(each))
        held.append(each if type(each) in PLAIN else bytes(each) if type(each) is bytearray else id(each))
    return hash(tuple(held))


def of_object(query: queries.DescribeObject) -> Described:
    """Return an object that is known by its address."""
    found: Any = object_at(*query.object)
    return described("", found if query.item is None else found[query.item])
