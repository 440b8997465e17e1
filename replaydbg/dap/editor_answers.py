"""What a request gives: the body of its response, and what is done when that has been sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EditorAnswer:
    """The result of a request."""

    body: dict[str, Any] | None = None
    move: Callable[[], object] | None = None
    """Moves the session. Afterwards a stop is reported, also if it did not move, or failed."""
    work: Callable[[], object] | None = None
    """What takes long, and whose results are events."""
    stop: str = ""
    """The reason for a stop to report without moving; empty: none is reported unless the position is another one."""
    is_end: bool = False
    """Whether the conversation is over."""
