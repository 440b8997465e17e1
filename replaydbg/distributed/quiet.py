"""Find quiet positions: a process waits for others, has dealt with what it received, and sent what it wanted to send.

A consistent cut need not be settled: what was received can lie in a buffer whose reader has not run, and what was taken
from a balance need not be sent yet. Just before a wait that may last it is, so that invariants hold there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Container, Iterable

from replaydbg.events.records import Control, ControlKind, Entry, Event, SwitchReason
from replaydbg.events.values import OpenFile

POLLS = {"select.epoll.poll": 0, "select.poll().poll": 0, "select.select": 3}
"""Calls that wait for several descriptors, with the index of the argument that is their timeout."""

WAITS = {
    "_socket.socket._accept": None,
    "posix.wait": None,
    "posix.waitpid": 1,
    "posix.wait3": 0,
    "posix.wait4": 1,
    "posix.waitid": 2,
    "_signal.pause": None,
    "_signal.sigwait": None,
    "_signal.sigwaitinfo": None,
}
"""Calls that wait for one thing, with the index of the argument that has their options."""

_WNOHANG = 1


class QuietFinder:
    """Reads the log of a process, and finds its quiet positions. Several threads: none of them can run."""

    def __init__(self, receives: Container[int]) -> None:
        """`receives` has the events that received from a channel."""
        self._receives = receives
        self._reported: set[int] = set()
        """Descriptors that a poll has reported: a receive from them does not wait."""
        self._status: dict[int, SwitchReason | None] = {0: None}
        """For each living thread why it gave way; None: it can run."""
        self._marks: dict[int, tuple[array[int], bytearray]] = {}
        """For each thread its events, and whether each was a wait that may last."""
        self._candidates: list[tuple[int, tuple[int, ...]]] = []
        """Positions at which all threads wait, with those that wait in calls."""

    def read(self, entries: Iterable[Entry]) -> array[int]:
        """Return the quiet positions in a log, ascending."""
        end = None
        for entry in entries:
            if isinstance(entry, Event):
                self._event(entry)
            elif entry.kind is ControlKind.LANE:
                self._switch(entry)
            elif entry.kind is ControlKind.LANE_STARTED and entry.number is not None:
                self._status[entry.number] = SwitchReason.PREEMPTED
            elif entry.kind is ControlKind.END:
                end = entry.after
        found = {position for position, lanes in self._candidates if self._all_wait(position, lanes)}
        if end is not None:
            found.add(end)
        return array("Q", sorted(found))

    def _event(self, event: Event) -> None:
        is_wait = not event.raised and self._is_wait(event)
        events, waits = self._marks.setdefault(event.lane, (array("Q"), bytearray()))
        events.append(event.number)
        waits.append(is_wait)
        if is_wait and len(self._status) == 1:
            self._candidates.append((event.number - 1, ()))
        self._follow(event)

    def _switch(self, entry: Control) -> None:
        """All threads wait if the next one to go on waited in a call: one that could run would come first."""
        if entry.why is SwitchReason.ENDED:
            self._status.pop(entry.lane, None)
        else:
            self._status[entry.lane] = entry.why
        following = entry.number or 0
        reasons = self._status.values()
        if (
            self._status.get(following) is SwitchReason.CROSSING
            and None not in reasons
            and SwitchReason.PREEMPTED not in reasons
        ):
            calling = tuple(lane for lane, why in self._status.items() if why is SwitchReason.CROSSING)
            self._candidates.append((entry.after, calling))
        self._status[following] = None

    def _all_wait(self, position: int, lanes: Iterable[int]) -> bool:
        """Whether the calls of threads at a position are waits that may last; an unfinished one need not be."""
        for lane in lanes:
            events, waits = self._marks.get(lane, (array("Q"), bytearray()))
            at = bisect_right(events, position)
            if at == len(events) or not waits[at]:
                return False
        return True

    def _is_wait(self, event: Event) -> bool:
        if event.gate in POLLS:
            return _argument(event, POLLS[event.gate]) not in (0, 0.0)
        if event.gate in WAITS:
            options = WAITS[event.gate]
            value = _argument(event, options) if options is not None else 0
            if isinstance(value, int) and value & _WNOHANG:
                return False
        elif event.number not in self._receives:
            return False
        return _descriptor(event) not in self._reported

    def _follow(self, event: Event) -> None:
        """Note which descriptors were reported, and which are closed."""
        if event.gate == "select.select" and not event.raised and event.arguments:
            self._reported.update(_selected(event))
        elif event.gate in POLLS and isinstance(event.outcome, list):
            self._reported.update(each[0] for each in event.outcome if isinstance(each, tuple) and each)
        elif event.gate.endswith("close"):
            self._reported.discard(_descriptor(event))


def _argument(event: Event, index: int) -> object:
    arguments = [each for each in event.arguments or () if not isinstance(each, dict)]
    return arguments[index] if index < len(arguments) else None


def _descriptor(event: Event) -> int:
    return _number(event.arguments[0]) if event.arguments else -1


def _number(value: object) -> int:
    found = value.fd if isinstance(value, OpenFile) else value
    return found if isinstance(found, int) else -1


def _selected(event: Event) -> Iterable[int]:
    """Yield the descriptors that `select` reported: its outcome has indexes into its arguments."""
    for given, ready in zip(event.arguments or (), event.outcome or (), strict=False):
        if isinstance(given, list | tuple) and isinstance(ready, list | tuple):
            for index in ready:
                if isinstance(index, int) and 0 <= index < len(given):
                    yield _number(given[index])
