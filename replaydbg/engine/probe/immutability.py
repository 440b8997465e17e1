"""Whether a value can change, decided by its type."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BY_NAME = (
    "builtins.NoneType",
    "builtins.ellipsis",
    "builtins.NotImplementedType",
    "builtins.slice",
    "builtins.property",
    "datetime.tzinfo",
    "enum.Enum",
    "fractions.Fraction",
    "ipaddress._IPAddressBase",
    "operator.attrgetter",
    "operator.itemgetter",
    "operator.methodcaller",
    "pathlib.PurePath",
    "pathlib._local.PurePath",
    "re.Match",
    "re.Pattern",
    "uuid.UUID",
    "zoneinfo.ZoneInfo",
)
"""Types of the standard library whose instances do not change, though their layout would allow it or hides it."""

CHANGING = ("__setitem__", "__delitem__", "__iadd__", "__next__")
"""Methods of types that change in place, whatever their hashes are."""


def frozen(value: Any, depth: int = 6) -> bool:
    """Whether a value stays what it is, with all that it consists of."""
    kind = type(value)
    if isinstance(value, (type, type(sys), type(frozen), type(len))):
        return True  # a class, a module, a function: what is bound in it is asked for by its name
    if depth == 0 or not is_of_fixed_content(kind):
        return False
    if is_named(kind):
        return True
    own = [base for base in kind.__mro__ if is_of_python(base) or "__slots__" in base.__dict__]
    has_room = hasattr(value, "__dict__") or any(slots_of(base) for base in own)
    if has_room and not is_frozen_dataclass(kind):
        return False
    parts = [*getattr(value, "__dict__", {}).values()]
    parts += [getattr(value, name) for base in own for name in slots_of(base) if hasattr(value, name)]
    if isinstance(value, (tuple, frozenset)):
        base: Any = tuple if isinstance(value, tuple) else frozenset
        parts += base.__iter__(value)
    return len(parts) < 10_000 and all(frozen(each, depth - 1) for each in parts)


def is_of_fixed_content(kind: Any) -> bool:
    """Whether what C code keeps in the instances of a type cannot change: they have a hash of their content."""
    if is_named(kind):
        return True
    of_c = [base for base in kind.__mro__ if base is not object and not is_of_python(base)]
    if not of_c:
        return True
    if any(name in base.__dict__ for base in of_c for name in CHANGING):
        return False
    return any(type(base.__dict__.get("__hash__")).__name__ == "wrapper_descriptor" for base in of_c)


def is_named(kind: Any) -> bool:
    names = [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]
    return any(name in BY_NAME for name in names) and (
        names[0] in BY_NAME or "enum.Enum" in names or not adds_room(kind)
    )


def adds_room(kind: Any) -> bool:
    """Whether a class of the program's gives its instances attributes besides those of what it inherits from."""
    outside = (each for each in kind.__mro__ if f"{each.__module__}.{each.__qualname__}" in BY_NAME)
    known: Any = next(outside)
    return bool(kind.__dictoffset__ != known.__dictoffset__)


def is_of_python(kind: Any) -> bool:
    """Whether a class statement made it: it is on the heap, not immutable, and has no methods of C code."""
    of_c = ("method_descriptor", "wrapper_descriptor", "classmethod_descriptor", "builtin_function_or_method")
    is_made = kind.__flags__ & 1 << 9 and not kind.__flags__ & 1 << 8
    return bool(is_made) and not any(type(each).__name__ in of_c for each in kind.__dict__.values())


def slots_of(kind: Any) -> list[str]:
    """The names of the slots that a class itself adds."""
    members = kind.__dict__.items()
    return [name for name, each in members if type(each).__name__ == "member_descriptor"]


def is_frozen_dataclass(kind: Any) -> bool:
    """Whether a class refuses to set attributes of its instances, as do those from which it inherits."""
    parameters = (getattr(base, "__dataclass_params__", None) for base in kind.__mro__ if is_of_python(base))
    return all(each is not None and each.frozen for each in parameters)
