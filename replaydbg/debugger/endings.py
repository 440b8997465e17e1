"""How a run that was followed to its end came to it, in words."""

from __future__ import annotations

import signal
from typing import Any

from replaydbg.replay.result import COMPUTING

BOUNDED = "computing"
"""The kind of an end that is nowhere in the log: the program computed, and for how long is known."""


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
    return f"the replay went another way than the recording here: {_divergence(ended)}"


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
