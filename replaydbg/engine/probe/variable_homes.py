"""Where a path of attributes and items begins, and whether it can be followed without running Python."""

from __future__ import annotations

import sys

from replaydbg.engine.probe.core import address_of, object_at
from replaydbg.engine.probe.elements import count_of, deques, has_items, item_of, ndarrays
from replaydbg.engine.probe.frames import frame_of, names_of, value_in
from replaydbg.engine.probe.module_names import step_in_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.engine import queries


def place(query: queries.FindVariable) -> tuple[str, Any]:
    """Return the namespace in which a variable lives that a frame sees: its function's own, or a module's."""
    frame, name = frame_of(query), query.name
    code = frame.f_code
    if name in names_of(frame) or (frame.f_locals is not frame.f_globals and name in frame.f_locals):
        return ("local", name in code.co_freevars)
    if name in frame.f_globals:
        home = frame.f_globals.get("__name__")
        module = sys.modules.get(home)
        if module is None or getattr(module, "__dict__", None) is not frame.f_globals:
            return ("lost", f"{name} is a global of code without a module")
        return ("global", home)
    step = step_in_module(name, query.steps)
    return ("module", step) if step is not None else ("absent", "")


def kinds(query: queries.FindObstacle) -> str | None:
    """Return the reason why a path cannot be resolved without running Python; None: it can."""
    frame = frame_of(query)
    value = value_in(frame, query.source)
    for step in query.steps:
        if step[0] == "attribute":
            hindrance = computed(value, step[1])
            if hindrance is not None:
                return hindrance
        elif not has_items(value, step[1]):
            return f"a {type(value).__name__} computes its items"
        try:
            value = getattr(value, step[1]) if step[0] == "attribute" else item_of(value, step[1])
        except (AttributeError, LookupError):
            return None  # it may have been there
    return None


def rows(query: queries.FindRows) -> list[int]:
    """The steps that lead to a row of an array: numpy makes an object for it whenever it is asked for."""
    value, found = value_in(frame_of(query), query.source), []
    for at, step in enumerate(query.steps):
        inner = getattr(value, step[1]) if step[0] == "attribute" else item_of(value, step[1])
        if step[0] == "item" and isinstance(value, ndarrays()) and value.ndim > count_of(step[1]):
            found.append(at)
        value = inner
    return found


def entry(query: queries.FindEntry) -> tuple[int, int, int] | None:
    """Return the key that a dictionary holds for a key, with its hash; if it holds none, the key itself.

    None: it is not a dictionary.
    """
    frame = frame_of(query)
    container, key = value_in(frame, query.container), value_in(frame, query.key)
    if not isinstance(container, dict):
        return None
    wanted = hash(key)
    held = next((each for each in dict.__iter__(container) if each is key), None)
    if held is None and dict.__contains__(container, key):
        held = next((each for each in dict.__iter__(container) if hash(each) == wanted and each == key), None)
    held = key if held is None else held
    return address_of(held), address_of(type(held)), wanted


def sequence(query: queries.GetSequence) -> tuple[bool, list[int]]:
    """Return whether an expression names a sequence, and the addresses of its items."""
    owner: Any = object_at(*query.owner)
    kinds: tuple[Any, ...] = (list, *deques())
    if not isinstance(owner, kinds) or len(owner) > query.most:
        raise TypeError("it is not a list or a deque, or too long")
    try:
        is_named = value_in(frame_of(query), query.source) is owner
    except Exception:
        is_named = False
    return is_named, list(map(address_of, owner))


def computed(value: Any, name: str) -> str | None:
    """Why an attribute cannot be followed: it is not held by the object itself or by its class."""
    kind = type(value)
    if isinstance(value, (type, type(sys))):
        return None
    of_type = next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)
    if isinstance(of_type, property):
        return f"{name} is a property of {kind.__name__}, which is computed"
    is_slot = type(of_type).__name__ == "member_descriptor"
    if name in getattr(value, "__dict__", ()) or is_slot:
        return None
    if of_type is None and hasattr(value, name):
        return f"a {kind.__name__} computes its attribute {name}"
    if hasattr(type(of_type), "__get__"):
        return f"{name} is computed by a {type(of_type).__name__} of {kind.__name__}"
    return None
