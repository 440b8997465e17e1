"""Sizes, durations and exit codes as text."""

from __future__ import annotations


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
