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


def modules_named(names: dict[str, Any], wanted: Iterable[str]) -> dict[str, Any]:
    """The loaded modules among `wanted` that are neither names nor builtins, by their names."""
    modules, known = sys.modules, names["__builtins__"]
    if type(modules) is not dict:
        return {}
    known = known if isinstance(known, dict) else known.__dict__
    return {name: modules[name] for name in wanted if name in modules and name not in names and name not in known}


def with_modules(names: dict[str, Any], wanted: Iterable[str]) -> dict[str, Any]:
    """Add these modules to the names, and return the names."""
    names.update(modules_named(names, wanted))
    return names


def step_in_module(name: str, steps: tuple[tuple[str, Any], ...]) -> int | None:
    """Which step of a path is the variable, if the path begins with the name of a loaded module; None: it does not.

    The steps before it lead through modules, as the attributes do that are evaluated.
    """
    modules = sys.modules
    module = modules.get(name) if type(modules) is dict else None
    found = None
    for at, (kind, key) in enumerate(steps):
        if kind != "attribute" or not issubclass(type(module), type(sys)):
            break
        found = at
        name += "." + key
        inner = object.__getattribute__(module, "__dict__").get(key)
        module = inner if inner is modules.get(name) else None
    return found
