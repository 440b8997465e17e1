"""The verdict on a moment, a recording or a commit: the answers that every search understands."""

from __future__ import annotations

import enum


class Verdict(enum.Enum):
    """The result at one moment, recording or commit."""

    GOOD = "good"
    """The failure is absent."""
    BAD = "bad"
    """The failure is present."""
    UNDECIDED = "undecided"
    """Inconclusive: neither good nor bad."""
