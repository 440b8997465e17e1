"""Answers a search from inside the program: is it bad here? A part of the script that inside.py begins."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sys
    from typing import Any

    from replaydbg.engine.probe.value_queries import Question, Text, cut, shown

    def call_of(function: str, started: int) -> Any: ...
    def stands_at(file: str, line: int, function: str) -> bool: ...


WAS_GOOD, WAS_BAD, UNDECIDED = range(3)


def names_in(question: Question) -> tuple[dict[str, Any], str]:
    """The names that a question is about, a module's or those of a function that runs; or why there are none."""
    wanted = question["function"]
    if not wanted:
        module = sys.modules.get(question["module"])
        return (module.__dict__, "") if module is not None else ({}, f"module {question['module']} is not imported yet")
    # A call that waits in its thread, or is a generator's or coroutine's, has its variables meanwhile, too.
    frame = call_of(wanted, question["started"])
    if not frame:
        return {}, f"{wanted} {'is not running here' if frame is None else 'has several suspended calls here'}"
    return {**frame.f_globals, **locals_of(frame)}, ""


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


def names_of_all(code: Any) -> set[str]:
    """The names that are used in code and in the functions and comprehensions in it."""
    found = set(code.co_names)
    for each in code.co_consts:
        if isinstance(each, type(code)):
            found |= names_of_all(each)
    return found


def asked(question: Question) -> Any:
    """What is called with the names to answer a question: it returns the answer, or raises."""
    source = question["source"]
    if question["kind"] == "function":
        return function_of(question)
    if question["kind"] == "invariant":
        return lambda names: invariant(source)
    code = compiled(source, "<expression>", "eval")
    wanted = sorted(names_of_all(code))
    assigns = ":=" in source  # in a comprehension, to a global variable

    def evaluated(names: dict[str, Any]) -> Any:
        # A module that the program has not given a name is meant by its own.
        more = {name: sys.modules[name] for name in wanted if name not in names and name in sys.modules}
        return eval(code, {**names, **more} if more or assigns else names)

    return evaluated


def function_of(question: Question) -> Any:
    """The function of a file; it is given the names if it takes anything."""
    space: dict[str, Any] = {"__name__": "predicate", "__file__": question["file"]}
    exec(compiled(question["source"], question["file"], "exec"), space)
    function = inner = space[question["name"]]
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    if code is not None and code.co_flags & 0x20:
        raise TypeError(f"{question['name']}() is a generator, not a function that returns a verdict")
    takes_names = code is None or code.co_argcount > 0 or code.co_flags & 4
    return function if takes_names else lambda names: function()


lent: dict[str, Any] = {}


class Nowhere(Text):
    """Takes its place, and what is written is gone."""

    def write(self, text: Any) -> int:
        return len(text)


nowhere = Nowhere()


def aside(ask: Any, given: Any) -> Any:
    """Call `ask`. What it prints is dropped, and what it imports is its own: else the program would go on otherwise."""
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
    """What an invariant says that the program has given to replaydbg.check()."""
    known = dict(getattr(sys.modules.get("replaydbg"), "invariants", ()))
    if name not in known:
        raise LookupError(f"the program has not set invariant {name!r} yet")
    what = known[name]
    if type(what) is str:
        return bool(eval(what, sys.modules["__main__"].__dict__))
    return what() is not False


def judge_with(question: Question) -> Any:
    """A function without arguments that answers: good, bad or undecided, and why."""
    try:
        ask = aside(asked, question)
    except BaseException as error:
        why = cut(f"{type(error).__name__}: {error}", 500)
        return lambda: (UNDECIDED, why)
    kind = question["kind"]
    is_good_if_true = kind in ("check", "invariant")
    place = question["only_at"]

    def judged_here() -> tuple[int, str]:
        if place and not stands_at(*place):
            return UNDECIDED, "it is evaluated only elsewhere"
        try:
            names, missing = names_in(question)
            if missing:
                return UNDECIDED, missing
            is_true = bool(aside(ask, names))
        except BaseException as error:
            said = cut(f"{type(error).__name__}: {error}", 500)
            if kind == "raises":
                # These say nothing of the program.
                is_ours = isinstance(error, (NameError, RecursionError, MemoryError))
                return (UNDECIDED if is_ours else WAS_BAD), said
            return (WAS_BAD if isinstance(error, AssertionError) else UNDECIDED), said
        if kind == "raises":
            return WAS_GOOD, ""
        return (WAS_GOOD if is_true is is_good_if_true else WAS_BAD), ""

    return judged_here


def judged(question: Question) -> tuple[int, str]:
    """The answer: good, bad or undecided, and why."""
    verdict, said = judge_with(question)()
    return verdict, said


def value_of_part(question: Question) -> str | None:
    """What an expression is, as text; None: it does not exist."""
    names, missing = names_in(question)
    if missing:
        return None
    try:
        return shown(eval(compiled(question["source"], "<expression>", "eval"), dict(names)))
    except BaseException:
        return None


def judging(question: Question) -> bytes:
    """Make the function that the core calls at each line."""
    judge_here = judge_with(question)
    finds = question.get("finds")
    globals()["judge_line"] = (
        (lambda: WAS_GOOD if names_in(question)[1] else WAS_BAD)
        if finds == "names"
        else (lambda: WAS_GOOD if judge_here()[0] == UNDECIDED else WAS_BAD)
        if finds == "decided"
        else (lambda: judge_here()[0])
    )
    return b""
