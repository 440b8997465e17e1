"""How a run that was followed to its end came to it, in words."""

from __future__ import annotations

import signal
from typing import Any

from replaydbg.debugger.first_pass.run_index import RunEnding
from replaydbg.replay.result import COMPUTING

MOST_WRITTEN = 300
"""Bytes of what a changed run wrote that are shown: the last."""

BOUNDED = "computing"
"""The kind of an end that is nowhere in the log: the program computed, and for how long is known."""


def ending_of(ended: dict[str, Any], why: str, *, is_script: bool) -> RunEnding:
    """Return the end of a first pass, for its index; `why` as for `how_it_ended`."""
    status = ended["status"] if ended["kind"] == "exit" else 0
    return RunEnding(how_it_ended(ended, why), status, is_script, is_bounded=ended["kind"] == BOUNDED)


def how_it_ended(ended: dict[str, Any], why: str) -> str:
    """Return what the engine's report says; `why`: why the recording ends before the program's own end, if it does."""
    kind = ended.get("kind")
    if kind == "exit":
        status = ended["status"]
        return "the program ended" if status == 0 else f"the program ended with status {status}"
    if kind == "signal":
        return f"the program crashed: {_name(ended['status'])}"
    if kind == BOUNDED or (kind == "end" and not ended.get("detail")):
        text = f"the recording ends here: {why}" if why else "the recording ends here, before the program did"
        return text + COMPUTING if kind == BOUNDED else text
    return f"the replay diverged from the recording here: {_divergence(ended)}"


def how_a_changed_run_ended(ended: dict[str, Any], why: str) -> str:
    """Return the same of a run that was changed, with what it wrote since then."""
    kind = ended.get("kind")
    if kind in ("exit", "signal"):
        text = f"the changed run ended: {how_it_ended(ended, why)}"
    elif kind in ANSWERED_LENIENTLY:
        text = f"the changed run cannot continue: {_divergence(ended)}"
    elif kind in ("end", BOUNDED):
        text = f"the changed run cannot continue: {how_it_ended(ended, why)}"
    else:
        # A run that may not differ, since several threads were in the middle of something.
        text = f"the changed run cannot continue, because it differs from the recording here: {_divergence(ended)}"
    return text + _written(ended)


ANSWERED_LENIENTLY = ("unanswered", "stuck")
"""Kinds of ends of a run that may differ from the recording: it needs what the recording cannot answer."""


def _written(ended: dict[str, Any]) -> str:
    last: bytes = ended.get("written", b"")
    if not last:
        return ""
    shown = last[-MOST_WRITTEN:].decode("utf-8", "replace")
    cut = "..." if len(last) < ended.get("written_all", 0) or len(last) > MOST_WRITTEN else ""
    return f"; output since the change: {cut}{shown!r}"


def _divergence(ended: dict[str, Any]) -> str:
    # Imported here: it is seldom needed.
    from replaydbg.replay.report import CAUSES

    cause = CAUSES.get(str(ended.get("kind")), "").rstrip(".")
    asked = ended.get("gate")
    said = (
        f"event {ended['event']}" if ended.get("event") else "",
        f"{asked}()" if asked else "",
        ended.get("detail"),
        cause,
    )
    return ", ".join(each for each in said if each)


def _name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} ({signal.strsignal(number)})"
    except ValueError:
        return f"signal {number}"
