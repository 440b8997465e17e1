"""Differences of snapshots, growth and holders as tables, in the order in which people ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replaydbg.heap.comparison.diff_results import (
    ADDED,
    JOINED,
    REMOVED,
    REORDERED,
    REPLACED,
    RETYPED,
    Alias,
    Change,
    Diff,
    Section,
    Side,
    T,
    TypeChange,
)
from replaydbg.heap.retention.growth import Growth
from replaydbg.heap.retention.holding import Holder, Holding, RetainedGroup
from replaydbg.heap.snapshot import FRAME_TYPE
from replaydbg.render.tables import Table, more_text, numbers, signed, sizes

MOST_COLUMNS = 6
"""Snapshots of a series that are shown."""
GROWS_A_LOT = 10
"""A container that grows by this number of items or more is shown before changed values."""

ALL = "--all shows them"
"""How more is seen, on the command line."""


def short(type_name: str) -> str:
    """Return a type's name without `builtins.` or `__main__.`."""
    return type_name.removeprefix("builtins.").removeprefix("__main__.")


def diff_tables(diff: Diff, *, how: str = ALL) -> list[Table]:
    """Return the non-empty sections of a diff."""
    head = Table(_title(diff), (), (), notes=tuple(_notes(diff)))
    grown, changed = _grown(diff, how), _changed(diff.changed, how)
    sections = (
        *((grown, changed) if _is_growing(diff) else (changed, grown)),
        _types(diff.types, how),
        _retained_table("New objects, with their retained size", "new", diff.new, how),
        _retained_table("Freed objects, with the size they retained", "gone", diff.gone, how),
        _aliases(diff.aliases, how),
    )
    tables = [head, *(each for each in sections if each.rows or each.more)]
    if len(tables) == 1:
        tables.append(Table("No differences." if diff.is_empty else "No differences in your own code.", (), ()))
    hidden = diff.hidden
    if hidden:
        parts = [
            f"{count:,} {what}"
            for count, what in (
                (hidden.changed, "changed values"),
                (hidden.grown, "containers"),
                (hidden.types, "types"),
                (hidden.new, "new objects"),
                (hidden.gone, "freed objects"),
                (hidden.aliases, "aliases"),
            )
            if count
        ]
        tables.append(Table(f"In libraries: {', '.join(parts)}; --scope all shows them.", (), ()))
    return tables


def _title(diff: Diff) -> str:
    before, after = diff.before, diff.after
    return (
        f"{side_text(before)} -> {side_text(after)}: "
        f"{before.objects:,} -> {after.objects:,} objects, {sizes(before.bytes)} -> {sizes(after.bytes)}"
    )


def side_text(side: Side) -> str:
    """Return which snapshot it is."""
    name = f" {side.name}" if side.name else ""
    return f"{side.event}:{side.step}{name}"


def _notes(diff: Diff) -> Iterator[str]:
    if not diff.is_same_run:
        yield "Two runs: objects are matched by path, then by type and content."
    for side, when in ((diff.before, "before"), (diff.after, "after")):
        for sentence in side.cut:
            yield f"Snapshot {when}: {sentence}"


def _changed(section: Section[Change], how: str) -> Table:
    rows = tuple((_MARKS.get(each.kind, "~"), each.path, _change_text(each)) for each in section.items)
    title = f"Changed values ({section.total:,})"
    return Table(title, ("", "path", "value"), rows, more=more_text(section.left_out, how), kind="changed")


_MARKS = {ADDED: "+", REMOVED: "-"}


def _change_text(change: Change) -> str:
    if change.kind == ADDED:
        return change.after
    if change.kind == REMOVED:
        return change.before
    if change.kind == REORDERED:
        return f"{change.after}, in a different order"
    if change.kind == REPLACED:
        return (
            f"{change.after} (a different object)"
            if change.before == change.after
            else f"{change.before} -> {change.after}"
        )
    if change.kind == RETYPED:
        return f"the same object, {short(change.type_before)} -> {short(change.type_after)}"
    if change.before == change.after:
        return f"{change.before} (a different object)"
    return f"{change.before} -> {change.after}"


def _is_growing(diff: Diff) -> bool:
    """Whether a container has grown so much that it matters more than single values."""
    return any(each.after - each.before >= GROWS_A_LOT for each in diff.grown.items)


def _grown(diff: Diff, how: str) -> Table:
    rows = tuple(
        (
            each.path,
            short(each.type),
            f"{each.before:,} -> {each.after:,}",
            f"{sizes(each.retained_before)} -> {sizes(each.retained_after)}",
        )
        for each in diff.grown.items
    )
    return Table(
        f"Containers that grew or shrank ({diff.grown.total:,})",
        ("path", "type", "items", "retained"),
        rows,
        ("items", "retained"),
        more_text(diff.grown.left_out, how),
    )


def _types(section: Section[TypeChange], how: str) -> Table:
    rows = tuple(
        (
            short(each.type),
            f"{each.before:,} -> {each.after:,}",
            signed(each.added),
            signed(-each.removed),
            sizes(each.bytes_after - each.bytes_before),
            sizes(each.retained_added - each.retained_removed),
        )
        for each in section.items
    )
    columns = ("type", "objects", "new", "gone", "bytes", "retained")
    return Table(
        f"Added and removed, by type ({section.total:,})",
        columns,
        rows,
        columns[1:],
        more_text(section.left_out, how),
    )


