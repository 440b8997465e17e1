"""Find quiet positions: a process waits for others, has dealt with what it received, and sent what it wanted to send.

A consistent cut need not be settled: what was received can lie in a buffer whose reader has not run, and what was taken
from a balance need not be sent yet. Just before a wait that may last it is, so that invariants hold there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from replaydbg.events.records import Control, ControlKind, Entry, Event, SwitchReason
from replaydbg.events.values import ExceptionValue, OpenFile

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
_FAILED = ("BlockingIOError", "SSLWantReadError")


@dataclass(slots=True)
class _Candidate:
    """A position at which all threads seem to wait."""

    position: int
    calling: tuple[int, ...]
    """The threads that wait in calls."""
    locked: tuple[int, ...] = ()
    """Those that wait for locks."""
    seen: set[int] = field(default_factory=set)
    """The threads that went on since."""
    is_refuted: bool = False
    """Whether one of those that waited for locks may have been able to run."""


class QuietFinder:
    """Reads the log of a process, and finds its quiet positions. Several threads: none of them can run."""

    def __init__(self, receives: Container[int]) -> None:
        """`receives` has the events that received from a channel."""
        self._receives = receives
        self._reported: set[int] = set()
        """Descriptors that a poll has reported: a receive from them does not wait."""
        self._status: dict[int, SwitchReason | None] = {0: None}
        """For each living thread why it gave way; None: it can run."""
        self._marks: dict[int, tuple[array[int], list[tuple[int, int] | None]]] = {}
        """For each thread its events, and for each that was a wait that may last its descriptor; otherwise None."""
        self._candidates: list[_Candidate] = []
        self._undecided: list[_Candidate] = []
        """Those of which it is not known yet whether a thread that waited for a lock could run."""
        self._uses: dict[int, int] = {}
        """How often each descriptor was closed: its number is used again."""
        self._never_wait: set[tuple[int, int]] = set()
        """Descriptors, each with its use, from which a receive failed instead of waiting."""

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
        found = {each.position for each in self._candidates if self._all_wait(each)}
        if end is not None:
            found.add(end)
        return array("Q", sorted(found))

    @property
    def is_alone(self) -> bool:
        """Whether one thread was left."""
        return len(self._status) == 1

    def _event(self, event: Event) -> None:
        is_wait = not event.raised and self._is_wait(event)
        descriptor = _descriptor(event)
        use = descriptor, self._uses.get(descriptor, 0)
        if event.raised and isinstance(event.outcome, ExceptionValue) and event.outcome.type.qualname in _FAILED:
            self._never_wait.add(use)
        events, waits = self._marks.setdefault(event.lane, (array("Q"), []))
        events.append(event.number)
        waits.append(use if is_wait else None)
        if is_wait and self.is_alone:
            self._candidates.append(_Candidate(event.number - 1, (event.lane,)))
        self._follow(event)

    def _switch(self, entry: Control) -> None:
        following = entry.number or 0
        self._decide(following)
        if entry.why is SwitchReason.ENDED:
            self._status.pop(entry.lane, None)
        else:
            self._status[entry.lane] = entry.why
        reasons = self._status.values()
        if (
            self._status.get(following) is SwitchReason.CROSSING
            and None not in reasons
            and SwitchReason.PREEMPTED not in reasons
        ):
            lanes = {why: tuple(each for each, reason in self._status.items() if reason is why) for why in reasons}
            locked = lanes.get(SwitchReason.LOCK, ())
            found = _Candidate(entry.after, lanes[SwitchReason.CROSSING], locked, {following})
            self._candidates.append(found)
            if locked:
                self._undecided.append(found)
        self._status[following] = None

    def _decide(self, following: int) -> None:
        """A thread that waited for a lock and could run goes on after those whose calls had ended, each at most once.

        One that was released by one of these goes on there, too. So more is left out than must be.
        """
        left = []
        for each in self._undecided:
            if following in each.locked:
                each.is_refuted = True
            elif following not in each.seen and following in each.calling:
                each.seen.add(following)
                left.append(each)
        self._undecided = left

    def _all_wait(self, candidate: _Candidate) -> bool:
        """Whether the calls of threads at a position are waits that may last; an unfinished one need not be."""
        if candidate.is_refuted:
            return False
        for lane in candidate.calling:
            events, waits = self._marks.get(lane, (array("Q"), []))
            at = bisect_right(events, candidate.position)
            use = waits[at] if at < len(events) else None
            if use is None or use in self._never_wait:
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
            self._reported.update(_number(each[0]) for each in event.outcome if isinstance(each, tuple) and each)
        elif event.gate.endswith("close"):
            descriptor = _descriptor(event)
            self._reported.discard(descriptor)
            self._uses[descriptor] = self._uses.get(descriptor, 0) + 1


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
