"""Look at a commit of a repository, as `bisect commits` does: the handler of the tasks of `commit_tasks`."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from replaydbg.cluster.questions.commit_facts import look_facts, question_from
from replaydbg.cluster.questions.sent_checkout import checkout_of
from replaydbg.cluster.tasks import JsonObject
from replaydbg.cluster.workplace import Workplace
from replaydbg.commits.looking import Looker


def handle(order: JsonObject, place: Workplace, cancel: threading.Event) -> JsonObject:
    """Return the look at a commit as JSON data, with the recording that it made, if any, as bytes."""
    checkout = checkout_of(order, place)
    recording = place.path(order["recording"]) if order["recording"] is not None else None
    question, around = question_from(checkout.question, recording), checkout.around
    recorded_root = question.recorded_root
    pair = (recording, recorded_root) if recording is not None and recorded_root is not None else None
    with tempfile.TemporaryDirectory(dir=place.directory) as kept:
        looker = Looker(question, checkout.worktrees, around, Path(kept), recorded=pair)
        looker.expected, looker.end = order["expected"], order["end"]
        looker.rate = tuple(order["rate"]) if order["rate"] is not None else None
        look = looker.look(order["commit"], passes=order["passes"], cancel=cancel, is_measured=order["is_measured"])
        made = Path(look.recording).read_bytes() if look.recording else None
    return look_facts(look) | {"rate": looker.rate, "has_met_ours": looker.has_met_ours, "made": made}
