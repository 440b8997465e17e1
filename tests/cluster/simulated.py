"""A question that only waits, for clusters of more workers than this machine has processors.

Workers import this module at their start (`--preload`), so that they have a handler for it. Everything else is real:
the scheduler, the connections, the pieces that travel, the order of the tasks.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from replaydbg.cluster.questions import handlers
from replaydbg.cluster.tasks import ContentSink, JsonObject
from replaydbg.cluster.workplace import Workplace

handlers._MODULES["simulated"] = __name__


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """Takes so many seconds."""

    seconds: float

    @property
    def kind(self) -> str:
        return "simulated"

    def order(self, recording: Path | None, sink: ContentSink) -> JsonObject:
        assert recording is not None
        return {"recording": sink.recording(recording), "seconds": self.seconds}


def handle(order: JsonObject, place: Workplace, cancel: threading.Event) -> JsonObject:
    assert place.path(order["recording"]).exists()
    cancel.wait(order["seconds"])
    return {"verdict": "good", "why": "it waited"}
