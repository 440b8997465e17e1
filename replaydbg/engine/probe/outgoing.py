"""Export of an object, run in a throw-away copy of the program that may read files to import dill."""

from __future__ import annotations

import _pyio
import io
import itertools
import sys
import tempfile

from replaydbg.engine.probe.value_text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_LOST = 200

# It would try whether it can write there.
tempfile.tempdir = tempfile.tempdir or "/tmp"


def opening(module: Any) -> Callable[..., Any]:
    """Stand in for open() while dill is imported: it wants to see what comes, and nothing is opened to write here."""

    def open_nothing(file: Any, mode: str = "r", buffering: int = -1, **more: Any) -> Any:
        if buffering == 0:
            return module.FileIO(file)
        kinds = {"r": "TextIOWrapper", "rb": "BufferedReader", "r+b": "BufferedRandom", "wb": "BufferedWriter"}
        return getattr(module, kinds[mode])(module.BytesIO())

    return open_nothing


_names: dict[str, Any] = sys.modules["builtins"].__dict__
_open, _names["open"] = _names["open"], opening(io)
_pyio.open = opening(_pyio)
import dill

_names["open"] = _open


class Outgoing(dill.Pickler):  # type: ignore[misc]
    """Leaves out the objects that are known not to come along, and keeps the way to the one it is at."""

    def __init__(self, file: Any, lost: dict[int, str]) -> None:
        super().__init__(file, protocol=4, recurse=True)
        self.lost = lost
        self.way: list[Any] = []
        self.failed: list[Any] = []

    def persistent_id(self, o: Any) -> str | None:
        return self.lost.get(id(o))

    def save(self, o: Any, save_persistent_id: bool = True) -> None:
        self.way.append(o)
        try:
            super().save(o, save_persistent_id)
        except BaseException:
            self.failed = self.failed or list(self.way)
            raise
        finally:
            self.way.pop()


def step(outer: Any, inner: Any) -> str:
    """Return how one leads to the other in source syntax; empty: by nothing that has a name."""
    if isinstance(outer, dict):
        return next((f"[{shown(key, 60)}]" for key, each in outer.items() if each is inner), "")
    if isinstance(outer, (list, tuple)):
        return next((f"[{at}]" for at, each in enumerate(outer) if each is inner), "")
    found = getattr(outer, "__dict__", None)
    if found is inner:
        return ""
    names = [*(found or ()), *(name for kind in type(outer).__mro__ for name in getattr(kind, "__slots__", ()))]
    return next((f".{name}" for name in names if getattr(outer, name, None) is inner), "")


def named(way: list[Any]) -> str:
    """Return the way from the value to the last object: an attribute is one step, not two."""
    text = ""
    for outer, inner in itertools.pairwise(way):
        of_instance = step(outer, inner)
        if text.endswith("]") or not of_instance.startswith("["):
            text += of_instance
        else:
            owner = next((each for each in reversed(way) if getattr(each, "__dict__", None) is outer), None)
            text += step(owner, inner) if owner is not None else of_instance
    return text


def exported(value: Any) -> tuple[dict[str, Any], bytes]:
    """Return facts about a value, and the value as dill writes it."""
    data, lost = pickled(value)
    return {"type": type(value).__qualname__, "text": shown(value), "lost": lost}, data


def pickled(value: Any) -> tuple[bytes, list[tuple[str, str, str]]]:
    """Return the value as dill writes it, and what could not come along: the way to it, its type, and why."""
    lost: dict[int, str] = {}
    lost_parts: list[tuple[str, str, str]] = []
    while True:
        file = io.BytesIO()
        pickler = Outgoing(file, lost)
        try:
            pickler.dump(value)
            return file.getvalue(), lost_parts
        except Exception as error:
            way = pickler.failed
            if len(way) < 2 or len(lost_parts) == MOST_LOST or id(way[-1]) in lost:
                raise
            kind = type(way[-1]).__qualname__
            lost[id(way[-1])] = f"replaydbg: a {kind} was not exported: {shown(way[-1], 200)}"
            lost_parts.append((named(way), kind, f"{type(error).__name__}: {error}"[:300]))
