"""Compare the traces of two runs: the first difference, and Python code inside crossings in one of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from replaydbg.trace.trace_files import BLOCK, Inside, Kind, TraceBlock, TraceEnd, TraceFiles, TraceItem, ending, lanes

COMMON = 6
"""Number of ticks before the first difference that are reported."""


@dataclass(frozen=True, slots=True)
class TraceSide:
    """The action of one of the runs at the difference."""

    item: TraceItem | None
    """None: the trace ended here, because the run was killed."""
    file: str = ""
    """For a tick: the file name in its code object."""
    line: int = 0
    """For a tick: the line, from 1."""
    function: str = ""
    """For a tick: the qualified name."""


@dataclass(frozen=True, slots=True)
class TraceDifference:
    """The first difference between two runs."""

    tick: int
    """Number of ticks that both ran before it, plus one."""
    event: int
    """Number of events before it, in both."""
    gate: int
    """The gate of the last of them; 0: unknown."""
    recorded: TraceSide
    """The action of the first run."""
    replayed: TraceSide
    """The action of the second one."""
    common: tuple[TraceSide, ...]
    """The last ticks and events in common, the latest last."""


@dataclass(frozen=True, slots=True)
class TraceComparison:
    """The comparison of two traces."""

    ticks: int
    """Number of equal ticks."""
    events: int
    """Number of equal events."""
    lanes: int
    """Number of lanes; 0 if unknown, because the end was not reached."""
    ending: TraceEnd
    """Why the comparison ends: WHOLE if it is complete."""
    difference: TraceDifference | None
    """None: equal as far as compared."""


class Key(NamedTuple):
    """A Python function inside a gate."""

    gate: int
    file: str
    function: str
    line: int


@dataclass(frozen=True, slots=True)
class InsideBoth:
    """A Python function that began inside a gate, with its counts in both runs."""

    key: Key
    """The function and the gate."""
    recorded: int
    """Its count in the first run."""
    replayed: int
    """Its count in the second."""
    first_event: int
    """Number of events before the first time."""


def compare(recorded: TraceFiles, replayed: TraceFiles) -> TraceComparison:
    """Find the first difference between two traces. Only the blocks around it are decoded."""
    index, blocks = _first_unequal(recorded, replayed)
    if index == min(blocks):
        return _one_is_shorter(recorded, replayed, blocks)
    one, other = recorded.block(index), replayed.block(index)
    pairs = zip(one.items, other.items, strict=False)
    place = next((at for at, (mine, its) in enumerate(pairs) if mine != its), None)
    if place is None:
        # One trace ends inside the block, without an end record.
        place = min(len(one.items), len(other.items))
    if _is_cut(one, place) or _is_cut(other, place):
        return _counted(one, place, TraceEnd.LIMIT)
    return _differ(recorded, replayed, index, place)


def insides(recorded: TraceFiles, replayed: TraceFiles) -> tuple[InsideBoth, ...]:
    """Return Python functions inside crossings: those with different counts first, then in the order of beginning."""
    first: dict[Key, int] = {}
    counts: list[Counter[Key]] = [Counter(), Counter()]
    for count, trace in zip(counts, (recorded, replayed), strict=True):
        for each in trace.insides:
            key = _key(each)
            count[key] += 1
            first[key] = min(each.event, first.get(key, each.event))
    found = [InsideBoth(key, counts[0][key], counts[1][key], event) for key, event in first.items()]
    return tuple(sorted(found, key=lambda each: (each.recorded == each.replayed, each.first_event)))


def _key(inside: Inside) -> Key:
    return Key(inside.gate, inside.code.file, inside.code.function, inside.code.first_line)


def _first_unequal(one: TraceFiles, other: TraceFiles) -> tuple[int, tuple[int, int]]:
    blocks = one.blocks, other.blocks
    with one.path.open("rb") as mine, other.path.open("rb") as its:
        for index in range(min(blocks)):
            if mine.read(BLOCK) != its.read(BLOCK):
                return index, blocks
    return min(blocks), blocks


def _is_cut(block: TraceBlock, place: int) -> bool:
    if place >= len(block.items) or block.items[place].kind is not Kind.END:
        return False
    return ending(block.items[place]) in (TraceEnd.LIMIT, TraceEnd.NO_ROOM)


def _counted(block: TraceBlock, place: int, why: TraceEnd) -> TraceComparison:
    kinds = Counter(item.kind for item in block.items[:place])
    last = block.items[place - 1] if place else None
    count = lanes(last) if last is not None and last.kind is Kind.END else 0
    return TraceComparison(block.ticks + kinds[Kind.TICK], block.events + kinds[Kind.EVENT], count, why, None)


def _one_is_shorter(recorded: TraceFiles, replayed: TraceFiles, blocks: tuple[int, int]) -> TraceComparison:
    if min(blocks) == 0:
        return TraceComparison(0, 0, 0, TraceEnd.KILLED, None)
    last = recorded.block(min(blocks) - 1)
    end = last.items[-1] if last.items else None
    if end is None or end.kind is not Kind.END:
        return _counted(last, len(last.items), TraceEnd.KILLED)
    return _counted(last, len(last.items), ending(end))


def _differ(recorded: TraceFiles, replayed: TraceFiles, index: int, place: int) -> TraceComparison:
    block, other = recorded.block(index), replayed.block(index)
    counted = _counted(block, place, TraceEnd.WHOLE)
    before = block.items[:place]
    if len(before) < COMMON and index:
        before = recorded.block(index - 1).items + before
    gate = next((item.number for item in reversed(before) if item.kind is Kind.EVENT), 0)
    difference = TraceDifference(
        tick=counted.ticks + 1,
        event=counted.events,
        gate=gate,
        recorded=_side(recorded, block, place),
        replayed=_side(replayed, other, place),
        common=tuple(_seen(recorded, item) for item in before[-COMMON:]),
    )
    return TraceComparison(counted.ticks, counted.events, 0, TraceEnd.WHOLE, difference)


def _side(trace: TraceFiles, block: TraceBlock, place: int) -> TraceSide:
    return _seen(trace, block.items[place]) if place < len(block.items) else TraceSide(None)


def _seen(trace: TraceFiles, item: TraceItem) -> TraceSide:
    if item.kind is not Kind.TICK:
        return TraceSide(item)
    code = trace.codes[item.number - 1]
    return TraceSide(item, code.file, code.line(item.instruction), code.function)
