"""Follow which threads run, and which of them wait: the log has each change from one thread to another."""

from __future__ import annotations

from dataclasses import dataclass

from replaydbg.events.records import Control, ControlKind, Event, Site, SwitchReason
from replaydbg.resources.event_values import argument, number_of
from replaydbg.resources.kinds import EventNumber, RunningThread


@dataclass(slots=True)
class _Thread:
    name: str
    why: SwitchReason | None
    """Why it gave way; None: it has the turn."""
    event: EventNumber = 0
    site: Site | None = None
    """Its last call."""


class ThreadStates:
    """The threads after the entries that were read so far."""

    def __init__(self) -> None:
        """Begin with the main thread."""
        self._threads: dict[int, _Thread] = {0: _Thread("MainThread", None)}

    def call(self, lane: int, number: EventNumber, site: Site) -> None:
        """Follow the end of a call."""
        thread = self._threads.setdefault(lane, _Thread(f"thread {lane}", None))
        thread.event, thread.site = number, site

    def control(self, entry: Control) -> None:
        """Follow a control record."""
        if entry.kind is ControlKind.LANE_STARTED and entry.number is not None:
            self._threads[entry.number] = _Thread(entry.name or f"thread {entry.number}", SwitchReason.PREEMPTED)
        elif entry.kind is ControlKind.LANE:
            if entry.why is SwitchReason.ENDED:
                self._threads.pop(entry.lane, None)
            elif (before := self._threads.get(entry.lane)) is not None:
                before.why = entry.why
            if entry.number is not None and (following := self._threads.get(entry.number)) is not None:
                following.why = None

    def only(self, lane: int) -> None:
        """Keep one thread: in a forked child the others do not exist."""
        self._threads = {number: thread for number, thread in self._threads.items() if number == lane}

    @property
    def inside_calls(self) -> set[int]:
        """The threads that wait inside a call."""
        return {lane for lane, thread in self._threads.items() if thread.why is SwitchReason.CROSSING}

    def frozen(self, calls: dict[int, Event]) -> tuple[RunningThread, ...]:
        """Return the threads; `calls` has the next event of each one that waits inside a call."""
        return tuple(self._frozen(lane, calls.get(lane)) for lane in sorted(self._threads))

    def _frozen(self, lane: int, call: Event | None) -> RunningThread:
        thread = self._threads[lane]
        if thread.why is SwitchReason.LOCK:
            return RunningThread(lane, thread.name, "lock", thread.event, thread.site, None)
        if thread.why is SwitchReason.CROSSING:
            if call is None:
                return RunningThread(lane, thread.name, "call", 0, thread.site, None)
            number = number_of(argument(call, 0))
            return RunningThread(lane, thread.name, call.gate, call.number, call.site, number if number >= 0 else None)
        return RunningThread(lane, thread.name, None, thread.event, thread.site, None)
