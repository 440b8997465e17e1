"""Export of objects from a moment of a recorded run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from replaydbg.debugger.frame_queries import At
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.errors import AskFailed, UsageError

SECONDS = 600.0
"""So long an object may take."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A part of an object that could not come along."""

    path: str
    """From the object, in source syntax; empty where the way has no name."""
    type: str
    reason: str


@dataclass(frozen=True, slots=True)
class Export:
    """An object out of the past."""

    type: str
    """The qualified name of its type."""
    text: str
    """Its repr, cut to some 400 characters."""
    data: bytes
    """As dill writes it; `replaydbg.load` reads it, and runs what is in it."""
    lost: tuple[Lost, ...]
    """What stayed behind: in its place a `replaydbg.Missing` is loaded."""


def export(view: ReplayView, expression: str, at: At) -> Export:
    """Return the value of an expression here. Raises UsageError, and AskFailed if it cannot be taken out."""
    try:
        compile(expression, "<expression>", "eval")
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{expression!r} is not valid Python: {error}.") from None
    question = {
        "do": "outgoing",
        "source": expression,
        "frame": at.frame,
        "lane": at.lane,
        "script": _script(),
        "path": _dill(),
    }
    told = view.cursor.take_out(question, seconds=SECONDS, idle=view.work.idle)
    if isinstance(told, dict):
        raise AskFailed(f"it cannot be exported: {told['failed']}")
    head, data = told
    return Export(head["type"], head["text"], data, tuple(Lost(*each) for each in head["lost"]))


@cache
def _script() -> str:
    text = (Path(__file__).parents[1] / "engine" / "probe" / "outgoing.py").read_text(encoding="utf-8")
    return text.replace("from __future__ import annotations\n", "\n")


def _dill() -> str:
    spec = find_spec("dill")
    assert spec is not None, "it is installed with replaydbg"
    assert spec.origin is not None, "it is a package"
    return str(Path(spec.origin).parents[1])
