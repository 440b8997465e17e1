"""The difference between two snapshots of a run, or of two runs."""

from __future__ import annotations

import heapq
from collections import Counter
from functools import cached_property
from itertools import islice

from replaydbg.heap.comparison.aliases import MOST_NAMES, AliasChange, find_aliases
from replaydbg.heap.comparison.diff_results import (
    ADDED,
    PARTED,
    REMOVED,
    RETYPED,
    Alias,
    Change,
    Diff,
    Grown,
    Hidden,
    Section,
    Side,
    TypeChange,
)
from replaydbg.heap.comparison.object_diff import EdgeChange, ObjectComparer
from replaydbg.heap.retention.holding import MINE, ORIGINS, STANDARD, Holding, RetainedGroup
from replaydbg.heap.snapshot import FRAME_TYPE, Snapshot
from replaydbg.heap.walks.kernel import KERNEL, Kernel
from replaydbg.heap.walks.object_comparison import Columns, Matching
from replaydbg.heap.walks.object_matching import is_one_run, match

SCOPES = {MINE: (MINE,), STANDARD: (MINE, STANDARD), "all": ORIGINS}
"""The origins of objects that each scope reports."""

FEW = 3
"""Number of added or removed items of one container that are listed individually when not all are."""

MOST = 20
"""Default maximum number of answers in a section."""


def diff(
    before: Snapshot | Holding,
    after: Snapshot | Holding,
    *,
    most: int | None = MOST,
    scope: str = MINE,
    by_identity: bool | None = None,
    kernel: Kernel = KERNEL,
) -> Diff:
    """Return the differences of two snapshots, at most `most` answers in each section (None: all of them).

    Two snapshots of a process are compared by identity, others by the paths to objects and their content; `by_identity`
    overrides that. A Holding in place of a snapshot saves the walks that it has done.
    """
    old = before if isinstance(before, Holding) else Holding(before, kernel)
    new = after if isinstance(after, Holding) else Holding(after, kernel)
    if by_identity is None:
        by_identity = is_one_run(old.snapshot, new.snapshot)
    return _Differ(old, new, by_identity=by_identity, most=most, scope=scope).run()


