"""Compute the resources of a process at a moment from its event log. Nothing is executed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable

from replaydbg.errors import Corrupt
from replaydbg.events.records import Control, ControlKind, Entry, Event, SwitchReason
from replaydbg.events.run_facts import Header
from replaydbg.log.entries.selected_events import PassedEvents
from replaydbg.log.reader import Recording
from replaydbg.log.transfers import read_transfers
from replaydbg.resources.descriptions import Description
from replaydbg.resources.file_events import FAILED_FILE_ACTIONS, FILE_ACTIONS
from replaydbg.resources.file_names import FileNode
from replaydbg.resources.frozen import frozen
from replaydbg.resources.kinds import EventNumber, Resources, Unknown
from replaydbg.resources.memory_events import MEMORY_ACTIONS
from replaydbg.resources.process_events import (
    FAILED_PROCESS_ACTIONS,
    PROCESS_ACTIONS,
    SENDS,
    end_fired_timers,
    sent_signal,
)
from replaydbg.resources.process_state import INHERITED, START, ProcessState
from replaydbg.resources.socket_events import FAILED_SOCKET_ACTIONS, SOCKET_ACTIONS
from replaydbg.resources.standard_input import InputFacts
from replaydbg.resources.thread_states import ThreadStates
from replaydbg.resources.tls_events import TLS_ACTIONS

_Action = Callable[[ProcessState, Event], None]
ACTIONS: dict[str, _Action] = {**FILE_ACTIONS, **SOCKET_ACTIONS, **PROCESS_ACTIONS, **MEMORY_ACTIONS, **TLS_ACTIONS}
"""The effect of each call that returned, by gate."""
FAILED_ACTIONS: dict[str, _Action] = {**FAILED_FILE_ACTIONS, **FAILED_SOCKET_ACTIONS, **FAILED_PROCESS_ACTIONS}
"""The effect of each call that raised, by gate."""
_FORKS = ("posix.fork", "posix.forkpty")
GATES = frozenset({*ACTIONS, *FAILED_ACTIONS, *SENDS, *_FORKS})
"""The gates whose events change the resources of a process."""
_MOST_OFFSET = 1 << 63
_STREAM_KINDS = {"tty": "terminal", "pipe": "pipe", "file": "file", "null": "file", "socket": "socket"}


class ResourceHistory:
    """Reads the log of a process once, and returns its resources at moments in ascending order."""

    def __init__(self, recording: Recording, entries: Iterable[Entry] | None = None) -> None:
        """Begin before the first event of an open recording, which must stay open.

        `entries` are read in place of those of its log: () if all of them come by `apply`.
        """
        self.state = _initial(recording)
        self._threads = ThreadStates()
        self._entries = iter(recording.events() if entries is None else entries)
        self._pending: list[Entry] = []
        """Entries that were read ahead, the next one last."""
        self._event, self._time_ns = 0, 0

    def at(self, event: EventNumber | None) -> Resources:
        """Return the resources right after an event, before the next call of the program ends; None: at the end.

        Raises ValueError if a later event was asked for before.
        """
        if event is not None and event < self._event:
            raise ValueError(f"event {event} is before event {self._event}")
        while (entry := self._next()) is not None:
            number = entry.number if isinstance(entry, Event) else entry.after
            if event is not None and (number or 0) > event:
                self._pending.append(entry)
                break
            self.apply(entry)
        return frozen(self.state, self._threads.frozen(self._open_calls()), self._event, self._time_ns)

    def _next(self) -> Entry | None:
        return self._pending.pop() if self._pending else next(self._entries, None)

    def _open_calls(self) -> dict[int, Event]:
        """Return the calls that threads are in, whose events come when they have ended."""
        missing, found, ahead = self._threads.inside_calls, dict[int, Event](), list[Entry]()
        while missing and (entry := self._next()) is not None:
            ahead.append(entry)
            if isinstance(entry, Event) and entry.lane in missing:
                missing.discard(entry.lane)
                found[entry.lane] = entry
        self._pending.extend(reversed(ahead))
        return found

    def apply(self, entry: Entry) -> None:
        """Read the next entry."""
        self._time_ns = entry.time_ns
        if isinstance(entry, Event):
            self._event = entry.number
            gate = entry.gate
            if self.state.handled or gate in SENDS:
                end_fired_timers(self.state, sent_signal(entry))
            apply_event(self.state, entry)
            self._threads.call(entry.lane, entry.number, entry.site)
            if gate in _FORKS and _is_child(entry):
                self._threads.only(entry.lane)
                if self.state.standard_input is not None:
                    self.state.standard_input[1].forked()
            return
        self._control(entry)

    def apply_passed(self, events: PassedEvents) -> None:
        """Read events whose gates are none of `GATES`."""
        self._event, self._time_ns = events.last, events.time_ns
        if self.state.handled:
            end_fired_timers(self.state, 0)
        for lane, (number, site) in events.by_lane.items():
            self.state.goes_on(lane)
            self._threads.call(lane, number, site)

    def _control(self, entry: Control) -> None:
        if entry.kind is ControlKind.LANE and entry.why is SwitchReason.CROSSING:
            self.state.parked(entry.lane, entry.after)
        elif entry.kind in (ControlKind.SIGNAL_INSIDE, ControlKind.SIGNAL_BETWEEN) and entry.number is not None:
            self.state.handled.append(entry.number)
        self._threads.control(entry)


def apply_event(state: ProcessState, event: Event) -> None:
    """Follow an event. Its values may be anything: what is of the wrong type changes nothing."""
    action = (FAILED_ACTIONS if event.raised else ACTIONS).get(event.gate)
    if action is not None:
        action(state, event)
    state.goes_on(event.lane)


def resources_at(recording: Recording, event: EventNumber | None = None) -> Resources:
    """Return the resources of a process right after an event; None: after the last one, 0: before the first one.

    The recording stays open. Raises Corrupt if it has no event log; a damaged one is read up to the damage.
    """
    if recording.log_header is None:
        raise Corrupt(str(recording.path), "it has no event log")
    return ResourceHistory(recording).at(event)


def _is_child(event: Event) -> bool:
    outcome = event.outcome
    return not event.raised and (outcome[0] if isinstance(outcome, tuple) and outcome else outcome) == 0


def _initial(recording: Recording) -> ProcessState:
    header = recording.header
    state = ProcessState(header.cwd, header.python.soabi)
    streams = header.stdio or ("descriptor",) * 3
    for number, kind in enumerate(streams):
        if kind != "closed":
            _inherit(state, number, _STREAM_KINDS.get(kind, "inherited descriptor"), is_null=kind == "null")
    for number in header.fds:
        _inherit(state, number, "inherited descriptor")
    _same_streams(state, header)
    _follow_input(state, header)
    endpoints, columns = read_transfers(recording)
    wanted = {number for number, each in enumerate(endpoints, 1) if each.kind == "semaphore"}
    used: Iterable[tuple[int, int]] = zip(columns.event, columns.endpoint, strict=True)
    state.endpoints = {event: endpoint for event, endpoint in used if endpoint in wanted}
    return state


def _inherit(state: ProcessState, number: int, kind: str, *, is_null: bool = False) -> None:
    unknown = Unknown("inherited, so its flags and offset are not recorded") if is_null else INHERITED
    made = Description(kind, START, unknown, offset=unknown)
    if is_null:
        made.path, made.node, made.can_seek = os.devnull, FileNode(os.devnull, mode=stat.S_IFCHR), False
    elif kind in ("file", "inherited descriptor"):
        made.node = FileNode(INHERITED)
    else:
        made.can_seek = False
    if kind == "pipe":
        made.side = "read" if number == 0 else "write"
    state.open[made] = None
    state.numbers.opened(number, made, START, close_on_exec=False, is_lowest=False)


def _follow_input(state: ProcessState, header: Header) -> None:
    made, offset = state.numbers.get(0), header.raw.get("stdin_offset")
    if made is not None:
        begins = offset if isinstance(offset, int) and 0 <= offset < _MOST_OFFSET else 0
        state.standard_input = made, InputFacts(begins)


def _same_streams(state: ProcessState, header: Header) -> None:
    """Give standard output and error one description if the header identifies them as the same stream."""
    if len(header.outputs) < 2 or header.outputs[0] != header.outputs[1] or not header.outputs[0]:
        return
    first, second = state.numbers.get(1), state.numbers.get(2)
    if first is not None and second is not None and first.kind == second.kind:
        state.numbers.opened(2, first, START, close_on_exec=False, is_lowest=False)
