"""How much of a heap a snapshot holds at most. What was left out it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Which = Literal["mine", "all"]
"""Whose modules the walk begins at: the program's own, or those of the standard library and installed ones as well."""


@dataclass(frozen=True, slots=True)
class Limits:
    """At most so much of everything; all of them at least 1."""

    nodes: int = 20_000_000
    """Objects."""
    edges: int = 80_000_000
    """References between them."""
    items: int = 1_000_000
    """Items of a single container that are followed."""
    text: int = 80
    """Characters of a value; at most 500."""
