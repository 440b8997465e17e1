"""The message for an operation that the system refuses."""

from __future__ import annotations

import os

from replaydbg.errors import ReplaydbgError, clause
from replaydbg.store.leftovers import known_path


def refused(error: OSError) -> ReplaydbgError:
    """Return the error to report for `error`."""
    # In the place of a name there can be the number of a descriptor, which tells nobody anything.
    place = f" {_known(error.filename)!r}" if isinstance(error.filename, str | bytes) else ""
    return ReplaydbgError(f"The system refused{place}: {clause(error.strerror or str(error) or type(error).__name__)}.")


def _known(name: str | bytes) -> str:
    """Return the name of a file as the user knows it."""
    return known_path(os.fsdecode(name))
