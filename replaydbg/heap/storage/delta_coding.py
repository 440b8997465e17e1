"""Delta coding of a snapshot against an earlier one of its run, column by column, and the reverse.

A delta lists the objects and references that were removed and added. Together with the earlier snapshot these predict
each column; the bits in which a column differs from the prediction are stored, and nearly all of them are zero.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, compress, count, islice, pairwise
from operator import ge, ne
from typing import Any, NamedTuple, TypeAlias

from replaydbg.heap.labels import PLAIN
from replaydbg.heap.snapshot import FLOAT, TEXT, Snapshot, Strings
from replaydbg.heap.walks.graph_walks import UNREACHED
from replaydbg.heap.walks.kernel import KERNEL

_MANY = 64
"""Number of references of one object from which on its items are compared, although their number is unchanged."""

Column: TypeAlias = "array[Any]"


class _Run(NamedTuple):
    """A run of neighbours that were neighbours before."""

    old: int
    new: int
    length: int


class _Maps(NamedTuple):
    """The positions of the earlier snapshot's items in the later one."""

    nodes: array[int]
    texts: array[int]
    floats: array[int]
    types: array[int]


# ---- encoding ----


def differences(snapshot: Snapshot, base: Snapshot) -> dict[str, Column]:
    """Return the columns from which `restored` rebuilds those of `snapshot`, given `base`.

    `strings` and `string_ends` are those of the texts that `base` lacks.
    """
    nodes, gone, places = _kept(base.address, snapshot.address)
    runs = _runs(gone, places, len(base))
    texts = array("q", ((at + 1) & UNREACHED for at in KERNEL.translate(snapshot.strings, base.strings)))
    floats = _origins(_bits(snapshot.floats), _bits(base.floats))
    maps = _maps(nodes, texts, floats, base, snapshot.types)
    targets = _mapped_targets(base, maps)
    edge_gone, edge_came = _edges(snapshot, base, targets, runs, (gone, places))
    edge_runs = _runs(edge_gone, edge_came, len(base.target))
    new_texts = [snapshot.strings.raw(place) for place, at in enumerate(texts) if not at]
    return {
        "gone": gone,
        "came": array("Q", (snapshot.address[at] for at in places)),
        "edge_gone": edge_gone,
        "edge_came": edge_came,
        "string_from": texts,
        "string_ends": array("I", accumulate(map(len, new_texts))),
        "strings": array("B", b"".join(new_texts)),
        "float_from": floats,
        "floats": array("d", (value for value, at in zip(snapshot.floats, floats, strict=True) if not at)),
        "degree": _other_bits(
            KERNEL.degrees(snapshot.first_edge), _moved(KERNEL.degrees(base.first_edge), runs, len(snapshot))
        ),
        **_node_columns(snapshot, base, maps, runs),
        "target": _other_bits(snapshot.target, _moved(targets, edge_runs, len(snapshot.target))),
        "label": _other_bits(snapshot.label, _moved(_mapped_labels(base, maps), edge_runs, len(snapshot.target))),
    }


def _node_columns(snapshot: Snapshot, base: Snapshot, maps: _Maps, runs: list[_Run]) -> dict[str, Column]:
    expected = _expected(base, maps, runs, len(snapshot))
    return {name: _other_bits(getattr(snapshot, name), column) for name, column in expected.items()}


def _origins(items: Sequence[object], base: Sequence[object]) -> array[int]:
    """Return for each item its position in `base`, from 1; 0 if it is absent. The next position is tried first."""
    if items == base:
        return array("q", range(1, len(items) + 1))
    index = {item: place for place, item in enumerate(base, 1)}
    found = array("q")
    place = 0
    for item in items:
        if place < len(base) and base[place] == item:
            place += 1
            found.append(place)
            continue
        at = index.get(item, 0)
        found.append(at)
        place = at or place
    return found


