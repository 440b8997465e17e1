"""Sizes, durations and exit codes as text."""

from __future__ import annotations

import signal


def show_size(size: int) -> str:
    """Return a size in bytes in human-readable form."""
    number = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def show_seconds(seconds: float) -> str:
    """Return a duration in human-readable form."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def show_status(status: int) -> str:
    """Return how a program ended: its exit code, or the signal that killed it."""
    if status >= 0:
        return f"exit code {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
