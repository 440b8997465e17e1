"""Numbers for frames, threads and values, by which a client refers to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from replaydbg.errors import UsageError

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class ThreadHandle:
    """A thread or an asyncio task."""

    process: int
    """The number of its process in the group; 0: there is no group."""
    lane: int
    """The number of a thread; -1 of a task."""
    task: str = ""
    """The name of a task; if several have it, with their number among these."""


@dataclass(frozen=True, slots=True)
class FrameHandle:
    """A frame of a thread."""

    process: int
    lane: int
    frame: int
    """From the innermost, 0; -1: of a task that waits, whose frames are on no stack."""


@dataclass(frozen=True, slots=True)
class ValueHandle:
    """What has parts: the variables of a frame, or a value."""

    frame: FrameHandle
    expression: str = ""
    """The value; empty: the variables."""
    of_module: bool = False
    """Of the variables: whether those of the module."""
    parts: int = 0
    """How many there are of a value."""


class Numbers(Generic[K]):
    """Numbers from 1 on. One that was given out is never given to anything else."""

    def __init__(self, what: str) -> None:
        """`what`: the argument of requests that has such a number, for messages."""
        self._what = what
        self._next = 1
        self._by_key: dict[K, int] = {}
        self._by_number: dict[int, K] = {}

    def of(self, key: K) -> int:
        """Return the number of `key`, a new one at the first time."""
        if key not in self._by_key:
            self._by_key[key] = self._next
            self._by_number[self._next] = key
            self._next += 1
        return self._by_key[key]

    def at(self, number: int) -> K:
        """Return what has a number. Raises UsageError."""
        if number not in self._by_number:
            when = "belongs to an earlier stop" if 0 < number < self._next else "is unknown"
            raise UsageError(f"{self._what} {number} {when}.")
        return self._by_number[number]

    def clear(self) -> None:
        """Forget all: the session has moved."""
        self._by_key.clear()
        self._by_number.clear()
