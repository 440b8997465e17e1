"""What a look at one place says: the answers that every search understands."""

from __future__ import annotations

import enum


class Verdict(enum.Enum):
    """What was found at one moment, recording or commit."""

    GOOD = "good"
    """The failure is not there."""
    BAD = "bad"
    """The failure is there."""
    UNDECIDED = "undecided"
    """It cannot be told here: neither good nor bad."""
