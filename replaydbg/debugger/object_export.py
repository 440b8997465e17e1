"""Export of objects from a moment of a recorded run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.debugger.frame_queries import At
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.engine.queries import ExportObject
from replaydbg.errors import AskFailed, UsageError

SECONDS = 600.0
"""The time limit of an export."""


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
    """The parts that were not exported: a `replaydbg.Missing` is loaded in place of each."""


def export(view: ReplayView, expression: str, at: At) -> Export:
    """Return the value of an expression here. Raises UsageError, and AskFailed if it cannot be taken out."""
    try:
        compile(expression, "<expression>", "eval")
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{expression!r} is not valid Python: {error}.") from None
    query = ExportObject(at.frame, at.lane, expression, _dill())
    try:
        exported = view.cursor.take_out(query, seconds=SECONDS, idle=view.work.idle)
    except AskFailed as error:
        raise AskFailed(f"it cannot be exported: {error.reason}") from None
    lost = tuple(Lost(*each) for each in exported.lost)
    return Export(exported.type, exported.text, exported.data, lost)


def _dill() -> str:
    spec = find_spec("dill")
    assert spec is not None, "it is installed with replaydbg"
    assert spec.origin is not None, "it is a package"
    return str(Path(spec.origin).parents[1])