def _edges(
    snapshot: Snapshot,
    base: Snapshot,
    targets: array[int],
    runs: list[_Run],
    nodes: tuple[array[int], array[int]],
) -> tuple[array[int], array[int]]:
    """Return the references of `base` that count as removed, and those of `snapshot` that count as added."""
    gone, came = nodes
    first, old_first = snapshot.first_edge, base.first_edge
    lost: list[int] = list(chain.from_iterable(range(old_first[at], old_first[at + 1]) for at in gone))
    found: list[int] = list(chain.from_iterable(range(first[at], first[at + 1]) for at in came))
    degrees, before = KERNEL.degrees(snapshot.first_edge), KERNEL.degrees(base.first_edge)
    for run in runs:
        now, then = degrees[run.new : run.new + run.length], before[run.old : run.old + run.length]
        differing = compress(count(), map(ne, now, then)) if now != then else ()
        many = compress(count(), map(_MANY.__le__, now)) if max(now) >= _MANY else ()
        for at in sorted({*differing, *many}):
            old, new = old_first[run.old + at], first[run.new + at]
            went, arrived = _aligned(targets[old : old + then[at]], snapshot.target[new : new + now[at]])
            lost.extend(old + place for place in went)
            found.extend(new + place for place in arrived)
    return array("I", sorted(lost)), array("I", sorted(found))


def _aligned(old: array[int], new: array[int]) -> tuple[list[int], list[int]]:
    """Return positions in `old` and `new` whose removal makes both equally long, and as equal as is cheaply found."""
    if old == new:
        return [], []
    there, was = set(new), set(old)
    went = [place for place, each in enumerate(old) if each not in there]
    came = [place for place, each in enumerate(new) if each not in was]
    if len(old) - len(went) == len(new) - len(came):
        return went, came
    common = min(len(old), len(new))
    return list(range(common, len(old))), list(range(common, len(new)))


# ---- decoding ----


def restored(columns: Mapping[str, Column], base: Snapshot, types: Sequence[str], limit: int) -> dict[str, Column]:
    """Return the columns of a snapshot, rebuilt from its differences to `base`.

    Raises ValueError, IndexError or OverflowError if the columns are inconsistent; uses at most `limit` bytes for
    texts.
    """
    gone, came = columns["gone"], columns["came"]
    address = _addresses(gone, came, base, len(columns["since"]))
    nodes, edges = len(address), len(columns["target"])
    now, went, arrived = _kept(base.address, address)
    runs = _runs(went, arrived, len(base))
    rows = _chosen(columns["string_from"], _rows(base.strings), _rows(_new_strings(columns)))
    if sum(map(len, rows)) > limit:
        raise ValueError(f"the snapshot's texts need more than {limit:,} bytes, the limit")
    bits = _chosen(columns["float_from"], _bits(base.floats), _bits(columns["floats"]))
    maps = _maps(now, columns["string_from"], columns["float_from"], base, types)
    degrees = _other_bits(columns["degree"], _moved(KERNEL.degrees(base.first_edge), runs, nodes))
    first_edge = array("I", accumulate(degrees, initial=0))
    _check_places(columns["edge_gone"], len(base.target))
    _check_places(columns["edge_came"], edges)
    if len(base.target) - len(columns["edge_gone"]) + len(columns["edge_came"]) != edges or first_edge[-1] != edges:
        raise ValueError("the snapshot's references do not add up")
    edge_runs = _runs(columns["edge_gone"], columns["edge_came"], len(base.target))
    expected = _expected(base, maps, runs, nodes)
    return {
        "address": address,
        **{name: _other_bits(columns[name], column) for name, column in expected.items()},
        "first_edge": first_edge,
        "target": _other_bits(columns["target"], _moved(_mapped_targets(base, maps), edge_runs, edges)),
        "label": _other_bits(columns["label"], _moved(_mapped_labels(base, maps), edge_runs, edges)),
        "floats": array("d", array("Q", bits).tobytes()),
        "string_ends": array("I", accumulate(map(len, rows))),
        "strings": array("B", b"".join(rows)),
    }


def _addresses(gone: array[int], came: array[int], base: Snapshot, nodes: int) -> array[int]:
    _check_places(gone, len(base))
    if any(map(ge, came, islice(came, 1, None))):
        raise ValueError("the snapshot's objects are not sorted")
    if len(base) - len(gone) + len(came) != nodes:
        raise ValueError("the snapshot's columns are not equally long")
    kept: array[int] = array("Q")
    address: array[int] = array("Q")
    begin = 0
    for at in gone:
        kept.extend(base.address[begin:at])
        begin = at + 1
    kept.extend(base.address[begin:])
    begin = 0
    for each in came:
        at = bisect_left(kept, each, begin)
        address.extend(kept[begin:at])
        address.append(each)
        begin = at
    address.extend(kept[begin:])
    return address


