"""Collect what the agents record for a snapshot, and know all snapshots that are not complete."""

from __future__ import annotations

import threading

from replaydbg.classes import NamedTuple
from replaydbg.distributed.agents.copies import copied
from replaydbg.distributed.agents.global_state import ChannelState, GlobalState, LocalState
from replaydbg.distributed.agents.marker import Marker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

NO_MARKER = "waits for its marker"
WITHDRAWN = "a message that counted as sent was not sent in the end"
"""Why a snapshot cannot be complete although its markers arrive: the states do not fit together."""


class Route(NamedTuple):
    """A declared channel: which agent sends to which."""

    name: str
    sender: str
    receiver: str


class SnapshotCollector:
    """Collects one snapshot. Its methods can be called by any thread; those of one agent hold the agent's lock."""

    def __init__(self, marker: Marker, agents: Sequence[str], routes: Sequence[Route]) -> None:
        self.marker = marker
        self._agents, self._routes = agents, routes
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._when_done: list[Callable[[], None]] = []
        self._states: dict[str, Any] = {}
        self._messages: dict[str, list[Any]] = {route.name: [] for route in routes}
        self._waiting = {route.name: NO_MARKER for route in routes}
        self._withdrawn: set[str] = set()

    @property
    def is_complete(self) -> bool:
        """Whether all states are recorded and all markers have arrived, and nothing was withdrawn."""
        return self._done.is_set() and not self._withdrawn

    def has_state(self, agent: str) -> bool:
        """Whether the agent has recorded its state."""
        return agent in self._states

    def is_waiting(self, channel: str) -> bool:
        """Whether the marker of a channel has not arrived."""
        return channel in self._waiting

    def record_state(self, agent: str, value: Any) -> None:
        """Keep the state of an agent: a copy."""
        with self._lock:
            self._states[agent] = value
        self._finish_if_complete()

    def record_messages(self, channel: str, messages: Iterable[Any]) -> None:
        """Copy messages that were received while the recording of the channel goes on."""
        copies = [copied(each, "message") for each in messages]
        with self._lock:
            self._messages[channel] += copies

    def end_recording(self, channel: str) -> None:
        """End the recording of a channel: its marker has arrived."""
        with self._lock:
            del self._waiting[channel]
        self._finish_if_complete()

    def note_loss(self, channel: str, reason: str) -> None:
        """Keep why the marker of a channel will not arrive, or why its messages are not known (WITHDRAWN)."""
        with self._lock:
            if reason == WITHDRAWN:
                self._withdrawn.add(channel)
            elif channel in self._waiting:
                self._waiting[channel] = reason

    def state(self) -> GlobalState:
        """Return what is recorded so far."""
        with self._lock:
            return GlobalState(
                self.marker.snapshot,
                tuple(LocalState(each, self._states[each]) for each in self._agents if each in self._states),
                tuple(each for each in self._agents if each not in self._states),
                tuple(
                    ChannelState(
                        *route,
                        tuple(self._messages[route.name]),
                        WITHDRAWN if route.name in self._withdrawn else self._waiting.get(route.name, ""),
                    )
                    for route in self._routes
                ),
            )

    def wait(self, timeout: float | None) -> bool:
        """Wait until all states and markers are there, at most `timeout` seconds; return whether it is complete."""
        self._done.wait(timeout)
        return self.is_complete

    def call_when_done(self, function: Callable[[], None]) -> None:
        """Call a function when all states and markers are there, in the thread that sees it; at once if they are."""
        with self._lock:
            if not self._done.is_set():
                self._when_done.append(function)
                return
        function()

    def call_no_more(self, function: Callable[[], None]) -> None:
        """Forget a function that was to be called."""
        with self._lock:
            self._when_done = [each for each in self._when_done if each is not function]

    def _finish_if_complete(self) -> None:
        with self._lock:
            if self._waiting or len(self._states) < len(self._agents) or self._done.is_set():
                return
            self._done.set()
            functions, self._when_done = self._when_done, []
        for each in functions:
            each()


class Collectors:
    """The snapshots of a system that are not complete. It gives each its identity."""

    def __init__(self) -> None:
        self.agents: list[str] = []
        self.routes: list[Route] = []
        self._lock = threading.Lock()
        self._begun: dict[str, int] = {}
        self._open: dict[Marker, SnapshotCollector] = {}

    @property
    def have_begun(self) -> bool:
        """Whether any snapshot was begun."""
        return bool(self._begun)

    def begin(self, initiator: str) -> SnapshotCollector:
        """Return the collector of a new snapshot."""
        with self._lock:
            number = self._begun[initiator] = self._begun.get(initiator, 0) + 1
            made = SnapshotCollector(Marker(initiator, number), tuple(self.agents), tuple(self.routes))
            self._open[made.marker] = made
        # Each channel of a complete one has delivered its marker: none of them can arrive any more.
        made.call_when_done(lambda: self._forget(made.marker))
        return made

    def find(self, marker: Marker) -> SnapshotCollector | None:
        """Return the collector of a marker, or None if it belongs to no open snapshot of this system."""
        return self._open.get(marker)

    def _forget(self, marker: Marker) -> None:
        with self._lock:
            del self._open[marker]
