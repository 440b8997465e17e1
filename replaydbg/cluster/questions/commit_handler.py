"""Look at a commit of a repository, as `bisect commits` does: the handler of the tasks of `commit_tasks`."""

from __future__ import annotations

import json
import tempfile
import threading
from pathlib import Path

from replaydbg.cluster.questions.commit_facts import look_facts, question_from
from replaydbg.cluster.tasks import JsonObject
from replaydbg.cluster.workplace import Workplace, task_environment
from replaydbg.commits.looking import Looker
from replaydbg.commits.surroundings import Surroundings


def handle(order: JsonObject, place: Workplace, cancel: threading.Event) -> JsonObject:
    """Return the look at a commit as JSON data, with the recording that it made, if any, as bytes."""
    context = json.loads(place.path(order["context"]).read_text(encoding="utf-8", errors="surrogateescape"))
    recording = place.path(order["recording"]) if order["recording"] is not None else None
    worktrees = place.worktrees(order["repository"])
    question = question_from(context["question"], recording)
    taken = place.path(order["taken"]) if order["taken"] is not None else None
    root = Path(context["root"])
    around = Surroundings(
        root,
        context["prefix"],
        context["files"],
        base=task_environment() | context["environment"],
        installed=[Path(each) for each in context["installed"]],
        copies=taken,
    )
    recorded_root = question.recorded_root
    pair = (recording, recorded_root) if recording is not None and recorded_root is not None else None
    with tempfile.TemporaryDirectory(dir=place.directory) as kept:
        looker = Looker(question, worktrees, around, Path(kept), recorded=pair)
        looker.expected, looker.end = order["expected"], order["end"]
        looker.rate = tuple(order["rate"]) if order["rate"] is not None else None
        look = looker.look(order["commit"], passes=order["passes"], cancel=cancel, is_measured=order["is_measured"])
        made = Path(look.recording).read_bytes() if look.recording else None
    return look_facts(look) | {"rate": looker.rate, "has_met_ours": looker.has_met_ours, "made": made}
