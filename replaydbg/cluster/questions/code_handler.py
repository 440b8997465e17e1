"""Test code of today against a recording, as `check` does: the handler of the tasks of `code_tasks`."""

from __future__ import annotations

import threading

from replaydbg.cluster.questions.tool_process import run_tool
from replaydbg.cluster.tasks import JsonObject
from replaydbg.cluster.workplace import Workplace
from replaydbg.events.verdict import Verdict


def handle(order: JsonObject, place: Workplace, cancel: threading.Event) -> JsonObject:
    """Return the verdict: `verdict`, `why`, and under `check` what `check --json` prints."""
    words = ["check", str(place.path(order["recording"])), "--json", "--quiet", "--rest-recorded"]
    for old in order["recorded"]:
        words += ["--source-root", f"{old}="]
    for old, tree in order["trees"]:
        words += ["--source-root", f"{old}={place.path(tree)}"]
    if order["expr"]:
        words += [f"--expr={order['expr']}"]
    if order["timeout"]:
        words += ["--timeout", str(order["timeout"])]
    found = run_tool("replaydbg", words, scratch=place.directory, cancel=cancel)
    found.pop("schema_version", None)
    verdict = {"good": Verdict.GOOD, "bad": Verdict.BAD}.get(found["verdict"], Verdict.UNDECIDED)
    return {"verdict": verdict.value, "why": found["sentence"], "check": found}
