"""Write down every line that a program runs, by the interpreter's own mechanism, in Python, without the tool.

`python travel_tracer.py OUT prog.py` writes JSON into OUT, from the first line of the program's module that is not an
import, to the module's end: for each line the thread, the activation of the frame, the suspended activations above it,
file, line, qualified name and local variables with simple values; when activations ended; and exceptions with the line
that raised them. Lines of the importer are left out.

A program of several threads is traced while it is recorded, so that the recording and the trace are of one run. There
the thread's number is `threading.get_ident()`; a program of one thread can be traced anywhere.
"""

from __future__ import annotations

import _thread
import ast
import ctypes
import json
import opcode
import sys
import threading
import types
import weakref
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

IMPORTERS = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", "<frozen zipimport>")
OPTIMIZED = 0x1
SUSPENDS = 0x20 | 0x80 | 0x200
FIRST_LANE = 0x2C0000000000
SHORT = 100
YIELD = opcode.opmap["YIELD_VALUE"]
IS_TRACED_BY_C = sys.version_info < (3, 12)

own = __file__
file = ""
first_line = 0
is_on = False
may_clear = True
# Besides lines: an activation's number where it ended, or a reference to what hung at its frame. The list's own
# method puts that there: a function of this file would run lines of its own in a program whose lines are counted.
entries: list[Any] = []
chains: dict[tuple[int, ...], int] = {}
raised: list[list[Any]] = []
ends: list[weakref.ref[Activation]] = []


class Activation:
    """Attached to a frame as its `f_trace`: identifies the activation, and shows that it has ended."""

    def __init__(self) -> None:
        self.number = len(ends)
        self.last = -1
        self.raises = False
        ends.append(weakref.ref(self, entries.append))

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Activation:
        happened(frame, event, argument)
        return self


def activation(frame: FrameType) -> Activation:
    found = frame.f_trace
    if not isinstance(found, Activation):
        frame.f_trace = found = Activation()
    return found


def lane() -> int:
    ident = threading.get_ident() - FIRST_LANE
    return ident // 4096 if 0 <= ident < 1 << 32 else 0


def is_simple(value: Any, depth: int = 2) -> bool:
    kind = type(value)
    if kind is int:
        return bool(-(10**20) < value < 10**20)
    if kind in (list, tuple, dict):
        if depth == 0 or len(value) > 20:
            return False
        return all(is_simple(each, depth - 1) for each in (value.items() if kind is dict else value))
    return value is None or kind in (bool, float, str, bytes)


def simple_locals(frame: FrameType) -> dict[str, str]:
    names = frame.f_locals
    found = {}
    for name, value in list(names.items()):
        if not name.startswith("__") and is_simple(value):
            text = repr(value)
            if len(text) <= SHORT:
                found[name] = text
    value = None
    # Before 3.13 they are copied into a dictionary that persists, and would keep their objects alive.
    if may_clear and sys.version_info < (3, 13) and frame.f_code.co_flags & OPTIMIZED:
        names.clear()
    return found


def line(frame: FrameType, number: int) -> None:
    global is_on
    code = frame.f_code
    if code.co_filename in IMPORTERS:
        return
    if not is_on:
        if code.co_filename != file or code.co_name != "<module>" or number < first_line:
            return
        is_on = True
    here = activation(frame)
    chain = []
    back = frame.f_back
    while back is not None and back.f_code.co_filename != own:
        if back.f_code.co_filename not in IMPORTERS:
            chain.append(activation(back).number)
        back = back.f_back
    here.last = len(entries)
    here.raises = False
    known = chains.setdefault(tuple(chain), len(chains))
    is_own = code.co_filename == file or code.co_filename.startswith("<")
    names = simple_locals(frame) if is_own else {}
    entry = [lane(), here.number, known, code.co_filename, number, code.co_qualname, names]
    entries.append(entry)


def raises(frame: FrameType, kind: str, traceback: TracebackType | None) -> None:
    if not is_on or frame.f_code.co_filename in IMPORTERS:
        return
    here = activation(frame)
    here.raises = True
    if traceback is not None and traceback.tb_next is None and here.last >= 0:
        raised.append([here.last, kind])


def returns(frame: FrameType) -> None:
    if is_on:
        entries.append(activation(frame).number)


# ---- 3.11 ----


