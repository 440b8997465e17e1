"""The types of exceptions that a name means in the program."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.engine import queries


def types_named(query: queries.FindExceptionTypes) -> list[str]:
    """The full names of the types of exceptions that have a name, or that a module, builtins first, calls so."""
    name = query.name
    found = [each for each in map(full_name, all_exceptions()) if each == name or each.endswith(f".{name}")]
    parts = name.split(".")
    for at in range(len(parts)):
        value = reached(namespace(".".join(parts[:at])), parts[at:])
        if type in type(value).__mro__ and BaseException in type.__dict__["__mro__"].__get__(value):
            found.append(full_name(value))
    return sorted(set(found))


def all_exceptions() -> list[Any]:
    found: dict[int, Any] = {}
    left: list[Any] = [BaseException]
    while left:
        kind = left.pop()
        if id(kind) not in found:
            found[id(kind)] = kind
            left += type.__subclasses__(kind)
    return list(found.values())


def full_name(kind: Any) -> str:
    """As lineage.c writes it."""
    try:
        module = type.__dict__["__module__"].__get__(kind)
    except AttributeError:
        module = None
    name = str(type.__dict__["__qualname__"].__get__(kind))
    return f"{module}.{name}" if type(module) is str and module else name


def namespace(module: str) -> Any:
    """Return the objects of a module's names; without a module, of the program's and of builtins."""
    main: Any = sys.modules.get("__main__")
    known = getattr(main, "__dict__", {})
    spec, file = known.get("__spec__"), known.get("__file__")
    if not module:
        return {**vars(sys.modules["builtins"]), **known}
    if module == getattr(spec, "name", str(file).rpartition("/")[2].removesuffix(".py")):
        return known
    found = sys.modules.get(module)
    return vars(found) if isinstance(found, type(sys)) else {}


def reached(names: Any, parts: list[str]) -> Any:
    """Return the object at the end of a path of nested classes; None: it does not exist."""
    value: Any = None
    for each in parts:
        value = names.get(each)
        names = type.__dict__["__dict__"].__get__(value) if type in type(value).__mro__ else {}
    return value
