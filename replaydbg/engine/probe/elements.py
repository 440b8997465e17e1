"""Items that the core finds without running Python, and which of them a key means."""

from __future__ import annotations

import sys

from replaydbg.engine.probe.core import object_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeGuard

    from replaydbg.engine.queries import EntryKey, ItemKey

MOST_HASHED = 4 << 20
"""The most bytes of an array whose content is tracked as a whole, as signature.c has it."""

OF_ONE_SIZE = "?bBhHiIlLqQfdgFDGOmMe"
"""The letters of numpy's types whose size is known by their number, as elements.c has them."""


def has_items(value: Any, key: ItemKey) -> bool:
    """Whether the core finds the item with a key: see take_step in watch.c."""
    if isinstance(value, dict):
        return not isinstance(key, tuple) or is_entry(key)
    if is_entry(key):
        return False
    base = next((each for each in sequences() if isinstance(value, each)), None)
    own: Any = next((each for each in type(value).__mro__ if "__getitem__" in each.__dict__), None)
    if base is None or isinstance(key, str) or (own is not base and not is_memmap(own)):
        return False
    if base not in ndarrays():
        return isinstance(key, int)
    return is_of_one_size(value) and count_of(key) <= value.ndim


def is_entry(key: ItemKey) -> TypeGuard[EntryKey]:
    """Whether it is a key that a dictionary holds, by its address."""
    return isinstance(key, tuple) and key[:1] == ("entry",)


def item_of(value: Any, key: ItemKey) -> Any:
    """Return an item of a value. Raises LookupError if there is none."""
    return value[object_at(*key[1:]) if is_entry(key) else key]


def count_of(key: ItemKey) -> int:
    """How many dimensions of an array a key goes through."""
    return len(key) if isinstance(key, tuple) else 1


def sequences() -> tuple[Any, ...]:
    """The types whose items the core finds by their numbers; a program may have imported their modules or not."""
    return (list, tuple, bytearray, *deques(), *arrays(), *ndarrays())


def deques() -> tuple[Any, ...]:
    return named("collections", "deque")


def arrays() -> tuple[Any, ...]:
    return named("array", "array")


def ndarrays() -> tuple[Any, ...]:
    return named("numpy", "ndarray")


def named(module: str, name: str) -> tuple[Any, ...]:
    """The type of that name, if its module is loaded."""
    found = vars(sys.modules[module]).get(name) if module in sys.modules else None
    return (found,) if isinstance(found, type) else ()


def is_memmap(kind: Any) -> bool:
    """Whether it is numpy's type of arrays in files: its items are those of other arrays."""
    return kind is not None and (kind.__module__, kind.__name__) == ("numpy", "memmap")


def is_of_one_size(array: Any) -> bool:
    return array.dtype.char in OF_ONE_SIZE


def followed_arrays(value: Any) -> tuple[Any, ...]:
    """The types of arrays whose content is tracked as a whole, for a value that may be of one."""
    is_small = isinstance(value, ndarrays()) and is_of_one_size(value) and value.nbytes <= MOST_HASHED
    is_small |= isinstance(value, arrays()) and len(value) * value.itemsize <= MOST_HASHED
    return (*arrays(), *ndarrays()) if is_small else ()


def shares_memory(one: Any, other: Any) -> bool:
    """Whether a store into an array may write items of another one: numpy answers by their bounds."""
    are_arrays = isinstance(one, ndarrays()) and isinstance(other, ndarrays())
    return are_arrays and bool(sys.modules["numpy"].may_share_memory(one, other))


def is_key(found: Any, wanted: ItemKey, owner: Any, *, is_only_selected: bool = False) -> bool | None:
    """Whether a store with the key `found` into `owner` writes the item `wanted`; None: unknown.

    `is_only_selected`: this is the recorded run itself, in which no `__eq__` of the program may be called.
    """
    if is_entry(wanted):
        held = object_at(*wanted[1:])
        is_known = found is held or not is_only_selected or (is_compared_in_c(found) and is_compared_in_c(held))
        return bool(found is held or found == held) if is_known else None
    if isinstance(owner, ndarrays()):
        return is_cell(found, wanted, owner.shape)
    if isinstance(found, slice):
        return None if isinstance(owner, sequences()) else False
    if found == wanted:
        return True
    length = len(owner) if isinstance(owner, sequences()) else 0
    return bool(length and isinstance(wanted, int) and found % length == wanted % length)


def is_compared_in_c(key: Any) -> bool:
    """Whether no code of the program runs if a key is compared with another such key."""
    if type(key) is tuple:
        return all(map(is_compared_in_c, key))
    compare: Any = type(key).__eq__
    return type(key) in (str, bytes, int, float, bool, complex, type(None)) or compare is object.__eq__


def is_cell(found: Any, wanted: Any, shape: tuple[int, ...]) -> bool | None:
    """The same for an array: of keys with as many numbers it is known."""
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    try:
        numbers = tuple(each.__index__() for each in (found if isinstance(found, tuple) else (found,)))
    except (AttributeError, TypeError):
        return None
    if len(numbers) != len(wanted) or any(isinstance(each, bool) for each in (found, *numbers)):
        return None
    return all(one % size == other % size for one, other, size in zip(numbers, wanted, shape, strict=False))
