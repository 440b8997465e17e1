"""Names of loaded modules in expressions: `shop.db.total` means the same wherever the program is."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def names_of_all(code: Any) -> set[str]:
    """The names that are used in code and in the functions and comprehensions in it."""
    found = set(code.co_names)
    for each in code.co_consts:
        if isinstance(each, type(code)):
            found |= names_of_all(each)
    return found


def with_modules(names: dict[str, Any], wanted: Iterable[str]) -> dict[str, Any]:
    """Add the loaded modules among `wanted` that are neither names nor builtins; return the names."""
    modules = sys.modules
    if type(modules) is dict:
        known = names["__builtins__"]
        known = known if isinstance(known, dict) else known.__dict__
        for name in wanted:
            if name in modules and name not in names and name not in known:
                names[name] = modules[name]
    return names


def home_in_module(name: str, steps: tuple[tuple[str, Any], ...]) -> tuple[str, int] | None:
    """The module at which a path of attributes begins, the longest one, and which step is the variable in it.

    None: it begins at none.
    """
    found = None
    for at, (kind, key) in enumerate(steps):
        if kind != "attribute":
            break
        if name in sys.modules:
            found = name, at
        name += "." + key
    return found
