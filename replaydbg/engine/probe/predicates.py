"""The user's predicate, evaluated inside the program."""

from __future__ import annotations

import sys

from replaydbg.engine.probe.core import builtins, call_of, judge_lines_by, stands_at
from replaydbg.engine.probe.evaluation import Text
from replaydbg.engine.probe.module_names import modules_named, names_of_all
from replaydbg.engine.probe.value_text import cut, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from replaydbg.engine import queries

MOST_TEXT = 1 << 20
"""Characters of a value that is compared with others outside the program, and so is needed as a whole."""

WAS_GOOD, WAS_BAD, UNDECIDED = range(3)
"""Verdicts, as judge.c numbers them: in the order of `replaydbg.events.verdict`, which the program does not have."""


def judged(query: queries.GetVerdict) -> tuple[int, str]:
    """The answer: good, bad or undecided, and why."""
    verdict, reason = judge_with(query)()
    return verdict, reason


def value_of_part(query: queries.GetPartValue) -> str | None:
    """Return the value of an expression as text; None: it does not exist."""
    names, missing = names_in(query)
    if missing:
        return None
    try:
        return shown(eval(compiled(query.source, "<expression>", "eval"), dict(names)))
    except BaseException:
        return None


def value_in_module(query: queries.GetModuleValue) -> tuple[str, str]:
    """Return the value of an expression as text, and why there is none."""
    names, missing = names_in(query)
    if missing:
        return "", missing
    try:
        text = repr(aside(aside(asked, query), names))
    except BaseException as error:
        return "", cut(f"{type(error).__name__}: {error}", 500)
    return (text, "") if len(text) <= MOST_TEXT else ("", f"its repr() has {len(text):,} characters")


def judging(query: queries.JudgeEachLine) -> bytes:
    """Make the function that the core calls at each line."""
    judge_here, names_here = judge_with(query), names_for(query)
    finds = query.finds
    judge_lines_by(
        (lambda: WAS_GOOD if names_here()[1] else WAS_BAD)
        if finds == "names"
        else (lambda: WAS_GOOD if judge_here()[0] == UNDECIDED else WAS_BAD)
        if finds == "decided"
        else (lambda: judge_here()[0])
    )
    return b""


def judge_with(query: queries.PredicateQuery[Any]) -> Any:
    """A function without arguments that answers: good, bad or undecided, and why."""
    try:
        ask = aside(asked, query)
    except BaseException as error:
        why = cut(f"{type(error).__name__}: {error}", 500)
        return lambda: (UNDECIDED, why)
    kind = query.kind
    is_good_if_true = kind in ("check", "invariant")
    place = query.only_at
    names_here = names_for(query)

    def judged_here() -> tuple[int, str]:
        if place and not stands_at(*place):
            return UNDECIDED, "it is evaluated only elsewhere"
        try:
            names, missing = names_here()
            if missing:
                return UNDECIDED, missing
            is_true = bool(aside(ask, names))
        except BaseException as error:
            reason = cut(f"{type(error).__name__}: {error}", 500)
            if kind == "raises":
                # These are not errors of the program.
                is_ours = isinstance(error, (NameError, RecursionError, MemoryError))
                return (UNDECIDED if is_ours else WAS_BAD), reason
            return (WAS_BAD if isinstance(error, AssertionError) else UNDECIDED), reason
        if kind == "raises":
            return WAS_GOOD, ""
        return (WAS_GOOD if is_true is is_good_if_true else WAS_BAD), ""

    return judged_here


def names_in(query: queries.PredicateQuery[Any]) -> tuple[dict[str, Any], str]:
    """Return the names that a query is about, of a module or a running function; or the reason why there are none."""
    return names_for(query)()


