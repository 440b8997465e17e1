"""Overviews of memory for the terminal UI: how it grows over the run, and what keeps it alive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replaydbg.debugger import Session
from replaydbg.debugger.object_history import spread
from replaydbg.events.show import printable
from replaydbg.heap.retention.growth import FEWEST, Growth
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.retention.retaining_boxes import RetainingBox, retaining_boxes
from replaydbg.render import texts
from replaydbg.render.heap_tables import short
from replaydbg.render.tables import numbers, sizes
from replaydbg.tui.icicle_model import IcicleAnswer, IcicleBox
from replaydbg.tui.view_model import HeapAnswer, HeapRow

POSITIONS = 8
"""Number of positions at which memory is read for its growth, if the recording has few snapshots."""

MOST_POSITIONS = 12
"""The same if it has many: each is one column of the bars."""

MOST_GROWING = 15
"""Maximum number of rows of each section."""


def positions(session: Session) -> tuple[str, list[int]]:
    """Return at which lines of the run memory is to be read for its growth, and what they are.

    Those are the recorded snapshots, if they are enough to tell growth from fluctuation.
    """
    at = session.heap.counts_of_snapshots("@#")
    counts = sorted({at[f"#{each.number}"] for each in session.heap.taken})
    if len(counts) < FEWEST:
        found = spread(session, POSITIONS)
        return f"{len(found)} positions", found
    steps = min(len(counts), MOST_POSITIONS)
    chosen = [counts[round(step * (len(counts) - 1) / (steps - 1))] for step in range(steps)]
    which = f"{len(counts):,} snapshots" if steps == len(counts) else f"{steps} of {len(counts):,} snapshots"
    return which, chosen


def growth_answer(found: Growth, which: str, session: Session, counts: Sequence[int]) -> HeapAnswer:
    """Return the growth as rows: the containers, the types, the verdict."""
    first, last = (texts.moment_text(session.index.moment(count)) for count in (counts[0], counts[-1]))
    rows = [
        *_section("Containers, items and retained size", _containers(found)),
        *_section("Types, objects and their size", _types(found)),
        HeapRow(printable(found.verdict), is_text=True),
    ]
    title = f"growth over {which}: {first} to {last}"
    return HeapAnswer(printable(title), tuple(rows), "", counts[0])


_Grown = tuple[str, tuple[int, ...], int, str]
"""A name, numbers, bytes that were added, and the path of an object."""


def _containers(found: Growth) -> Iterator[_Grown]:
    for each in found.containers[:MOST_GROWING]:
        yield each.path, each.items, each.retained[-1] - each.retained[0], each.path


def _types(found: Growth) -> Iterator[_Grown]:
    for each in found.types[:MOST_GROWING]:
        yield short(each.type), each.counts, each.bytes[-1] - each.bytes[0], ""


def _section(title: str, grown: Iterator[_Grown]) -> Iterator[HeapRow]:
    rows = [
        (name, series, f"{series[0]:,} -> {series[-1]:,}", _more(added), path) for name, series, added, path in grown
    ]
    if not rows:
        return
    yield HeapRow(title, is_title=True)
    wide, high = (max(len(row[at]) for row in rows) for at in (2, 3))
    for name, series, items, added, path in rows:
        yield HeapRow(printable(name), value=f"{items:>{wide}}  {added:>{high}}", path=path, series=series)


def _more(added: int) -> str:
    return f"+{sizes(added)}" if added > 0 else sizes(added)


def icicle_answer(held: Holding, moment: str) -> IcicleAnswer:
    """Return what keeps the heap of a moment alive."""
    whole = retaining_boxes(held)
    title = f"What keeps memory alive at {moment}: {numbers(whole.count)} objects, {sizes(whole.retained)}"
    return IcicleAnswer(printable(title), _box(whole))


def _box(box: RetainingBox) -> IcicleBox:
    several = f" x{numbers(box.count)}" if box.count > 1 else ""
    return IcicleBox(
        step=printable(box.step) or "all",
        path=box.path,
        type=printable(short(box.type) + several) if box.type else f"{numbers(box.count)} objects",
        retained=box.retained,
        size=sizes(box.retained),
        boxes=tuple(_box(each) for each in box.boxes),
    )
