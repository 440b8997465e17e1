"""Find growth over a series of snapshots, and its holder: a leak grows steadily and is held by one object."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from replaydbg.heap.retention.holding import MINE, Holding
from replaydbg.heap.snapshot import FRAME_TYPE, Snapshot
from replaydbg.heap.walks.graph_walks import UNREACHED
from replaydbg.heap.walks.kernel import KERNEL, Column, Kernel
from replaydbg.heap.walks.object_matching import is_one_run, match

FEWEST = 4
"""Minimum number of snapshots that distinguishes growth from normal fluctuation."""

STEADY = 0.75
"""Share of the steps that must grow; none may shrink."""

MAIN_SHARE = 0.9
"""Share of the new objects of a type that its holder must hold alone."""

FOLDED = 0.8
"""Share of the growth under an object from which on an object further in that holds it is reported instead."""

MOST_TYPES = 5
"""Maximum number of types that are listed for one leak."""

MOST_CONTAINERS = 20
"""Maximum number of growing containers that are listed."""


@dataclass(frozen=True, slots=True)
class TypeCounts:
    """The number of objects of a type in each snapshot."""

    type: str
    counts: tuple[int, ...]
    bytes: tuple[int, ...]
    new: int
    """Number of objects in the last snapshot that were not in the first one."""

    @property
    def is_steady(self) -> bool:
        """Whether their number grows steadily."""
        return is_steady(self.counts)


@dataclass(frozen=True, slots=True)
class Leak:
    """An object that holds more and more."""

    path: str
    """The path of the nearest object that alone holds the growth, in source syntax; a root's name if no object does."""
    type: str
    """The type of that object."""
    items: tuple[int, ...]
    """Its number of items in each snapshot; 0 before it existed."""
    retained: tuple[int, ...]
    """Bytes that freeing it would have freed, in each snapshot."""
    types: tuple[TypeCounts, ...]
    """The growing types under it: the program's own types first."""
    type_count: int
    node: int
    """The object's node in the last snapshot; the number of nodes if there is no object."""
    moments: tuple[tuple[int, int], ...]
    """Event and step of each snapshot."""

    @property
    def text(self) -> str:
        """The verdict, as a sentence."""
        main = self.types[0]
        what = f"{main.counts[0]:,} -> {main.counts[-1]:,} {_short(main.type)}"
        about = [_short(self.type)] if self.type else []
        if self.items[-1] > self.items[0]:
            about.append(f"{self.items[0]:,} -> {self.items[-1]:,} items")
        holder = f"{self.path} ({', '.join(about)})" if about else self.path
        return f"{what} over {len(self.items)} snapshots, held by {holder}"


@dataclass(frozen=True, slots=True)
class ContainerGrowth:
    """A container that has more items in the end than when it was first seen."""

    path: str
    """In the last snapshot, in source syntax."""
    type: str
    items: tuple[int, ...]
    """Its number of items in each snapshot; 0 before it existed."""
    retained: tuple[int, ...]
    """Bytes that freeing it would have freed, in each snapshot."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth over a series of snapshots."""

    snapshots: int
    leaks: tuple[Leak, ...]
    """The leaks, largest retained size first."""
    types: tuple[TypeCounts, ...]
    """All types with more objects in the end, those with the largest growth in bytes first."""
    containers: tuple[ContainerGrowth, ...]
    """The containers whose retained size grew most, at most MOST_CONTAINERS; steady or not."""
    verdict: str
    """A summary in one sentence."""


def _short(name: str) -> str:
    return name.removeprefix("builtins.").removeprefix("__main__.")


def is_steady(counts: Sequence[int]) -> bool:
    """Whether numbers grow in most steps, and shrink in none."""
    steps = [after - before for before, after in pairwise(counts)]
    return len(counts) >= FEWEST and min(steps) >= 0 and sum(step > 0 for step in steps) >= STEADY * len(steps)


def growth(snapshots: Sequence[Snapshot | Holding], *, scope: str = MINE, kernel: Kernel = KERNEL) -> Growth:
    """Return the growth over `snapshots`, the oldest first. Fewer than FEWEST snapshots give no leak."""
    held = [each if isinstance(each, Holding) else Holding(each, kernel) for each in snapshots]
    if not held:
        return Growth(0, (), (), (), "The recording has no snapshots.")
    back = _chain(held)
    new = held[-1].kernel.missing(back[0])
    series = _series(held, new)
    leaks = _leaks(held, back, new, [each for each in series if each.is_steady], scope)
    if len(held) < FEWEST:
        verdict = f"{len(held)} snapshots are too few to find a leak: at least {FEWEST} are needed."
    elif not leaks:
        verdict = "Nothing grows steadily."
    else:
        more = f", and {len(leaks) - 1:,} more" if len(leaks) > 1 else ""
        verdict = f"Grows steadily: {leaks[0].text}{more}."
    types = tuple(each for each in series if each.counts[-1] > each.counts[0])
    return Growth(len(held), tuple(leaks), types, tuple(_containers(held, back, scope)), verdict)


def _chain(held: Sequence[Holding]) -> list[Column]:
    """Return for each snapshot the nodes of the last one's objects, or UNREACHED."""
    last = held[-1].snapshot
    at = array("I", range(len(last)))
    found = [at]
    for before, after in zip(held[-2::-1], held[:0:-1], strict=True):
        by_identity = is_one_run(before.snapshot, after.snapshot)
        to_before = match(before.snapshot, after.snapshot, after.kernel, by_identity=by_identity).to_before
        at = array("I", [UNREACHED if node == UNREACHED else to_before[node] for node in at])
        found.append(at)
    return found[::-1]


