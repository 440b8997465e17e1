"""The order in which lanes ran, with some preemptions left out: each lane does the same, only their order changes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from replaydbg.events.records import ControlKind, Event, SwitchReason
from replaydbg.log.coding.decode import Cursor
from replaydbg.log.coding.encode import varint
from replaydbg.log.entries.raw import CONTROL, LANE, RawRecord

_TIMED_OUT = 1
"""The wake-up reason of a lane whose timeout expired (Wake in lanes.h)."""

_WHY = {why: number for number, why in enumerate(SwitchReason)}


@dataclass(slots=True)
class _LaneStretch:
    """The work of a lane between two switches."""

    lane: int
    order: int
    """Its index in the recording."""
    wakeup: int
    """The reason for its wake-up."""
    records: list[bytes] = field(default_factory=list)
    why: SwitchReason | None = None
    """Why it gave way; None: the log ends."""
    ticks: int = 0
    """Ticks since its last event or start of a lane here."""
    is_reset: bool = False
    """Whether there is one."""
    preemption: int = -1
    """The preemption that ended it, as an index over the whole log."""
    marks: int = 0
    """Number of events and thread starts of its lane before it began."""
    starts: list[int] = field(default_factory=list)
    """The lanes that it started."""


@dataclass(frozen=True, slots=True)
class OtherTurns:
    """Alternative choices of the next lane at a switch."""

    at: frozenset[int]
    """The switches, numbered from 0 over the whole log, at which another lane is chosen; empty: none."""
    rank: Callable[[int, int], int]
    """For a lane with its number of events and starts: the lane with the lowest rank is chosen."""


class LaneChoice(NamedTuple):
    """A switch at which another lane was chosen."""

    switch: int
    """Its index over the whole log, from 0."""
    recorded: int
    """The lane that continued in the recording."""
    chosen: int
    """The lane that continues instead."""


def without_preemptions(
    records: Iterable[RawRecord], left_out: Collection[int], turns: OtherTurns | None = None
) -> Iterator[bytes]:
    """Yield the records of a log, without definitions, as if those preemptions (numbered from 0) had not happened.

    The lane continues with its next work; the others follow as soon as it gives way voluntarily, or must; `turns`
    chooses the next lane if it is not the recorded one. The order may be impossible: its replay has to be lenient.
    """
    stretches = list(_stretches(records))
    if not left_out and (turns is None or not turns.at):
        yield from _written(stretches)
        return
    yield from _written(list(_Order(stretches, left_out, turns).run()))


def choices(records: Iterable[RawRecord], left_out: Collection[int], turns: OtherTurns) -> list[LaneChoice]:
    """Return the switches where `turns` chooses another lane than the recorded one."""
    order = _Order(list(_stretches(records)), left_out, turns)
    for _ in order.run():
        pass
    return order.choices


def possible_choices(records: Iterable[RawRecord], left_out: Collection[int], turns: OtherTurns) -> list[LaneChoice]:
    """Return each switch where another lane would be chosen, if all others stay as recorded; `turns.at` is ignored."""
    order = _Order(list(_stretches(records)), left_out, replace(turns, at=frozenset()))
    for _ in order.run():
        pass
    return order.possible


def _stretches(records: Iterable[RawRecord]) -> Iterator[_LaneStretch]:
    stretch = _LaneStretch(0, 0, 0)
    preemptions = 0
    marks: dict[int, int] = defaultdict(int)
    for raw in records:
        entry = raw.entry
        if entry is None:
            continue
        if isinstance(entry, Event) or entry.kind is not ControlKind.LANE or entry.number is None:
            stretch.records.append(raw.data)
            is_start = not isinstance(entry, Event) and entry.kind is ControlKind.LANE_STARTED
            if isinstance(entry, Event) or is_start:
                stretch.is_reset = True
                marks[stretch.lane] += 1
            if is_start and entry.number is not None:
                stretch.starts.append(entry.number)
            continue
        stretch.why, stretch.ticks = entry.why, entry.ticks or 0
        if entry.why is SwitchReason.PREEMPTED:
            stretch.preemption = preemptions
            preemptions += 1
        yield stretch
        cursor = Cursor(raw.data, ())
        cursor.varint(), cursor.varint()
        wakeup = cursor.varint() >> 2
        stretch = _LaneStretch(entry.number, stretch.order + 1, wakeup, marks=marks[entry.number])
    yield stretch


class _Order:
    """Puts the stretches of a log in another order."""

    def __init__(self, stretches: list[_LaneStretch], left_out: Collection[int], turns: OtherTurns | None) -> None:
        self.left_out, self.turns = left_out, turns
        self.waiting: dict[int, deque[_LaneStretch]] = defaultdict(deque)
        for each in stretches:
            self.waiting[each.lane].append(each)
        self.after = {one.order: two.lane for one, two in pairwise(stretches)}
        self.begun = {0} | {stretches[0].lane}
        """The lanes that have been started. Threads that C code starts have no start record: they follow the log."""
        self.why: dict[int, SwitchReason | None] = {}
        """Why each lane gave way."""
        self.choices: list[LaneChoice] = []
        self.possible: list[LaneChoice] = []

    def run(self) -> Iterator[_LaneStretch]:
        lane = 0
        while True:
            stretch = self.waiting[lane].popleft()
            while self.waiting[lane] and (
                _is_left_out(stretch, self.left_out)
                or (_is_late(stretch, self.waiting[lane][0]) and self.may_get_it(stretch, lane))
            ):
                stretch = _joined(stretch, self.waiting[lane].popleft())
            yield stretch
            self.begun.update(stretch.starts)
            self.why[lane] = stretch.why
            left = [each[0] for each in self.waiting.values() if each]
            if not left:
                return
            lane = self.instead(stretch, self.next_recorded(stretch, lane, left), left)

    def may_get_it(self, stretch: _LaneStretch, lane: int) -> bool:
        """Whether a lane that timed out in the recording waits for the lock again in the new order.

        That it does not time out is one of the choices, if nothing else differs from the recording.
        """
        if self.turns is None or self.left_out:
            return True
        left = [each[0] for each in self.waiting.values() if each and each[0].lane != lane]
        if not left:
            return False
        choice = LaneChoice(stretch.order, lane, min(left, key=lambda each: each.order).lane)
        self.possible.append(choice)
        if stretch.order in self.turns.at:
            self.choices.append(choice)
        return stretch.order in self.turns.at

    def next_recorded(self, stretch: _LaneStretch, lane: int, left: list[_LaneStretch]) -> int:
        wanted = self.after.get(stretch.order, lane)
        if not self.waiting[wanted] or (wanted == lane and stretch.why is not SwitchReason.PREEMPTED):
            others = [each for each in left if each.lane != lane] or left
            wanted = min(others, key=lambda each: each.order).lane
        return wanted

    def instead(self, stretch: _LaneStretch, recorded: int, left: list[_LaneStretch]) -> int:
        if self.turns is None:
            return recorded
        rank = self.turns.rank
        # A lane that waits for a lock cannot continue before the lock is free: it continues where it was recorded.
        able = [
            each
            for each in left
            if each.lane == recorded or (each.lane in self.begun and self.why.get(each.lane) is not SwitchReason.LOCK)
        ]
        if stretch.why is not SwitchReason.PREEMPTED and len(able) > 1:
            able = [each for each in able if each.lane != stretch.lane or each.lane == recorded]
        chosen = min(able, key=lambda each: (rank(each.lane, each.marks), each.order)).lane if able else recorded
        if chosen == recorded:
            return recorded
        choice = LaneChoice(stretch.order, recorded, chosen)
        if self.possible and self.possible[-1].switch == stretch.order:
            return recorded  # a wait that timed out there is the other choice
        self.possible.append(choice)
        if stretch.order not in self.turns.at:
            return recorded
        self.choices.append(choice)
        return chosen


def _is_left_out(stretch: _LaneStretch, left_out: Collection[int]) -> bool:
    return stretch.why is SwitchReason.PREEMPTED and stretch.preemption in left_out


def _is_late(stretch: _LaneStretch, then: _LaneStretch) -> bool:
    """Whether the lane waited for a lock until it timed out: in another order it may get the lock.

    Without a record of the wait the replay lets the lane wait for the lock again.
    """
    return stretch.why is SwitchReason.LOCK and then.wakeup == _TIMED_OUT


def _joined(first: _LaneStretch, then: _LaneStretch) -> _LaneStretch:
    is_reset = then.is_reset or first.why is not SwitchReason.PREEMPTED
    return _LaneStretch(
        first.lane,
        then.order,
        first.wakeup,
        first.records + then.records,
        then.why,
        # Ticks are counted from the last event, start or wait.
        then.ticks if is_reset else first.ticks + then.ticks,
        first.is_reset or is_reset,
        then.preemption,
        first.marks,
        first.starts + then.starts,
    )


def _written(stretches: list[_LaneStretch]) -> Iterator[bytes]:
    for number, stretch in enumerate(stretches):
        yield from stretch.records
        if number + 1 < len(stretches) and stretch.why is not None:
            following = stretches[number + 1]
            reason = varint(_WHY[stretch.why] | following.wakeup << 2)
            yield varint(LANE << 2 | CONTROL) + varint(following.lane) + reason + varint(stretch.ticks)