class _Differ:
    def __init__(self, before: Holding, after: Holding, *, by_identity: bool, most: int | None, scope: str) -> None:
        self.before, self.after = before, after
        self.by_identity = by_identity
        self.most = most
        self.scope = scope
        self.scope_origins = SCOPES[scope]
        self.matching: Matching = match(before.snapshot, after.snapshot, before.kernel, by_identity=by_identity)
        self.comparer = ObjectComparer(before.snapshot, after.snapshot, self.matching)

    def run(self) -> Diff:
        """Compute all sections."""
        changed, hidden_changes = self._changed()
        grown, hidden_grown = self._grown()
        types, hidden_types = self._types()
        new, hidden_new = self._retained_groups(self.after, self.is_added)
        gone, hidden_gone = self._retained_groups(self.before, self.is_removed)
        aliases, hidden_aliases = self._aliases()
        return Diff(
            before=_side(self.before),
            after=_side(self.after),
            is_same_run=self.by_identity,
            scope=self.scope,
            changed=changed,
            grown=grown,
            types=types,
            new=new,
            gone=gone,
            aliases=aliases,
            hidden=Hidden(hidden_changes, hidden_grown, hidden_types, hidden_new, hidden_gone, hidden_aliases),
        )

    @cached_property
    def is_added(self) -> bytes:
        """For each node after, whether it is new."""
        return self.after.kernel.missing(self.matching.to_before)

    @cached_property
    def is_removed(self) -> bytes:
        """For each node before, whether it has been removed."""
        return self.before.kernel.missing(self.matching.to_after)

    @cached_property
    def raws(self) -> list[tuple[int, int, list[EdgeChange]]]:
        """The changes in each object, as nodes before and after; those near the roots first."""
        snapshot, other = self.before.snapshot, self.after.snapshot
        nodes = self.before.kernel.unlike(Columns.of(snapshot), Columns.of(other), self.matching)
        to_after = self.matching.to_after
        ordered = sorted(nodes, key=lambda node: (self.after.depth(to_after[node]), node))
        found = ((node, to_after[node], self.comparer.compare(node, to_after[node])) for node in ordered)
        return [each for each in found if each[2]]

    # ---- changes ----

    def _changed(self) -> tuple[Section[Change], int]:
        ranked: list[list[tuple[int, int, EdgeChange]]] = [[], [], []]
        hidden = 0
        for node, other, raws in self.raws:
            for raw in raws:
                if self._origin(node, other, raw) not in self.scope_origins:
                    hidden += 1
                else:
                    ranked[self._rank(raw)].append((node, other, raw))
        total = sum(map(len, ranked))
        if self.most is not None:
            ranked[2] = _few_of_each(ranked[2])
        first = islice((each for rank in ranked for each in rank), self.most)
        return Section(tuple(self._change(*each) for each in first), total), hidden

    def _origin(self, node: int, other: int, raw: EdgeChange) -> str:
        old = self.before.origin_of(node, *raw.before[:1])
        new = self.after.origin_of(other, *raw.after[:1])
        return new if raw.kind == ADDED else old if raw.kind == REMOVED else _nearer(old, new)

    def _rank(self, raw: EdgeChange) -> int:
        """Changed values come first, then additions and removals, then added and removed items of containers."""
        if raw.kind not in (ADDED, REMOVED):
            return 0
        return 1 if self._step(raw).startswith(".") else 2

    def _step(self, raw: EdgeChange) -> str:
        snapshot, edges = (self.after.snapshot, raw.after) if raw.after else (self.before.snapshot, raw.before)
        return snapshot.step_text(snapshot.label[edges[-1]]) if edges else ""

    def _change(self, node: int, other: int, raw: EdgeChange) -> Change:
        was = None if raw.kind == ADDED else _target(self.before.snapshot, raw.before, node)
        is_now = None if raw.kind == REMOVED else _target(self.after.snapshot, raw.after, other)
        old, new = self.before, self.after
        return Change(
            kind=raw.kind,
            path_before=old.path_of(node, *raw.before) if was is not None else "",
            path_after=new.path_of(other, *raw.after) if is_now is not None else "",
            step=self._step(raw),
            before=old.text(was) if was is not None else "",
            after=new.text(is_now) if is_now is not None else "",
            type_before=old.snapshot.type_name(was) if was is not None else "",
            type_after=new.snapshot.type_name(is_now) if is_now is not None else "",
            owner_type=new.snapshot.type_name(other),
            owner=(old.snapshot.address[node], new.snapshot.address[other]),
            origin=self._origin(node, other, raw),
        )

    # ---- growth ----

    def _grown(self) -> tuple[Section[Grown], int]:
        found: list[tuple[int, int, int, int, int, int]] = []
        hidden = 0
        for node, other, raws in self.raws:
            if all(raw.kind not in (ADDED, REMOVED) for raw in raws):
                continue
            was, is_now = self.before.items(node), self.after.items(other)
            if was == is_now:
                continue
            if _nearer(self.before.origin(node), self.after.origin(other)) in self.scope_origins:
                found.append((-abs(is_now - was), len(found), node, other, was, is_now))
            else:
                hidden += 1
        found.sort()
        return Section(tuple(self._one_grown(*each[2:]) for each in islice(found, self.most)), len(found)), hidden

    def _one_grown(self, node: int, other: int, was: int, is_now: int) -> Grown:
        old, new = self.before, self.after
        return Grown(
            path_before=old.path(node),
            path_after=new.path(other),
            type=new.snapshot.type_name(other),
            before=was,
            after=is_now,
            retained_before=old.retained[node],
            retained_after=new.retained[other],
            address=(old.snapshot.address[node], new.snapshot.address[other]),
            origin=_nearer(old.origin(node), new.origin(other)),
        )

    # ---- added and removed objects ----

    def _types(self) -> tuple[Section[TypeChange], int]:
        counts, bytes_before = self.before.census()
        counts_after, bytes_after = self.after.census()
        removed, _ = self.before.census(self.is_removed)
        added, _ = self.after.census(self.is_added)
        retyped = self._retyped()
        names = [name for name in {*added, *removed, *retyped} if name != FRAME_TYPE]
        shown = [name for name in names if self.after.whose_type(name) in self.scope_origins]
        retained_added = self._retained(self.after, self.is_added) if any(self.is_added) else {}
        retained_removed = self._retained(self.before, self.is_removed) if any(self.is_removed) else {}
        rows = [
            TypeChange(
                type=name,
                before=counts[name],
                after=counts_after[name],
                added=added[name],
                removed=removed[name],
                bytes_before=bytes_before[name],
                bytes_after=bytes_after[name],
                retained_added=retained_added.get(name, 0),
                retained_removed=retained_removed.get(name, 0),
            )
            for name in shown
        ]
        rows.sort(key=lambda row: (-abs(row.bytes_after - row.bytes_before), -row.added - row.removed, row.type))
        return Section(tuple(islice(rows, self.most)), len(rows)), len(names) - len(shown)

    def _retyped(self) -> set[str]:
        """The types between which objects changed their class."""
        nodes = [(node, other) for node, other, raws in self.raws if raws[0].kind == RETYPED]
        before = {self.before.snapshot.type_name(node) for node, _ in nodes}
        return before | {self.after.snapshot.type_name(other) for _, other in nodes}

    def _retained(self, holding: Holding, chosen: bytes) -> dict[str, int]:
        snapshot = holding.snapshot
        found = holding.kernel.retained_by(
            *holding.dominators, snapshot.type, holding.retained, chosen, len(snapshot.types)
        )
        return dict(zip(snapshot.types, found, strict=True))

    def _retained_groups(self, holding: Holding, chosen: bytes) -> tuple[Section[RetainedGroup], int]:
        if not any(chosen):
            return Section((), 0), 0
        dominator, _ = holding.dominators
        held = holding.retained
        tops = [node for node in holding.kernel.tops(dominator, chosen) if not holding.is_frame(node)]
        origins = holding.origins
        wanted = {ORIGINS.index(each) for each in self.scope_origins}
        shown = [node for node in tops if origins[node] in wanted]
        first = heapq.nsmallest(self.most or len(shown), shown, key=lambda node: (-held[node], node))
        return Section(tuple(holding.retained_group(node) for node in first), len(shown)), len(tops) - len(shown)

    # ---- aliases ----

    def _aliases(self) -> tuple[Section[Alias], int]:
        found: list[tuple[bool, int, AliasChange]] = []
        hidden = 0
        for each in find_aliases(self.before, self.after, self.matching, self.raws):
            side = self.before if each.kind == PARTED else self.after
            if side.origin_of(each.owner, each.edge) in self.scope_origins:
                # Local variables of a call appear and disappear with it.
                found.append((side.is_frame(each.owner), len(found), each))
            else:
                hidden += 1
        found.sort()
        return Section(tuple(self._alias(each) for *_, each in islice(found, self.most)), len(found)), hidden

    def _alias(self, found: AliasChange) -> Alias:
        is_lost = found.kind == PARTED
        side, other = (self.before, self.after) if is_lost else (self.after, self.before)
        others = sorted(found.others, key=lambda edge: (side.depth(side.source(edge)), edge))
        was = self.matching.to_before[found.node]
        return Alias(
            kind=found.kind,
            type=self.after.snapshot.type_name(found.node),
            name=side.path_of(found.owner, found.edge),
            others=tuple(side.path_of(side.source(edge), edge) for edge in others[:MOST_NAMES]),
            other_count=len(others),
            now=other.text(found.other_target) if found.other_target is not None else "",
            address=(self.before.snapshot.address[was], self.after.snapshot.address[found.node]),
            origin=side.origin_of(found.owner, found.edge),
        )


def _few_of_each(changes: list[tuple[int, int, EdgeChange]]) -> list[tuple[int, int, EdgeChange]]:
    """Return the first items of each container: their number is reported with the container."""
    seen: Counter[int] = Counter()
    first = []
    for change in changes:
        seen[change[0]] += 1
        if seen[change[0]] <= FEW:
            first.append(change)
    return first


def _side(holding: Holding) -> Side:
    snapshot, taken = holding.snapshot, holding.snapshot.taken
    return Side(
        number=taken.number,
        event=taken.event,
        step=taken.step,
        name=taken.name,
        reason=taken.reason,
        objects=len(snapshot),
        bytes=holding.census()[1].total(),
        cut=snapshot.cut,
    )


def _nearer(origin: str, other: str) -> str:
    """Return, for something with two origins, the one that is closer to the program's own code."""
    return min(origin, other, key=ORIGINS.index)


def _target(snapshot: Snapshot, edges: tuple[int, ...], node: int) -> int:
    return snapshot.target[edges[-1]] if edges else node
