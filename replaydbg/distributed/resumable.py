"""Find the positions from which a process of a group can go on live. The latest ones repeat least.

A replay can go live before any event, and makes the call of that event again. What other threads have begun is made
again as well, so that has to be a call that waits. They need not be quiet: half-done work in memory is there again.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable

from replaydbg.distributed.quiet import POLLS, WAITS
from replaydbg.events.records import Control, ControlKind, Entry, Event, SwitchReason

_SLEEP = "time.sleep"
_FORKS = ("posix.fork", "posix.forkpty")


class ResumableFinder:
    """Reads the log of a process, and finds the positions from which it can go on."""

    def __init__(self, receives: Container[int]) -> None:
        """`receives` has the events that received from a channel."""
        self._receives = receives
        self._entered: dict[int, int] = {}
        """The threads that gave way within a call: after how many events."""
        self._refuted: set[int] = set()
        self._last = 0

    def read(self, entries: Iterable[Entry]) -> array[int]:
        """Return the positions, ascending. At the end of the log it is found out what is done with calls in flight."""
        for entry in entries:
            if isinstance(entry, Event):
                self._event(entry)
            else:
                self._control(entry)
        return array("Q", (each for each in range(self._last + 1) if each not in self._refuted))

    def _event(self, event: Event) -> None:
        begun, self._last = self._entered.pop(event.lane, None), event.number
        if begun is not None and not self._is_wait(event):
            self._refuted.update(range(begun + 1, event.number))
        if event.gate in _FORKS and _is_zero(event.outcome):  # the child: it has no other threads
            self._entered.clear()

    def _control(self, entry: Control) -> None:
        if entry.kind is ControlKind.LANE and entry.why is SwitchReason.CROSSING:
            self._entered.setdefault(entry.lane, entry.after)

    def _is_wait(self, event: Event) -> bool:
        return event.gate in POLLS or event.gate in WAITS or event.gate == _SLEEP or event.number in self._receives


def _is_zero(outcome: object) -> bool:
    first = outcome[0] if isinstance(outcome, tuple) and outcome else outcome
    return type(first) is int and not first
