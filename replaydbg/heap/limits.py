"""Limits on the size of a snapshot, which reports what they left out."""

from __future__ import annotations

from typing import Literal

from replaydbg.classes import dataclass

Which = Literal["mine", "all"]
"""The modules at which the walk begins: the program's own, or also those of the standard library and installed ones."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum numbers; all of them at least 1."""

    nodes: int = 20_000_000
    """Number of objects."""
    edges: int = 80_000_000
    """Number of references between them."""
    items: int = 1_000_000
    """Number of items of a single container that are followed."""
    text: int = 80
    """Length of a value's text in characters; at most 500."""