def _retained_table(title: str, kind: str, section: Section[RetainedGroup], how: str) -> Table:
    rows = tuple((each.path, each.text, sizes(each.retained)) for each in section.items)
    return Table(
        f"{title} ({section.total:,})",
        ("path", "what", "retained"),
        rows,
        ("retained",),
        more_text(section.left_out, how),
        kind=kind,
    )


def _aliases(section: Section[Alias], how: str) -> Table:
    rows = []
    for each in section.items:
        others = ", ".join(each.others) + (
            f" and {each.other_count - len(each.others):,} more" if each.other_count > len(each.others) else ""
        )
        if each.kind == JOINED:
            was = f" (was {each.now})" if each.now else ""
            rows.append((each.name, f"is now the same {short(each.type)} as {others}{was}"))
        else:
            now = f"now {each.now}" if each.now else "now freed"
            rows.append((each.name, f"was the same {short(each.type)} as {others} ({now})"))
    return Table(
        f"Names that changed ({section.total:,})", ("name", ""), tuple(rows), more=more_text(section.left_out, how)
    )


def heap_tables(
    holding: Holding, *, since: Holding | None = None, most: int | None = 20, how: str = ALL
) -> list[Table]:
    """Return what is in a snapshot: by type, and the objects with the largest retained size.

    `since`: an earlier snapshot; how many objects of each type there are more is shown, too.
    """
    snapshot, taken = holding.snapshot, holding.snapshot.taken
    counts, bytes_ = holding.census()
    name = f" {taken.name}" if taken.name else ""
    title = f"{taken.event}:{taken.step}{name}: {len(snapshot):,} objects, {sizes(bytes_.total())}"
    shown = bytes_.most_common(most)
    columns: tuple[str, ...] = ("type", "objects", "bytes")
    if since is not None:
        earlier, columns = since.census()[0], ("type", "objects", "more", "bytes")
    rows = []
    for each, size in shown:
        more_now = [signed(counts[each] - earlier[each])] if since is not None else []
        if each != FRAME_TYPE:
            rows.append((short(each), numbers(counts[each]), *more_now, sizes(size)))
    largest = holding.largest(None if most is None else most + 1)
    more = "and more: " + how if most is not None and len(largest) > most else ""
    lots = tuple((each.path, each.text, sizes(each.retained)) for each in largest[:most])
    return [
        Table(title, (), (), notes=snapshot.cut),
        Table(
            f"By type ({len(counts):,})", columns, tuple(rows), columns[1:], more_text(len(counts) - len(shown), how)
        ),
        Table("Largest retained sizes", ("path", "what", "retained"), lots, ("retained",), more),
    ]


def growth_tables(growth: Growth, *, most: int | None = 20, how: str = ALL) -> list[Table]:
    """Return what grew over a series, the verdict first."""
    tables = [Table(growth.verdict, (), ())]
    for leak in growth.leaks[:most]:
        rows = [(short(each.type), *map(numbers, _sampled(each.counts))) for each in leak.types]
        if leak.items[-1] > leak.items[0]:
            rows.append(("items", *map(numbers, _sampled(leak.items))))
        rows.append(("retained", *map(sizes, _sampled(leak.retained))))
        moments = tuple(f"{event}:{step}" for event, step in _sampled(leak.moments))
        holder = f"{leak.path} ({short(leak.type)})" if leak.type else leak.path
        tables.append(
            Table(
                f"Held by {holder}",
                ("", *moments),
                tuple(rows),
                moments,
                more_text(leak.type_count - len(leak.types), how),
            )
        )
    left_out = len(growth.leaks) - len(growth.leaks[:most])
    if left_out:
        tables.append(Table(more_text(left_out, how), (), ()))
    return tables


def _sampled(series: Sequence[T]) -> list[T]:
    """Return the first, the last, and some between: as many as fit on a line."""
    steps = min(len(series), MOST_COLUMNS)
    return [series[round(step * (len(series) - 1) / max(steps - 1, 1))] for step in range(steps)]


def object_tables(
    holding: Holding, node: int, *, most: int | None = 20, how: str = ALL, notes: Sequence[str] = ()
) -> list[Table]:
    """Return what is known of one object: what it is, its retained size, and who holds it."""
    snapshot = holding.snapshot
    facts = [
        ("what", holding.text(node)),
        ("type", short(snapshot.type_name(node))),
        ("address", f"0x{snapshot.address[node]:x}"),
        ("size", sizes(snapshot.size[node])),
        ("retained", sizes(holding.retained[node])),
    ]
    chain = [holding.path(each) for each in holding.chain(node)]
    if chain:
        facts.append(
            ("free without", " or ".join(chain[:3]) + (f" or {len(chain) - 3:,} more" if len(chain) > 3 else ""))
        )
    tables = [Table(holding.path(node), ("", ""), tuple(facts), notes=tuple(notes))]
    tables.append(holder_table(holding.holders(node), most=most, how=how))
    return tables


def holder_table(holders: Sequence[Holder], *, most: int | None = 20, how: str = ALL) -> Table:
    """Return who holds an object."""
    rows = tuple(
        (
            each.path,
            short(each.type),
            "weak" if each.is_weak else sizes(each.frees) if each.frees else "nothing",
        )
        for each in holders[:most]
    )
    title = f"Held by ({len(holders):,})" if holders else "No holders."
    return Table(
        title,
        ("path", "holder", "freed without it"),
        rows,
        ("freed without it",),
        more_text(len(holders) - len(rows), how),
    )
