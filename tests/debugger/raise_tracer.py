"""Write down every exception that a program raises, by `sys.settrace`, without the tool.

`python raise_tracer.py OUT prog.py` writes JSON into OUT: for each thread, by its name, a list of the exception's type,
the line and the function that raised it, and whether it had been raised before. An exception that only passes through a
function on its way out is not listed there. Lines of the importer are left out.
"""

from __future__ import annotations

import json
import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

IMPORTERS = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", "<frozen zipimport>")
SUSPENDS = 0x20 | 0x80 | 0x200

raised: dict[str, list[tuple[str, int, str, bool]]] = defaultdict(list)
ran: set[CodeType] = set()
# By a number, as a frame must not be kept: its objects would stay alive.
callers: dict[int, weakref.ref[Any]] = {}
resumed: dict[int, bool] = {}
file = ""


class Mark:
    """Attached to a frame as its `f_trace`: its last caller, and whether it is a generator without a line since."""

    def __init__(self, caller: FrameType | None) -> None:
        self.caller = id(caller)
        self.is_resumed = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Mark:
        if event == "exception":
            happened(frame, argument[0], argument[2], self)
        self.is_resumed = False
        return self


def caller_of(frame: FrameType) -> FrameType | None:
    back = frame.f_back
    while back is not None and back.f_code.co_filename in IMPORTERS:
        back = back.f_back
    return back


def called(frame: FrameType, event: str, argument: Any) -> Mark:
    ran.add(frame.f_code)
    mark = frame.f_trace
    if isinstance(mark, Mark):
        mark.caller = id(caller_of(frame))
    else:
        mark = Mark(caller_of(frame))
    mark.is_resumed = bool(frame.f_code.co_flags & SUSPENDS)
    return mark


def inner_frames(traceback: TracebackType) -> Iterator[FrameType]:
    inner = traceback.tb_next
    while inner is not None:
        code = inner.tb_frame.f_code
        if code.co_filename not in IMPORTERS and code in ran:
            yield inner.tb_frame
        inner = inner.tb_next


def happened(frame: FrameType, kind: type[BaseException], traceback: TracebackType | None, mark: Mark) -> None:
    code = frame.f_code
    if traceback is None or code.co_filename in IMPORTERS:
        return  # 3.12 reports the end of a generator as an exception that no code raises
    if traceback.tb_frame is not frame:
        return  # 3.11 reports the StopIteration that ends a loop to the function with the loop
    inner = next(inner_frames(traceback), None)
    if inner is not None and passes(frame, inner, mark):
        return
    if code.co_filename == file:
        name = threading.current_thread().name
        raised[name].append((kind.__name__, traceback.tb_lineno, code.co_qualname, inner is not None))


def passes(frame: FrameType, inner: FrameType, mark: Mark) -> bool:
    if mark.is_resumed:
        return True  # it was thrown into a generator
    below = inner.f_trace
    return inner is not frame and isinstance(below, Mark) and below.caller == id(frame)


def main(out: str, program: str) -> None:
    global file
    file = program
    sys.argv = sys.argv[2:]
    with open(program, encoding="utf-8") as source:  # noqa: PTH123 - nothing else is imported here
        code = compile(source.read(), program, "exec")
    names = {"__name__": "__main__", "__file__": program, "__builtins__": __builtins__}
    threading.settrace(called)
    sys.settrace(called)
    try:
        exec(code, names)
    finally:
        sys.settrace(None)
        threading.settrace(None)
    with open(out, "w", encoding="utf-8") as target:  # noqa: PTH123
        json.dump(raised, target)


if __name__ == "__main__":
    main(*sys.argv[1:3])
