"""The time that the parts of a page may take, and what to do with one that fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from replaydbg.errors import Cancelled, ReplaydbgError, clause

_T = TypeVar("_T")


class WorkBudget:
    """Seconds that all parts of a page may take together; what comes too late is left out."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.notes: list[str] = []
        """What is missing on the page, and why."""

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is to be begun."""
        return time.monotonic() > self._until

    def part(self, what: str, work: Callable[[], _T], missing: _T) -> _T:
        """Return the result of `work`; if it fails, or comes too late, `missing` and a note. Raises Cancelled."""
        if self.is_spent:
            self.notes.append(f"No {what}: the time for this page was used up.")
            return missing
        try:
            return work()
        except Cancelled:
            raise
        except ReplaydbgError as error:
            self.notes.append(f"No {what}: {clause(str(error))}.")
            return missing
