"""Count the lines of a program in Python, by the interpreter's own mechanism, without the tool.

`python step_oracle.py OUT prog.py args` writes JSON into OUT: for each function of the program's file its lines, and
how often each was begun.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

hits: Counter[tuple[str, int, int]] = Counter()
file = ""


def line(code: CodeType, number: int) -> None:
    """Called before a line runs."""
    if code.co_filename == file:
        hits[code.co_qualname, code.co_firstlineno, number] += 1


def tracer(frame: FrameType, event: str, _argument: object) -> Any:
    """The trace function of 3.11."""
    if event == "line":
        line(frame.f_code, frame.f_lineno)
    return tracer


def main() -> None:
    global file
    out, file, *args = sys.argv[1:]
    sys.argv = [file, *args]
    code = compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
    names = {"__name__": "__main__", "__file__": file, "__builtins__": __builtins__}
    if sys.version_info >= (3, 12):
        events = sys.monitoring.events
        # A tool id that no program here uses; with PY_START, without which 3.13 leaves out functions on one line.
        sys.monitoring.use_tool_id(2, "oracle")
        sys.monitoring.register_callback(2, events.LINE, line)
        sys.monitoring.set_events(2, events.LINE | events.PY_START)
        exec(code, names)
        sys.monitoring.set_events(2, 0)
    else:
        sys.settrace(tracer)
        exec(code, names)
        sys.settrace(None)
    Path(out).write_text(json.dumps([[*key, count] for key, count in sorted(hits.items())]))


if __name__ == "__main__":
    main()
