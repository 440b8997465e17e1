"""The progress of a search for the first bad commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from replaydbg.commits.question import CommitLook


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """The progress of a search."""

    suspects: int
    """Number of commits that may still be the first bad one."""
    looked: tuple[CommitLook, ...]
    """The completed looks."""
    running: tuple[str, ...]
    """The full names of the commits that are being looked at."""


class Watcher(Protocol):
    """Receives the progress of a search."""

    def __call__(self, progress: SearchProgress) -> None:
        """Show it; called in the searching thread."""
