"""The handlers that answer orders, by the kind of the question: the part of a task that runs where its pool runs it.

Each starts processes and waits for them; none runs anything of a program, or a replay, in the calling process.
A replay sets signal handlers, which only the main thread of a process can do, and workers run tasks in other threads.
"""

from __future__ import annotations

import importlib
import threading

from replaydbg.cluster.tasks import JsonObject
from replaydbg.cluster.workplace import Handler, TaskImpossible, Workplace
from replaydbg.errors import ReplaydbgError, clause

_MODULES = {
    "commit": "replaydbg.cluster.questions.commit_handler",
    "trial": "replaydbg.cluster.questions.trial_handler",
    "code": "replaydbg.cluster.questions.code_handler",
    "values": "replaydbg.cluster.questions.values_handler",
    "run": "replaydbg.cluster.questions.run_handler",
}
"""For each kind the module with its `handle`: a worker imports what it needs."""


def answer(kind: str, order: JsonObject, place: Workplace, cancel: threading.Event) -> tuple[JsonObject, str]:
    """Answer an order; return the facts, or why there is no answer. Raises GivenUp when `cancel` is set."""
    try:
        return _handler(kind)(order, place, cancel), ""
    except (TaskImpossible, ReplaydbgError, OSError) as error:
        return {}, clause(str(error))


def _handler(kind: str) -> Handler:
    if kind not in _MODULES:
        raise TaskImpossible(f"this version of replaydbg has no tasks of the kind {kind!r}")
    handler: Handler = importlib.import_module(_MODULES[kind]).handle
    return handler
