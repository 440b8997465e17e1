"""Exported objects, read from their files.

This is imported by programs that use `replaydbg.load`, so it imports nothing of the debugger.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from replaydbg.errors import UsageError


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
