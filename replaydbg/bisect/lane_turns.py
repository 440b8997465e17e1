"""The lanes of a log: their identities in both runs, and where one gave way to another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from replaydbg.events.records import ControlKind, Entry, Event, SwitchReason

LaneKey = tuple[tuple[str, int], ...]
"""Identity of a thread across runs: the names from the main thread to it, each with its index among equal names."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """A place where a thread was preempted although it could have continued."""

    lane: LaneKey
    """The thread that was preempted."""
    number: int
    """The number of that lane in its recording."""
    marks: int
    """Number of its events and thread starts so far."""
    ticks: int
    """Ticks since the last of these."""
    own: int
    """The number of its last event; 0: none yet."""
    nth: int
    """How many times it had given way since, for whatever reason."""
    after: int
    """The number of the last event before, of any thread."""


class LaneSwitch(NamedTuple):
    """A switch from one thread to another."""

    lane: LaneKey
    """The thread that gave way."""
    marks: int
    """Number of its events and thread starts so far."""
    to: LaneKey
    """The thread that continues."""


class Lanes(NamedTuple):
    """The lanes of a log."""

    events: list[Event]
    lanes: dict[int, LaneKey]
    preemptions: tuple[Preemption, ...]
    turns: tuple[LaneSwitch, ...]
    afters: tuple[int, ...]


@dataclass(slots=True)
class _LaneProgress:
    """The progress of one lane."""

    marks: int = 0
    ticks: int = 0
    own: int = 0
    nth: int = 0


def read_lanes(entries: Iterable[Entry]) -> Lanes:
    """Return the events of a log, the identities of its lanes, and where they gave way."""
    events: list[Event] = []
    keys: dict[int, LaneKey] = {0: ()}
    named: dict[tuple[LaneKey, str], int] = defaultdict(int)
    far: dict[int, _LaneProgress] = defaultdict(_LaneProgress)
    preemptions: list[Preemption] = []
    turns: list[LaneSwitch] = []
    afters: list[int] = []
    for entry in entries:
        at, key = far[entry.lane], keys.get(entry.lane, ())
        if isinstance(entry, Event):
            events.append(entry)
            far[entry.lane] = _LaneProgress(at.marks + 1, own=entry.number)
        elif entry.kind is ControlKind.LANE_STARTED and entry.number is not None:
            name = entry.name or "?"
            keys[entry.number] = (*key, (name, named[key, name]))
            named[key, name] += 1
            at.marks, at.ticks = at.marks + 1, 0
        elif entry.kind is ControlKind.LANE:
            at.ticks += entry.ticks or 0
            turns.append(LaneSwitch(key, at.marks, keys.get(entry.number or 0, ())))
            afters.append(entry.after)
            if entry.why is SwitchReason.PREEMPTED:
                found = Preemption(key, entry.lane, at.marks, at.ticks, at.own, at.nth, entry.after)
                preemptions.append(found)
            at.nth += 1
    return Lanes(events, keys, tuple(preemptions), tuple(turns), tuple(afters))


def rank_of_turns(turns: Sequence[LaneSwitch]) -> Callable[[LaneKey, int], int]:
    """Return a function that maps a thread and its number of events and starts to the place in the order of a run."""
    begun: dict[LaneKey, list[tuple[int, int]]] = defaultdict(list)
    come: dict[LaneKey, int] = defaultdict(int)
    begun[()].append((0, 0))
    for number, turn in enumerate(turns, 1):
        come[turn.lane] = turn.marks
        begun[turn.to].append((come[turn.to], number))

    def rank(key: LaneKey, marks: int) -> int:
        # The last stretch that begins there or before: it contains the next event.
        found = [number for at, number in begun.get(key, ()) if at <= marks]
        return found[-1] if found else len(turns) + 1

    return rank
