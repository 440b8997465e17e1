"""Futures of a test under pytest: where its body begins, and how it ended.

The recorded plugin marks both in the log, as JSON (`replaydbg.pytest_plugin.shared.marks_of_tests`).
"""

from __future__ import annotations

from typing import Any

from replaydbg.events.records import Control, ControlKind
from replaydbg.log.allowance import load_json
from replaydbg.log.reader import Recording
from replaydbg.replay.ending import ExceptionFrame, Uncaught

BODY = "body"
"""What a mark does that names the beginning of a test's body."""
_BEGINS = "begin"
"""What a mark does at the beginning of a test, before its fixtures."""
_FAILED = 1


def body_of_test(recording: Recording) -> int | None:
    """Return the first event of the last test's body; None: it was skipped, or a fixture failed. Raises Corrupt."""
    found = None
    for entry in recording.events():
        if isinstance(entry, Control) and entry.kind is ControlKind.MARK:
            do = _mark(entry.name or "").get("do")
            found = entry.after + 1 if do == BODY else None if do == _BEGINS else found
    return found


def ending_of_test(text: str) -> tuple[Uncaught | None, int, str]:
    """Return how a test ended from the mark that ended its future: the exception, the exit code, and why it is unknown.

    The last one is empty if it is known.
    """
    mark = _mark(text)
    if mark.get("do") == "raised":
        file, line = mark.get("own_file"), mark.get("own_line")
        frames = (ExceptionFrame(file, line, "", False),) if isinstance(file, str) and isinstance(line, int) else ()
        message, _, _ = str(mark.get("message", "")).strip().partition("\n")  # below it, pytest shows the values
        return Uncaught(str(mark.get("type", "")), message, frames), _FAILED, ""
    if mark.get("do") != "end":
        return None, 0, "its test ended in a way that is not known"
    if mark.get("outcome") == "skipped":
        return None, 0, "its test is skipped"
    return None, 0 if mark.get("outcome") == "passed" else _FAILED, ""


def _mark(text: str) -> dict[str, Any]:
    """Return the content of a mark; empty: it is another program's, or was cut off."""
    try:
        found = load_json(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