def names_for(query: queries.PredicateQuery[Any]) -> Callable[[], tuple[dict[str, Any], str]]:
    """Return a function that returns what `names_in` does, for use at each line."""
    wanted, module_name, started = query.function, query.module, query.started

    def names_of_module() -> tuple[dict[str, Any], str]:
        module = sys.modules.get(module_name)
        if module is None:
            return {}, f"module {module_name} is not imported yet"
        names = module.__dict__
        return (names if "__builtins__" in names else {"__builtins__": builtins, **names}), ""

    def names_of_call() -> tuple[dict[str, Any], str]:
        # A call that waits in its thread, or is a generator's or coroutine's, has its variables meanwhile, too.
        frame = call_of(wanted, started)
        if not frame:
            return {}, f"{wanted} {'is not running here' if frame is None else 'has several suspended calls here'}"
        # The globals come first: into an empty dictionary, they are copied as a whole.
        names = {**frame.f_globals, **locals_of(frame)}
        if "__builtins__" not in names:
            names["__builtins__"] = frame.f_builtins
        return names, ""

    return names_of_call if wanted else names_of_module


def locals_of(frame: Any) -> dict[str, Any]:
    known = frame.f_locals
    found = dict(known)
    # Before 3.13 a function's frame keeps what it has shown: objects would live longer than they did.
    if sys.version_info < (3, 13) and frame.f_code.co_flags & 1:
        known.clear()
    return found


def compiled(source: str, file: str, mode: str) -> Any:
    """The code, without the warnings of the compiler: they would be the program's."""
    module = sys.modules.get("warnings") or sys.modules.get("_warnings")
    filters = getattr(module, "filters", None)
    if type(filters) is not list:
        return compile(source, file, mode)
    filters.insert(0, ("ignore", None, Warning, None, 0))
    try:
        return compile(source, file, mode)
    finally:
        del filters[0]


def asked(query: queries.PredicateQuery[Any]) -> Any:
    """Return the function that evaluates the predicate with the names."""
    source = query.source
    if query.kind == "function":
        return function_of(query)
    if query.kind == "invariant":
        return lambda names: invariant(source)
    code = compiled(source, "<expression>", "eval")
    wanted = sorted(names_of_all(code))
    assigns = ":=" in source  # in a comprehension, to a global variable

    def evaluated(names: dict[str, Any]) -> Any:
        more = modules_named(names, wanted)
        return eval(code, {**names, **more} if more or assigns else names)

    return evaluated


def function_of(query: queries.PredicateQuery[Any]) -> Any:
    """The function of a file; it is given the names if it takes anything."""
    space: dict[str, Any] = {"__builtins__": builtins, "__name__": "predicate", "__file__": query.file}
    exec(compiled(query.source, query.file, "exec"), space)
    function = inner = space[query.name]
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    if code is not None and code.co_flags & 0x20:
        raise TypeError(f"{query.name}() is a generator, not a function that returns a verdict")
    takes_names = code is None or code.co_argcount > 0 or code.co_flags & 4
    return function if takes_names else lambda names: function()


lent: dict[str, Any] = {}


class Nowhere(Text):
    """Takes its place, and what is written is gone."""

    def write(self, text: Any) -> int:
        return len(text)


nowhere = Nowhere()


def aside(ask: Any, given: Any) -> Any:
    """Call `ask` without its output and imports: they would change the program's further run."""
    modules = sys.modules
    number = len(modules)
    for name, module in lent.items():
        modules.setdefault(name, module)
    out, err = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = nowhere
    try:
        return ask(given)
    finally:
        sys.stdout, sys.stderr = out, err
        if len(modules) > number:
            for name in list(modules)[number:]:
                lent[name] = modules.pop(name)


def invariant(name: str) -> Any:
    """Return the function of an invariant that the program has given to replaydbg.check()."""
    known = dict(getattr(sys.modules.get("replaydbg"), "invariants", ()))
    if name not in known:
        raise LookupError(f"the program has not set invariant {name!r} yet")
    what = known[name]
    if type(what) is str:
        return bool(eval(what, sys.modules["__main__"].__dict__))
    return what() is not False
