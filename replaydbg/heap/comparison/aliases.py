"""Changes of aliasing: an object that gained another name, and two names of one object that no longer are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from replaydbg.heap.comparison.diff_results import JOINED, PARTED, REORDERED
from replaydbg.heap.comparison.object_diff import IMMUTABLE, EdgeChange
from replaydbg.heap.labels import PLAIN, WEAK, kind_of, number_of
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.snapshot import FRAME_TYPE, NO_VALUE
from replaydbg.heap.walks.graph_walks import UNREACHED
from replaydbg.heap.walks.object_comparison import Matching

MOST_NAMES = 5
"""Maximum number of names that are listed for one object."""

SHARED = frozenset(
    (
        "builtins.type",
        "builtins.function",
        "builtins.builtin_function_or_method",
        "builtins.method",
        "builtins.code",
        "builtins.module",
        "module",
        FRAME_TYPE,
        *IMMUTABLE,
    )
)
"""Types whose objects normally have many names."""


class AliasChange(NamedTuple):
    """A change of aliasing, in nodes and edges."""

    kind: str
    node: int
    """The object, in the snapshot after."""
    owner: int
    """The owner of the attribute or item with that name: before for a lost one, after for a new one."""
    edge: int
    others: list[int]
    """Edges of the other names, in that same snapshot."""
    other_target: int | None
    """The target of the name in the other snapshot."""


class _Candidate(NamedTuple):
    kind: str
    node: int
    owner: int
    edge: int
    other_target: int | None


def find_aliases(
    before: Holding, after: Holding, matching: Matching, raws: Iterable[tuple[int, int, list[EdgeChange]]]
) -> Iterator[AliasChange]:
    """Yield the aliasing changes among `raws`: for objects that have another name both before and after."""
    candidates = list(_candidates(before, after, matching, raws))
    wanted = {each.node for each in candidates}
    old = _names(before, {matching.to_before[node] for node in wanted}, matching, is_before=True)
    new = _names(after, wanted, matching, is_before=False)
    for each in candidates:
        names, names_after = old[matching.to_before[each.node]], new[each.node]
        counts, counts_after = _counted(names), _counted(names_after)
        kept = counts & counts_after
        is_lost = each.kind == PARTED
        key = dict(names if is_lost else names_after).get(each.edge)
        moved = counts[key] <= counts_after[key] if is_lost else counts_after[key] <= counts[key]
        if kept and key is not None and not moved:
            others = [edge for edge, name in (names if is_lost else names_after) if name in kept]
            yield AliasChange(each.kind, each.node, each.owner, each.edge, others, each.other_target)


def _candidates(
    before: Holding, after: Holding, matching: Matching, raws: Iterable[tuple[int, int, list[EdgeChange]]]
) -> Iterator[_Candidate]:
    for node, other, changes in raws:
        for raw in changes:
            # A change inside a tuple is a change of the tuple; a new order adds no name.
            if max(len(raw.before), len(raw.after)) != 1 or raw.kind == REORDERED:
                continue
            was = before.snapshot.target[raw.before[0]] if raw.before else None
            is_now = after.snapshot.target[raw.after[0]] if raw.after else None
            if was is not None and matching.to_after[was] != UNREACHED and _has_identity(before, was, raw.before[0]):
                yield _Candidate(PARTED, matching.to_after[was], node, raw.before[0], is_now)
            is_known = is_now is not None and matching.to_before[is_now] != UNREACHED
            if is_now is not None and is_known and _has_identity(after, is_now, raw.after[0]):
                yield _Candidate(JOINED, is_now, other, raw.after[0], was)


def _has_identity(holding: Holding, node: int, edge: int) -> bool:
    """Whether the object's identity can matter, and the edge is more than a weak reference."""
    snapshot = holding.snapshot
    is_weak = snapshot.label[edge] & WEAK
    return not is_weak and snapshot.value[node] & 3 == NO_VALUE and snapshot.type_name(node) not in SHARED


def _names(
    holding: Holding, wanted: set[int], matching: Matching, *, is_before: bool
) -> defaultdict[int, list[tuple[int, Hashable]]]:
    """Return the edges to wanted nodes, each with a name that is the same in both snapshots."""
    snapshot = holding.snapshot
    found: defaultdict[int, list[tuple[int, Hashable]]] = defaultdict(list)
    chosen = bytearray(len(snapshot))
    for node in wanted:
        chosen[node] = 1
    for edge in holding.kernel.edges_to(snapshot.target, bytes(chosen)):
        label = snapshot.label[edge]
        source = holding.source(edge)
        owner = matching.to_after[source] if is_before else source
        is_known = owner != UNREACHED if is_before else matching.to_before[source] != UNREACHED
        if label & WEAK or not is_known:
            continue
        # Positions in a list move; a name does not.
        step = snapshot.strings.raw(number_of(label)) if kind_of(label) == PLAIN else kind_of(label)
        if not (isinstance(step, bytes) and step.startswith(b".<stack ")):
            found[snapshot.target[edge]].append((edge, (owner, step)))
    return found


def _counted(names: list[tuple[int, Hashable]]) -> Counter[Hashable]:
    return Counter(name for _, name in names)
