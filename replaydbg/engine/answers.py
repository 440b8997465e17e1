"""What each question of `inside.py` can be answered with: the program it is put to can give any answer."""

from __future__ import annotations

from replaydbg.log.shapes import COUNT, DictOf, ListOf, one_of

FAILED = {"failed": str}
"""The answer that there is none."""

_VARIABLE = (str, str, str, COUNT, COUNT)
_TEXT_OR_NONE = one_of(None, str)

SHAPES: dict[str, object] = {
    "variables": ListOf(_VARIABLE),
    "arguments": ListOf(_VARIABLE),
    "items": ListOf(_VARIABLE),
    "evaluate": {
        "value": one_of(None, _VARIABLE),
        "output": str,
        "error": _TEXT_OR_NONE,
        "truth": one_of(None, bool),
    },
    "change": None,
    "place": one_of(("local", bool), ("global", str), ("lost", str)),
    "kinds": _TEXT_OR_NONE,
    "tasks": ListOf((str, ListOf((str, COUNT, str)), str)),
    "exception": ListOf((str, str)),
    "mutable": bool,
    "opaque": _TEXT_OR_NONE,
    "content": one_of(None, {"type": str, "text": str, "held": int, "parts": DictOf((int, str))}),
    "of_object": _VARIABLE,
    "outgoing": ({"type": str, "text": str, "lost": ListOf((str, str, str))}, bytes),
    "types_named": ListOf(str),
    "stores": ListOf(one_of(None, bool)),
    "spans": ListOf((COUNT, COUNT, COUNT, COUNT)),
    "waiting": ListOf((str, COUNT)),
    "judged": (range(3), str),
    "value_of_part": _TEXT_OR_NONE,
}
"""By the name of the question; see `shapes.fits`."""


def shape_of(question: object) -> object:
    """Return the shape of the answers to a question; of one that `inside.py` cannot read, that there is none."""
    asked = question.get("do") if isinstance(question, dict) else None
    return one_of(SHAPES[asked], FAILED) if asked in SHAPES else FAILED
