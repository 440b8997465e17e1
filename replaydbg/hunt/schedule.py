"""The order in which lanes ran, with some preemptions left out: what a lane did stays, only who goes first changes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from replaydbg.events.records import ControlKind, Event, Why
from replaydbg.log.decode import Cursor
from replaydbg.log.encode import varint
from replaydbg.log.raw import CONTROL, LANE, Raw

_TIMED_OUT = 1
"""What a lane is told when its time is over (Wake in lanes.h)."""

_WHY = {why: number for number, why in enumerate(Why)}


@dataclass(slots=True)
class _Stretch:
    """What a lane did from going on to giving way."""

    lane: int
    order: int
    """Its place in the recording."""
    told: int
    """What it was told when it went on."""
    records: list[bytes] = field(default_factory=list)
    why: Why | None = None
    """Why it gave way; None: the log ends."""
    ticks: int = 0
    """How far it had computed since its last event or start of a lane here."""
    is_reset: bool = False
    """Whether there is one."""
    preemption: int = -1
    """Which preemption ended it, counted over the whole log."""


def without_preemptions(records: Iterable[Raw], left_out: Collection[int]) -> Iterator[bytes]:
    """Yield the records of a log, definitions aside, as if those preemptions (counted from 0) had not been.

    The lane goes on with what it did next; the others follow as soon as it gives way by itself, or has to. It is an
    order that may not be possible: the replay of it has to be lenient.
    """
    stretches = list(_stretches(records))
    if not left_out:
        yield from _written(stretches)
        return
    waiting: dict[int, deque[_Stretch]] = defaultdict(deque)
    for each in stretches:
        waiting[each.lane].append(each)
    after = {one.order: two.lane for one, two in pairwise(stretches)}
    yield from _written(list(_reordered(waiting, after, left_out)))


def _stretches(records: Iterable[Raw]) -> Iterator[_Stretch]:
    stretch = _Stretch(0, 0, 0)
    preemptions = 0
    for raw in records:
        entry = raw.entry
        if entry is None:
            continue
        if isinstance(entry, Event) or entry.kind is not ControlKind.LANE or entry.number is None:
            stretch.records.append(raw.data)
            stretch.is_reset |= isinstance(entry, Event) or entry.kind is ControlKind.LANE_STARTED
            continue
        stretch.why, stretch.ticks = entry.why, entry.ticks or 0
        if entry.why is Why.PREEMPTED:
            stretch.preemption = preemptions
            preemptions += 1
        yield stretch
        cursor = Cursor(raw.data, ())
        cursor.varint(), cursor.varint()
        stretch = _Stretch(entry.number, stretch.order + 1, cursor.varint() >> 2)
    yield stretch


def _reordered(
    waiting: dict[int, deque[_Stretch]], after: dict[int, int], left_out: Collection[int]
) -> Iterator[_Stretch]:
    lane = 0
    while True:
        stretch = waiting[lane].popleft()
        while waiting[lane] and (_is_left_out(stretch, left_out) or _is_late(stretch, waiting[lane][0])):
            stretch = _joined(stretch, waiting[lane].popleft())
        yield stretch
        left = [each[0] for each in waiting.values() if each]
        if not left:
            return
        wanted = after.get(stretch.order, lane)
        if not waiting[wanted] or (wanted == lane and stretch.why is not Why.PREEMPTED):
            others = [each for each in left if each.lane != lane] or left
            wanted = min(others, key=lambda each: each.order).lane
        lane = wanted


def _is_left_out(stretch: _Stretch, left_out: Collection[int]) -> bool:
    return stretch.why is Why.PREEMPTED and stretch.preemption in left_out


def _is_late(stretch: _Stretch, then: _Stretch) -> bool:
    """Whether the lane waited for a lock until its time was over: in another order it may get it.

    Without a record of the wait the replay lets the lane wait for the lock itself.
    """
    return stretch.why is Why.LOCK and then.told == _TIMED_OUT


def _joined(first: _Stretch, then: _Stretch) -> _Stretch:
    is_reset = then.is_reset or first.why is not Why.PREEMPTED
    return _Stretch(
        first.lane,
        then.order,
        first.told,
        first.records + then.records,
        then.why,
        # Ticks are counted from the last event, start or wait.
        then.ticks if is_reset else first.ticks + then.ticks,
        first.is_reset or is_reset,
        then.preemption,
    )


def _written(stretches: list[_Stretch]) -> Iterator[bytes]:
    for number, stretch in enumerate(stretches):
        yield from stretch.records
        if number + 1 < len(stretches) and stretch.why is not None:
            following = stretches[number + 1]
            reason = varint(_WHY[stretch.why] | following.told << 2)
            yield varint(LANE << 2 | CONTROL) + varint(following.lane) + reason + varint(stretch.ticks)
