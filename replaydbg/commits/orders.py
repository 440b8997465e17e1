"""What `start.py` is ordered to do in a worktree, in the process of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from replaydbg.bisect.verdict import Verdict
from replaydbg.config import load_settings
from replaydbg.record import record
from replaydbg.replay.verdict import BAD, CANNOT_TEST, GOOD, Judge

MOST_LIBERTIES = 200
"""So many liberties of one replay are kept; the others are counted."""
_VERDICTS = {GOOD: Verdict.GOOD, BAD: Verdict.BAD, CANNOT_TEST: Verdict.UNDECIDED}


def obey(order: dict[str, Any]) -> dict[str, Any]:
    """Record or replay as the order says, and return what came of it."""
    return _replay(order) if "replay" in order else _record(order)


def _record(order: dict[str, Any]) -> dict[str, Any]:
    result = record(order["program"], output=Path(order["output"]), settings=load_settings({"quiet": True}))
    return {"status": result.status, "recording": str(result.path)}


def _replay(order: dict[str, Any]) -> dict[str, Any]:
    null = os.open(os.devnull, os.O_WRONLY)
    path = Path(order["replay"])
    judge = Judge(
        path,
        path.name,
        order["sources"],
        order["check"] or None,
        stdout=null,
        stderr=null,
        # A commit may differ in a module alone that was not there to be imported when the program was recorded.
        is_replayed_unchanged=True,
    )
    verdict = judge.judge()
    os.close(null)
    liberties = [str(liberty) for liberty in verdict.result.liberties[:MOST_LIBERTIES]]
    more = sum(verdict.result.liberty_counts.values()) - len(liberties)
    liberties += [f"and {more} more"] if more > 0 else []
    why = verdict.sentence.removeprefix(f"{CANNOT_TEST}: ")
    return {"verdict": _VERDICTS[verdict.word].value, "why": why, "liberties": liberties}
