"""Values as text, cut where they are long."""

from __future__ import annotations

from replaydbg.engine.probe.core import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Described = tuple[str, str, str, int, int]
    """A name, the qualified name of the value's type, its text, its number of parts, its digest."""

GETS = type(type.__dict__["__dict__"])
"""The type of what returns an attribute that C code keeps."""

LONGEST = 400
MOST = 60


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def shown(value: Any, limit: int = LONGEST, depth: int = 3) -> str:
    """Return `value` as text of about `limit` characters: large containers are not shown as a whole."""
    kind = type(value)
    try:
        if kind in (list, tuple, set, frozenset, dict) and (depth == 0 or len(value) > MOST):
            return f"<{kind.__name__} of {len(value):,}>" if depth == 0 else first_of(value, kind, limit, depth)
        if kind in (list, tuple, set, frozenset, dict):
            return first_of(value, kind, limit, depth)
        if kind in (str, bytes, bytearray) and len(value) > limit:
            return f"{cut(repr(value[:limit]), limit)} ({len(value):,} long)"
        if kind is int and value.bit_length() > 4 * limit:
            return f"<int of {value.bit_length():,} bits>"
        return cut(repr(value), limit)
    except BaseException as error:
        return f"<{kind.__name__} whose repr raises {type(error).__name__}: {cut(str(error), 100)}>"


def first_of(value: Any, kind: Any, limit: int, depth: int) -> str:
    left, right = {list: ("[", "]"), tuple: ("(", ")")}.get(kind, ("{", "}"))
    parts: list[str] = []
    used = 0
    for item in value.items() if kind is dict else value:
        if kind is dict:
            part = f"{shown(item[0], 80, depth - 1)}: {shown(item[1], 120, depth - 1)}"
        else:
            part = shown(item, 120, depth - 1)
        used += len(part) + 2
        if parts and (used > limit or len(parts) == MOST):
            return left + ", ".join(parts) + f", ...{right} ({len(value):,} items)"
        parts.append(part)
    if kind is tuple and len(value) == 1:
        return f"({parts[0]},)"
    if kind in (set, frozenset) and not value:
        return repr(value)
    text = left + ", ".join(parts) + right
    return f"frozenset({text})" if kind is frozenset else text


def described(name: Any, value: Any) -> Described:
    kind = type(value)
    return (str(name), kind.__qualname__, shown(value), children(value), digest_of(value))


def named(name: Any, value: Any) -> Described:
    """A name and the type of its value, without text and digest: no code of the program runs."""
    return (str(name), type(value).__qualname__, "", children(value), 0)


def children(value: Any) -> int:
    """The number of items or attributes, without running code of the program."""
    kind = type(value)
    for container in (list, tuple, dict, set, frozenset):
        if issubclass(kind, container):
            return container.__len__(value)
    if kind.__module__ == "builtins":
        return 0
    attributes: Any = next((each.__dict__["__dict__"] for each in kind.__mro__ if "__dict__" in each.__dict__), None)
    return len(attributes.__get__(value)) if type(attributes) is GETS else 0