def _series(held: Sequence[Holding], new: bytes) -> list[TypeCounts]:
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(held))
    sizes: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(held))
    for number, each in enumerate(held):
        found, total = each.census()
        for name, count in found.items():
            counts[name][number] = count
            sizes[name][number] = total[name]
    added, _ = held[-1].census(new)
    series = [
        TypeCounts(name, tuple(numbers), tuple(sizes[name]), added[name])
        for name, numbers in counts.items()
        if name != FRAME_TYPE
    ]
    return sorted(series, key=lambda each: (each.bytes[0] - each.bytes[-1], each.type))


def _leaks(
    held: Sequence[Holding], back: Sequence[Column], new: bytes, series: Iterable[TypeCounts], scope: str
) -> list[Leak]:
    last = held[-1]
    by_holder: defaultdict[int, list[TypeCounts]] = defaultdict(list)
    for each in series:
        by_holder[_holder(last, each.type, new)].append(each)
    _fold(last, back[0], held[0], by_holder)
    leaks = []
    for node, types in by_holder.items():
        is_object = node < len(last.snapshot)
        if is_object and scope == MINE and last.origin(node) != MINE:
            continue
        types.sort(key=lambda each: (last.whose_type(each.type) != MINE or "." not in each.type, _is_builtin(each)))
        nodes = [column[node] if is_object else UNREACHED for column in back]
        leaks.append(
            Leak(
                path=last.path(node) if is_object else "no single object",
                type=last.snapshot.type_name(node) if is_object else "",
                items=tuple(each.items(at) if at != UNREACHED else 0 for each, at in zip(held, nodes, strict=True)),
                retained=tuple(
                    each.retained[at if is_object else -1] if at != UNREACHED or not is_object else 0
                    for each, at in zip(held, nodes, strict=True)
                ),
                types=tuple(types[:MOST_TYPES]),
                type_count=len(types),
                node=node,
                moments=tuple((each.snapshot.taken.event, each.snapshot.taken.step) for each in held),
            )
        )
    return sorted(leaks, key=lambda leak: (leak.node == len(last.snapshot), leak.retained[0] - leak.retained[-1]))


def _fold(last: Holding, back: Column, first: Holding, by_holder: dict[int, list[TypeCounts]]) -> None:
    """Merge the growth under an object into that under another one further in, if that is most of it."""
    top = len(last.snapshot)

    def grown(node: int) -> int:
        before = 0 if node == top or back[node] == UNREACHED else first.retained[back[node]]
        return last.retained[node] - before

    for inner in sorted((node for node in by_holder if node != top), key=grown):
        for outer in last.chain(inner):
            if inner in by_holder and outer in by_holder and grown(inner) >= FOLDED * grown(outer):
                by_holder[inner] += by_holder.pop(outer)


def _containers(held: Sequence[Holding], back: Sequence[Column], scope: str) -> Iterator[ContainerGrowth]:
    """Yield the containers with more items than when they were first seen, those that retain most more first."""
    last = held[-1]
    found = 0
    for _, node, first in sorted(_grown(held, back)):
        nodes = [column[node] for column in back]
        if last.items(node) <= held[first].items(nodes[first]) or (scope == MINE and last.origin(node) != MINE):
            continue
        there = list(zip(held, nodes, strict=True))
        yield ContainerGrowth(
            path=last.path(node),
            type=last.snapshot.type_name(node),
            items=tuple(each.items(at) if at != UNREACHED else 0 for each, at in there),
            retained=tuple(each.retained[at] if at != UNREACHED else 0 for each, at in there),
        )
        found += 1
        if found == MOST_CONTAINERS:
            return


def _grown(held: Sequence[Holding], back: Sequence[Column]) -> Iterator[tuple[int, int, int]]:
    """Yield the objects that retain more than when they were first seen, but for calls, modules and the newest ones.

    For each comes how much less it retained, its node in the last snapshot, and the first snapshot that has it.
    """
    last = held[-1]
    snapshot = last.snapshot
    first_edge, retained = snapshot.first_edge, last.retained
    is_object = ["." in name for name in snapshot.types]
    for node in last.dominators[1]:
        if first_edge[node] == first_edge[node + 1] or not is_object[snapshot.type[node]]:
            continue
        first = next(number for number, column in enumerate(back) if column[node] != UNREACHED)
        before = held[first].retained[back[first][node]]
        if before < retained[node]:
            yield before - retained[node], node, first


def _is_builtin(series: TypeCounts) -> tuple[bool, int]:
    return series.type.startswith("builtins."), series.bytes[0] - series.bytes[-1]


def _holder(holding: Holding, name: str, new: bytes) -> int:
    """Return the nearest object that alone holds most of the new objects of a type.

    The number of nodes if none does.
    """
    snapshot = holding.snapshot
    kinds = {number for number, each in enumerate(snapshot.types) if each == name}
    chosen = array("Q", [is_new and kind in kinds for is_new, kind in zip(new, snapshot.type, strict=True)])
    dominator, order = holding.dominators
    held = holding.kernel.retained(dominator, order, chosen)
    enough = max(1, MAIN_SHARE * held[-1])
    found = len(snapshot)
    # Those that hold enough dominate each other, and the nearest comes last.
    for node in order:
        if held[node] >= enough and (not chosen[node] or held[-1] == 1) and not holding.is_frame(node):
            found = node
    return found
