"""What keeps memory alive, as boxes in boxes: each box is a step of the path from a root, as wide as what it retains.

A box stands for one object, or for several that are alike: the thousand requests in a list are one box, and their
attributes are one box each. So a leak is wide, whatever the number of its objects.
"""

from __future__ import annotations

from replaydbg.classes import dataclass
from replaydbg.heap.labels import MASK, PLAIN
from replaydbg.heap.retention.holding import Holding

MOST_DEPTH = 40
"""Number of steps that are followed: a linked list may have a million."""

FEW = 8
"""Number of references up to which an object's items are boxes of their own, by their keys."""

MOST_BOXES = 50
"""Number of boxes that are kept in one; the others are only a part of its size."""

LEAST_SHARE = 2000
"""A box is left out if it retains less than this part of all: no terminal has as many columns."""

MOST_OF_STEP = 3
"""Number of references in a step that are written out: more lie between an object and what alone keeps it alive."""

SEVERAL = "[*]"
"""The step of several items."""


@dataclass(frozen=True, slots=True)
class RetainingBox:
    """An object, or several that are alike, with everything that only they keep alive."""

    step: str
    """The step from the box around it, such as `.cache`, `['a']` or SEVERAL; of a root its name."""
    path: str
    """The path of the object, of several that of the largest; empty for the outermost box, the whole heap."""
    type: str
    count: int
    """Number of objects."""
    retained: int
    """Bytes that would be free without them."""
    boxes: tuple[RetainingBox, ...] = ()
    """Those inside, the largest first."""


class _Open:
    """A box that is being filled."""

    __slots__ = ("boxes", "count", "depth", "largest", "most", "retained")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.count = 0
        self.retained = 0
        self.largest = 0
        self.most = -1
        self.boxes: dict[tuple[int, int], _Open] = {}

    def add(self, node: int, retained: int) -> None:
        self.count += 1
        self.retained += retained
        if retained > self.most:
            self.largest, self.most = node, retained


def retaining_boxes(held: Holding) -> RetainingBox:
    """Return the boxes of a heap: the outermost is all of it."""
    snapshot, retained = held.snapshot, held.retained
    dominator, order = held.dominators
    top = len(snapshot)
    whole = _Open(0)
    whole.retained = retained[-1]
    box_of: list[_Open | None] = [None] * top
    box_of.append(whole)
    keys = _Keys(held)
    for node in order:
        around = box_of[dominator[node]]
        if around is None or around.depth == MOST_DEPTH:
            continue
        key = keys.of(node, is_outermost=around is whole)
        box = around.boxes.get(key)
        if box is None:
            box = around.boxes[key] = _Open(around.depth + 1)
        box.add(node, retained[node])
        box_of[node] = box
    return RetainingBox("", "", "", top, whole.retained, _closed(held, whole, whole.retained // LEAST_SHARE))


class _Keys:
    """What objects have in common that are one box: their type, and the step that leads to them."""

    def __init__(self, held: Holding) -> None:
        self._parent, self._via = held.tree
        self._snapshot = held.snapshot
        self._top = len(held.snapshot)
        self._is_attribute: dict[int, bool] = {}

    def of(self, node: int, *, is_outermost: bool) -> tuple[int, int]:
        snapshot = self._snapshot
        kind, source = snapshot.type[node], self._parent[node]
        if source == self._top:
            return -2 - node, kind  # a root
        if is_outermost:
            return -1, kind  # held by several
        label = snapshot.label[self._via[node]]
        is_one = self._attribute(label) or snapshot.first_edge[source + 1] - snapshot.first_edge[source] <= FEW
        return (label if is_one else -1), kind

    def _attribute(self, label: int) -> bool:
        if label & MASK != PLAIN:
            return False
        found = self._is_attribute.get(label)
        if found is None:
            found = self._is_attribute[label] = self._snapshot.strings.raw(label >> 4)[:1] == b"."
        return found


def _closed(held: Holding, around: _Open, least: int) -> tuple[RetainingBox, ...]:
    """Return the largest boxes inside one, with a size of at least `least`."""
    inside = [each for each in around.boxes.values() if each.retained >= max(least, 1)]
    inside.sort(key=lambda each: (-each.retained, each.largest))
    return tuple(
        RetainingBox(
            step=_step(held, each),
            path=held.path(each.largest),
            type=held.snapshot.type_name(each.largest),
            count=each.count,
            retained=each.retained,
            boxes=_closed(held, each, least),
        )
        for each in inside[:MOST_BOXES]
    )


def _step(held: Holding, box: _Open) -> str:
    """Return the references from what alone keeps an object alive to the object itself."""
    snapshot, (parent, via) = held.snapshot, held.tree
    node, until = box.largest, held.dominators[0][box.largest]
    if until == len(snapshot):
        return held.path(node) if box.count == 1 else SEVERAL
    steps = []
    while node != until:
        step = snapshot.step_text(snapshot.label[via[node]])
        # A variable of a call has the name from the source.
        steps.append(step.removeprefix(".f_locals['").removesuffix("']") if step.startswith(".f_locals['") else step)
        node = parent[node]
    if box.count > 1 and not steps[0].startswith("."):
        steps[0] = SEVERAL
    if len(steps) > MOST_OF_STEP:
        steps[1:-1] = [" ... "]
    return "".join(reversed(steps))
