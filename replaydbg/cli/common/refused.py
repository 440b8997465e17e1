"""The message for an operation that the system refuses."""

from __future__ import annotations

from replaydbg.errors import ReplaydbgError, clause


def refused(error: OSError) -> ReplaydbgError:
    """Return the error to report for `error`."""
    place = f" {error.filename!r}" if error.filename is not None else ""
    return ReplaydbgError(f"The system refused{place}: {clause(error.strerror or str(error) or type(error).__name__)}.")
