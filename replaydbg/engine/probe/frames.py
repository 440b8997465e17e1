"""The program's frames: the one that a query is about, its names, and expressions in it."""

from __future__ import annotations

import sys

from replaydbg.engine.probe.module_names import names_of_all, with_modules
from replaydbg.engine.probe.value_text import cut, described, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from replaydbg.engine import queries
    from replaydbg.engine.probe.value_text import Described


_LARGEST_SOURCE = 16 << 20
"""Characters of a source."""


def innermost() -> Any:
    """The program's innermost frame; None: there is none."""
    return of_program(sys._getframe())


def of_program(frame: Any) -> Any:
    """The first frame of the program at `frame` or outside it; None: there is none."""
    while frame is not None and frame.f_code.co_filename == "<probe>":
        frame = frame.f_back
    return frame


def frame_of(query: queries.FrameQuery[Any]) -> Any:
    lane = query.lane
    if lane is None:
        frame = innermost()
    else:
        # The running thread is in the probe's frames.
        frame = of_program(sys._current_frames().get(0x2C0000000000 + lane % 262144 * 4096))
    for _ in range(query.frame):
        frame = frame.f_back if frame is not None else None
    if frame is None:
        raise LookupError("no such frame")
    return frame


def names_of(frame: Any) -> list[str]:
    code = frame.f_code
    return [*code.co_varnames, *code.co_cellvars, *code.co_freevars]


def names_seen_in(frame: Any) -> dict[str, Any]:
    """The names that code in a frame sees, in a dictionary that is thrown away."""
    # Code that is evaluated with names that have no builtins would be given the probe's.
    return {"__builtins__": frame.f_builtins, **frame.f_globals, **frame.f_locals}


def value_in(frame: Any, source: str) -> Any:
    """The value of an expression in a frame."""
    code = compile(source, "<expression>", "eval")
    return eval(code, with_modules(names_seen_in(frame), names_of_all(code)))


_HIDDEN = ("__builtins__", "__annotations__", "__doc__", "__loader__", "__spec__", "__cached__")
"""Variables that each module has."""


def variables(query: queries.GetVariables) -> list[Described]:
    frame = frame_of(query)
    return listed(shown_of(frame.f_globals if query.globals else frame.f_locals), query)


def shown_of(names: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in list(names.items()) if name not in _HIDDEN]


def module_variables(query: queries.GetModuleVariables) -> list[Described]:
    names = names_of_module(sys.modules.get(query.module))
    if names is None:
        raise LookupError(f"module {query.module!r} is not loaded here")
    return listed(shown_of(names), query)


def modules(query: queries.GetModules) -> list[tuple[str, str, int]]:
    """Each loaded module with its file, and how many variables it has beside Python's own; no code of it runs."""
    found = []
    loaded: list[tuple[Any, Any]] = list(sys.modules.items())
    for name, module in loaded:
        names = names_of_module(module)
        if isinstance(name, str) and names is not None:
            file = names.get("__file__")
            count = sum(not _is_pythons_own(each) for each in list(names))
            found.append((name, file if isinstance(file, str) else "", count))
    return sorted(found)


def cached_source(query: queries.GetCachedSource) -> str | None:
    """Return the text that `linecache` has for a file that is none, such as a notebook's cell; no code of it runs."""
    names = names_of_module(sys.modules.get("linecache"))
    cache = names.get("cache") if names is not None else None
    entry = cache.get(query.file) if type(cache) is dict else None
    if type(entry) is not tuple or len(entry) != 4 or type(entry[2]) is not list:
        return None  # one that is read when it is asked for has a file
    lines = [each for each in entry[2] if type(each) is str]
    return "".join(lines) if sum(map(len, lines)) <= _LARGEST_SOURCE else None


def _is_pythons_own(name: Any) -> bool:
    """Whether it is a name such as `__file__`."""
    return issubclass(type(name), str) and str.startswith(name, "__") and str.endswith(name, "__")


def names_of_module(module: Any) -> dict[str, Any] | None:
    """The variables of a module; None: it is none, as things that programs put into `sys.modules`."""
    if not issubclass(type(module), type(sys)):
        return None
    names = object.__getattribute__(module, "__dict__")
    return names if isinstance(names, dict) else None


def arguments(query: queries.GetArguments) -> list[Described]:
    """The parameters of a frame's function, in order, as far as they still have values."""
    frame = frame_of(query)
    code = frame.f_code
    known = frame.f_locals
    number = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return listed([(name, known[name]) for name in code.co_varnames[:number] if name in known], query)


def listed(
    found: Sequence[tuple[Any, Any]], query: queries.ListQuery, name_of: Callable[[Any], str] | None = None
) -> list[Described]:
    """Those of the named values that a query asks for; `name_of` makes the name of one, which may run code."""
    wanted = found[query.start : query.stop]
    if not query.has_texts:
        return [named("" if name_of else name, value) for name, value in wanted]
    return [described(name_of(name) if name_of else name, value) for name, value in wanted]


def spans(query: queries.GetSpans) -> list[tuple[int, int, int, int]]:
    """The source of each instruction of a frame's code: lines and columns; zeros where the compiler kept none."""
    found = frame_of(query).f_code.co_positions()
    return [(line or 0, end_line or 0, column or 0, end or 0) for line, end_line, column, end in found]


def exception(query: queries.GetHandledExceptions) -> list[Any]:
    """Return the exception that the thread is handling, outermost cause last."""
    found: list[Any] = []
    error = sys.exc_info()[1]
    while error is not None and len(found) < 20:
        found.append((type(error).__qualname__, cut(str(error), 1000)))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found
