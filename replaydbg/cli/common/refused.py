"""The message for an operation that the system refuses."""

from __future__ import annotations

import os

from replaydbg.errors import ReplaydbgError, clause
from replaydbg.store.leftovers import known_path


def refused(error: OSError) -> ReplaydbgError:
    """Return the error to report for `error`."""
    place = f" {_known(error.filename)!r}" if error.filename is not None else ""
    return ReplaydbgError(f"The system refused{place}: {clause(error.strerror or str(error) or type(error).__name__)}.")


def _known(name: object) -> object:
    """Return the name of a file as the user knows it; that of a descriptor is its number."""
    return known_path(os.fsdecode(name)) if isinstance(name, str | bytes) else name
