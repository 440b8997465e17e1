"""Taking objects out of the past into a file, and reading them again."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replaydbg.debugger.questions import At
from replaydbg.errors import AskFailed, UsageError

if TYPE_CHECKING:
    from replaydbg.debugger.session import Session

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


class Missing:
    """Stands for a part of an object that could not come out of the past."""

    def __init__(self, what: str) -> None:
        """`what`: its type and its repr, in words."""
        self.what = what

    def __repr__(self) -> str:
        return f"<{self.what}>"


def load(path: str | os.PathLike[str]) -> Any:
    """Return the object that `replaydbg export` wrote to `path`, with a Missing in the place of each part that is not.

    As with any pickle, code that is in the file runs. Raises UsageError if it is no such file, and what the object's
    own classes raise.
    """
    # Imported here: dill changes how pickle works for the whole process.
    import dill

    class Incoming(dill.Unpickler):  # type: ignore[misc]
        def persistent_load(self, told: str) -> Missing:
            return Missing(told)

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{os.fspath(path)!r} cannot be read: {error.strerror}.") from None
    try:
        return Incoming(io.BytesIO(data)).load()
    except (dill.UnpicklingError, EOFError, KeyError, IndexError, ValueError, AttributeError, ImportError) as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise UsageError(f"{os.fspath(path)!r} cannot be loaded: {said}.") from error


def export(session: Session, expression: str, at: At) -> Export:
    """Return the value of an expression here. Raises UsageError, and AskFailed if it cannot be taken out."""
    try:
        compile(expression, "<expression>", "eval")
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{expression!r} cannot be read: {error}.") from None
    question = {
        "do": "outgoing",
        "source": expression,
        "frame": at.frame,
        "lane": at.lane,
        "script": _script(),
        "path": _dill(),
    }
    told = session.cursor.take_out(question, seconds=SECONDS, idle=session.idle)
    if isinstance(told, dict):
        raise AskFailed(f"it cannot be taken out of the program: {told['failed']}")
    head, data = told
    return Export(head["type"], head["text"], data, tuple(Lost(*each) for each in head["lost"]))


@cache
def _script() -> str:
    text = (Path(__file__).parents[1] / "engine" / "outgoing.py").read_text(encoding="utf-8")
    return text.replace("from __future__ import annotations\n", "\n")


def _dill() -> str:
    spec = find_spec("dill")
    assert spec is not None, "it is installed with replaydbg"
    assert spec.origin is not None, "it is a package"
    return str(Path(spec.origin).parents[1])