def happened(frame: FrameType, event: str, argument: Any) -> None:
    if frame.f_code.co_filename == own:
        return
    if event == "line":
        line(frame, frame.f_lineno)
    elif event == "call":
        activation(frame).raises = False
    elif event == "exception":
        raises(frame, argument[0].__name__, argument[2])
    elif event == "return":
        here = activation(frame)
        yields = frame.f_code.co_code[frame.f_lasti] == YIELD and frame.f_code.co_flags & SUSPENDS
        if here.raises or not yields:
            returns(frame)


def tracer(frame: FrameType, event: str, argument: Any) -> Any:
    happened(frame, event, argument)
    return activation(frame)


EVENTS = ("call", "exception", "line", "return")


def trace_function(_: int, frame: FrameType, event: int, argument: int) -> int:
    """sys.settrace() copies local variables to and fro, and finalizers would run in it."""
    if event < len(EVENTS):
        happened(frame, EVENTS[event], ctypes.cast(argument, ctypes.py_object).value if event == 1 else None)
    return 0


FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.py_object, ctypes.c_int, ctypes.c_void_p)
called_by_c = FUNCTION(trace_function)


# threading.settrace() would be some lines late. Here no line of a new thread runs before; `start` is traced itself.
STARTER = """
from collections import deque
from functools import partial
from operator import call
from sys import settrace
def start(function, args):
    return start_new_thread(deque, (map(call, (partial(settrace, tracer), partial(function, *args))), 0))
"""


def trace_3_11(run: Any) -> None:
    if may_clear:
        set_trace = ctypes.pythonapi.PyEval_SetTrace
        set_trace.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        set_trace(ctypes.cast(called_by_c, ctypes.c_void_p), None)
        run()
        set_trace(None, None)
    else:
        names = {"start_new_thread": _thread.start_new_thread, "tracer": tracer}
        exec(compile(STARTER, "<starter>", "exec"), names)
        vars(threading)["_start_new_thread"] = names["start"]
        sys.settrace(tracer)
        run()
        sys.settrace(None)


# ---- 3.12 and later ----


def on_line(code: CodeType, number: int) -> None:
    if code.co_filename != own:
        line(sys._getframe(1), number)


def on_raise(code: CodeType, offset: int, error: BaseException) -> None:
    if code.co_filename != own:
        raises(sys._getframe(1), type(error).__name__, error.__traceback__)


def on_return(code: CodeType, offset: int, value: object) -> None:
    if code.co_filename != own:
        returns(sys._getframe(1))


def trace_3_12(run: Any) -> None:
    monitoring: Any = vars(sys)["monitoring"]
    events = monitoring.events
    monitoring.use_tool_id(2, "oracle")
    monitoring.register_callback(2, events.LINE, on_line)
    monitoring.register_callback(2, events.RAISE, on_raise)
    monitoring.register_callback(2, events.PY_RETURN, on_return)
    monitoring.register_callback(2, events.PY_UNWIND, on_return)
    # With PY_START, without which 3.13 leaves out functions on one line.
    monitoring.set_events(2, events.LINE | events.PY_START | events.RAISE | events.PY_RETURN | events.PY_UNWIND)
    run()
    monitoring.set_events(2, 0)


def told() -> dict[str, Any]:
    numbers = {id(each): number for number, each in enumerate(ends)}
    ended: dict[int, int] = {}
    places: list[int] = []
    lines: list[list[Any]] = []
    for entry in list(entries):
        places.append(len(lines))
        if isinstance(entry, list):
            lines.append(entry)
        else:
            ended.setdefault(entry if isinstance(entry, int) else numbers[id(entry)], len(lines))
    return {
        "entries": lines,
        "chains": list(chains),
        "ended": ended,
        "raised": [[places[at], kind] for at, kind in raised],
    }


def main() -> None:
    global file, first_line, may_clear, is_on
    out, file, how = sys.argv[1:]
    may_clear = how == "alone" or sys.version_info >= (3, 12)
    sys.argv = [file]
    source = Path(file).read_bytes()
    body = [each for each in ast.parse(source).body if not isinstance(each, ast.Import | ast.ImportFrom)]
    first_line = next(each.lineno for each in body if not isinstance(each, ast.Expr))
    code = compile(source, file, "exec", dont_inherit=True)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    names = module.__dict__ | {"__builtins__": __builtins__, "__file__": file}
    module.__dict__.update(names)

    def run() -> None:
        exec(code, module.__dict__)

    (trace_3_11 if IS_TRACED_BY_C else trace_3_12)(run)
    is_on = False
    Path(out).write_text(json.dumps(told()))


if __name__ == "__main__":
    main()
