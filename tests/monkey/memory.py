"""The memory of a process over time, and when it grows: the rule of the monkey."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

FEWEST = 60
"""Number of samples from which on growth is told from fluctuation: in the first ones caches fill."""

SHARE, ALWAYS = 0.05, 4 << 20
"""Growth that is no failure: this share, and so many bytes. Fragmentation and caches that are nearly full take some."""


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0: it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:")), 0)


def open_files(pid: int) -> int:
    """Return the number of open files of a process; 0: it has ended."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


def growth(samples: Sequence[int]) -> str:
    """Return how memory grew, or an empty string: it is flat.

    The first third of the samples is the warm-up: caches fill, sources are loaded. The median of the last third must
    not exceed that of the second one by more than SHARE and ALWAYS together.
    """
    if len(samples) < FEWEST:
        return ""
    third = len(samples) // 3
    before, after = median(samples[third : 2 * third]), median(samples[2 * third :])
    if after <= before * (1 + SHARE) + ALWAYS:
        return ""
    shown = " ".join(f"{each >> 20}" for each in samples)
    return f"resident memory grew from {before / 2**20:.0f} to {after / 2**20:.0f} MB. All samples, in MB: {shown}"
