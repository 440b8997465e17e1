"""Evaluation of expressions and statements in a frame."""

from __future__ import annotations

import sys

from replaydbg.engine.probe.frames import frame_of, listed, value_in
from replaydbg.engine.probe.module_names import names_of_all, with_modules
from replaydbg.engine.probe.object_content import MOST_ITEMS, attributes_of, items_of, key_name
from replaydbg.engine.probe.value_text import cut, described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.engine import queries
    from replaydbg.engine.probe.value_text import Described


class Text:
    """Takes the place of standard output."""

    encoding, errors = "utf-8", "surrogatepass"

    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, text: Any) -> int:
        self.parts.append(str(text))
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def evaluate(query: queries.Evaluate) -> dict[str, Any]:
    """An expression's value, or what a statement prints; both with what was printed and what was raised."""
    frame = frame_of(query)
    source = query.source
    # One dictionary for both: so comprehensions and lambdas in it see local variables. It is thrown away.
    known = frame.f_locals
    names = {"__builtins__": frame.f_builtins, **frame.f_globals, **known}
    names.setdefault("locals", lambda: known)
    names.setdefault("globals", lambda: frame.f_globals)
    out = sys.stdout = sys.stderr = Text()
    try:
        try:
            code, is_expression = compile(source, "<expression>", "eval"), True
        except SyntaxError:
            code, is_expression = compile(source, "<statement>", "exec"), False
        value = eval(code, with_modules(names, names_of_all(code)))
        shown_value = described("", value) if is_expression else None
        truth = bool(value) if query.truth else None
        return {"value": shown_value, "output": "".join(out.parts)[:100_000], "error": None, "truth": truth}
    except BaseException as error:
        error_text = f"{type(error).__name__}: {error}"
        return {"value": None, "output": "".join(out.parts)[:100_000], "error": cut(error_text, 2000), "truth": None}


def items(query: queries.GetItems) -> list[Described]:
    """The parts of a value: its attributes, or its items."""
    frame = frame_of(query)
    value = value_in(frame, query.source)
    first, last = query.first, query.first + min(query.most, MOST_ITEMS)
    if isinstance(value, dict):
        return listed(list(value.items())[first:last], query, key_name)
    if isinstance(value, (list, tuple, set, frozenset)):
        return listed(items_of(value, first, last), query)
    return listed(attributes_of(value)[first:last], query)


def change(query: queries.ChangeProgram) -> None:
    """Run a statement in the program itself, in the scope of a frame."""
    frame = frame_of(query)
    # Before 3.13 a second access to f_locals would fetch the old values again.
    known = frame.f_locals
    frame.f_globals.setdefault("__builtins__", frame.f_builtins)
    exec(compile(query.source, "<change>", "exec"), frame.f_globals, known)
    if sys.version_info < (3, 13) and known is not frame.f_globals:
        import ctypes

        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return None


def outgoing(query: queries.ExportObject) -> tuple[Any, bytes]:
    """Return facts about a value, and the value pickled."""
    value = value_in(frame_of(query), query.source)
    # The program's own modules come first: where it has dill, that one is taken.
    sys.path.append(query.path)
    # An object that is deep takes several calls a level. This copy ends before its stack does.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
    from replaydbg.engine.probe.outgoing import exported  # it imports dill

    return exported(value)
