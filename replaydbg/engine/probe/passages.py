"""Expressions that are evaluated at each passage of a breakpoint, or before some lines of a run.

They are evaluated in the program's own process. So they have guards (replaydbg/debugger/stops/guarded_expressions.py),
and the core refuses to run code of the program meanwhile: whatever is refused, the debugger asks a copy.
"""

from __future__ import annotations

import sys

from replaydbg.engine.probe.core import answer_passages_by, builtins, names_here, run
from replaydbg.engine.probe.encoding import encoded
from replaydbg.engine.probe.module_names import names_of_all, with_modules
from replaydbg.engine.probe.predicates import MOST_TEXT, compiled
from replaydbg.engine.probe.value_text import cut, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from replaydbg.engine import queries

REFUSED = b""
"""The answer of an expression that must be asked of a copy."""

FUNCTIONS = (
    *(abs, all, any, ascii, bin, bool, bytes, callable, chr, complex, divmod, enumerate, float, frozenset, hash, hex),
    *(id, int, isinstance, issubclass, len, list, max, min, oct, ord, pow, range, repr, reversed, round, set, slice),
    *(sorted, str, sum, tuple, zip),
)
"""Built-in functions and types that change nothing, if their arguments are not iterators."""

METHODS = {
    list: ("copy", "count", "index"),
    dict: ("copy", "get", "items", "keys", "values"),
    set: (
        "copy",
        "difference",
        "intersection",
        "isdisjoint",
        "issubset",
        "issuperset",
        "symmetric_difference",
        "union",
    ),
    **dict.fromkeys((str, bytes, int, float, complex, bool, tuple, range, frozenset), ()),
}
"""Methods that change nothing, by exact types; empty: no method of the type changes anything."""


class Refused(BaseException):
    """It might change the program."""


def passing(query: queries.EvaluatePassages) -> bytes:
    """Make the function that the core calls where a breakpoint is met."""
    asked = [passage_of(condition, source) for condition, source in query.asked]
    answer_passages_by(lambda number: asked[number - 1]())
    return b""


def passage_of(condition: str, source: str) -> Callable[[], bytes | None]:
    """Return a function that answers at one passage: None if the condition is not true there."""
    code = compiled(condition, "<expression>", "eval") if condition else None
    logged = compiled(source, "<expression>", "eval") if source else None
    wanted = tuple({name for each in (code, logged) if each is not None for name in names_of_all(each)})

    def passed() -> bytes | None:
        note = ""
        names = names_here(wanted)
        if names is None:
            return REFUSED
        with_modules(names, wanted).update(GUARDS)
        try:
            if code is not None and not run(code, names):
                return None
        except Refused:
            return REFUSED
        except BaseException as error:
            note = cut(f"{type(error).__name__}: {error}", 2000)
        return encoded((note, text_of(logged, names_here(wanted), wanted) if logged is not None else ""))

    return passed


def text_of(code: CodeType, names: dict[str, Any] | None, wanted: tuple[str, ...]) -> str:
    """Return what is logged. Raises Refused."""
    if names is None:
        raise Refused
    with_modules(names, wanted).update(GUARDS)
    try:
        return shown(run(code, names))
    except Refused:
        raise
    except BaseException as error:
        return cut(f"<{type(error).__name__}: {error}>", 2000)


# ---- before some lines ----


def at_lines(query: queries.EvaluateAtLines) -> bytes:
    """Make the function that the core calls at these lines; it answers as `value_in_module` does."""
    code = compiled(query.source, "<expression>", "eval")
    wanted, module_name = tuple(names_of_all(code)), query.module

    def valued(number: int) -> bytes:
        modules = sys.modules
        if type(modules) is not dict:
            return REFUSED
        module = modules.get(module_name)
        if module is None:
            return encoded((f"module {module_name} is not imported yet", ""))
        names = module.__dict__
        if type(names) is not dict:
            return REFUSED
        seen: dict[str, Any] = {name: names[name] for name in wanted if name in names}
        seen["__builtins__"] = names.get("__builtins__", builtins)
        with_modules(seen, wanted).update(GUARDS)
        reason = text = ""
        try:
            text = repr(run(code, seen))
        except Refused:
            return REFUSED
        except BaseException as error:
            reason = cut(f"{type(error).__name__}: {error}", 500)
        if len(text) > MOST_TEXT:
            reason, text = f"its repr() has {len(text):,} characters", ""
        # What is evaluated here moves what the program allocates later: addresses would differ.
        return REFUSED if " at 0x" in text or " at 0x" in reason else encoded((reason, text))

    answer_passages_by(valued)
    return b""


# ---- guards ----


def call(function: Any, /, *given: Any, **named: Any) -> Any:
    kind = type(function)
    if kind is type(len) and type(owner := function.__self__) in METHODS:
        methods = METHODS[type(owner)]
        is_known = not methods or function.__name__ in methods
    elif kind is type(call):
        is_known = function.__code__.co_filename == "<expression>"
    elif function is type:
        is_known = len(given) == 1
    else:
        is_known = any(function is each for each in FUNCTIONS)
    # C code calls the key itself, without a guard.
    key = named.get("key")
    if not is_known or (key is not None and type(key) is not type(call) and not any(key is each for each in FUNCTIONS)):
        raise Refused
    return function(*given, **named)


def still(value: Any) -> Any:
    """Return a value that may be iterated over."""
    if hasattr(type(value), "__next__"):
        raise Refused
    return value


def item(value: Any, key: Any) -> Any:
    """Return an item of a value."""
    kind = type(value)
    if hasattr(kind, "__missing__") and key not in value:
        raise Refused
    # 3.11 would run such code without asking the core.
    if type(getattr(kind, "__getitem__", None)) is type(call):
        raise Refused
    return value[key]


GUARDS = {"__replaydbg_call": call, "__replaydbg_still": still, "__replaydbg_item": item, "__replaydbg_slice": slice}