def _check_places(places: array[int], end: int) -> None:
    if any(map(ge, places, islice(places, 1, None))) or (places and places[-1] >= end):
        raise ValueError("the snapshot lists its changes out of order")


def _new_strings(columns: Mapping[str, Column]) -> Strings:
    data, ends = columns["strings"].tobytes(), columns["string_ends"]
    if (ends[-1] if ends else 0) != len(data):
        raise ValueError("the snapshot's texts are not contiguous")
    return Strings(data, ends)


def _chosen(origins: array[int], base: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    if origins.count(0) != len(new) or min(origins, default=0) < 0:
        raise ValueError("the snapshot's texts or numbers do not add up")
    fresh = iter(new)
    return [base[at - 1] if at else next(fresh) for at in origins]


# ---- prediction from the earlier snapshot: both directions need it ----


def _runs(gone: array[int], came: array[int], old: int) -> list[_Run]:
    """Return what is kept of `old` items: all but those at the positions `gone`; the positions `came` hold new ones."""
    lost = [at - before for before, at in enumerate(gone)]
    found = [at - before for before, at in enumerate(came)]
    runs = []
    i = j = 0
    for begin, end in pairwise(sorted({0, old - len(gone), *lost, *found})):
        while i < len(lost) and lost[i] <= begin:
            i += 1
        while j < len(found) and found[j] <= begin:
            j += 1
        runs.append(_Run(begin + i, begin + j, end - begin))
    return runs


def _moved(column: Column, runs: Iterable[_Run], length: int) -> Column:
    """Return a column with the kept items at their new positions, and zeros for added ones."""
    found: Column = array(column.typecode, bytes(length * column.itemsize))
    for old, new, number in runs:
        found[new : new + number] = column[old : old + number]
    return found


def _other_bits(one: Column, other: Column) -> Column:
    """Return the bits that differ between two columns; with one of the two it restores the other."""
    return array(one.typecode, KERNEL.other_bits(one, other))


def _rows(strings: Strings) -> list[bytes]:
    data = strings.data
    return [data[begin:end] for begin, end in pairwise(chain((0,), strings.ends))]


def _bits(floats: array[float]) -> list[int]:
    return array("Q", floats.tobytes()).tolist()


def _kept(before: array[int], after: array[int]) -> tuple[array[int], array[int], array[int]]:
    """Return the new position of each object, the removed objects, and the positions of added ones."""
    always = array("I", bytes(4 * len(after)))
    to_after, to_before = KERNEL.match(before, after, always, 0)
    gone, came = (array("I", compress(count(), KERNEL.missing(each))) for each in (to_after, to_before))
    return to_after, gone, came


def _maps(nodes: array[int], texts: array[int], floats: array[int], base: Snapshot, types: Sequence[str]) -> _Maps:
    index = {name: place for place, name in enumerate(types)}
    return _Maps(
        nodes,
        _places(texts, len(base.strings)),
        _places(floats, len(base.floats)),
        array("I", (index.get(name, 0) for name in base.types)),
    )


def _places(origins: array[int], old: int) -> array[int]:
    found = array("I", bytes(4 * old))
    for place, at in enumerate(origins):
        if at:
            found[at - 1] = place
    return found


def _expected(base: Snapshot, maps: _Maps, runs: list[_Run], nodes: int) -> dict[str, Column]:
    types = KERNEL.renumbered(base.type, maps.types, 0, 0, 0)
    value = KERNEL.renumbered(base.value, maps.texts, 3, TEXT, 2)
    value = KERNEL.renumbered(value, maps.floats, 3, FLOAT, 2)
    columns = {"since": base.since, "type": types, "size": base.size, "value": value}
    return {name: _moved(column, runs, nodes) for name, column in columns.items()}


def _mapped_targets(base: Snapshot, maps: _Maps) -> array[int]:
    return KERNEL.renumbered(base.target, maps.nodes, 0, 0, 0)


def _mapped_labels(base: Snapshot, maps: _Maps) -> array[int]:
    return KERNEL.renumbered(base.label, maps.texts, 7, PLAIN, 4)
