"""The timeline and the growth of the heap as SVG, which keep their texts readable at any width.

Positions from left to right are percentages of the width, and no text is scaled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from replaydbg.pages.facts.page_facts import HeapCourse, Instant, Timeline
from replaydbg.pages.markup.escaping import PageText
from replaydbg.render.measures import show_size

_ROW, _TOP, _BAR = 34, 46, 10
"""Pixels: from one row to the next, above the first one, and the height of a bar."""


def timeline_svg(timeline: Timeline, here: Instant | None, page: PageText) -> str:
    """Return the timeline, with a mark for each moment to which the page links: call it last."""
    bottom = _TOP + _ROW * max(len(timeline.bars), 1)
    marks = [*_marks(timeline, bottom, page)]
    bars = [*_bars(timeline, page)]
    raised = [*_raised(timeline, bottom, page)]
    now = ""
    if here is not None:
        x = _share(timeline, here.count)
        now = (
            f'<g class="now"><title>this page: {page.text(here.text)}</title>'
            f'<line x1="{x}" x2="{x}" y1="20" y2="{bottom}"/>'
            f'<text x="{x}" y="14" class="{_side(timeline, here.count)}">{page.text(here.text)}</text></g>'
        )
    names = ", ".join(each.name for each in timeline.bars[:8])
    more = f"<p>{timeline.more_bars:,} more rows are not on this page.</p>" if timeline.more_bars else ""
    return (
        f'<svg class="timeline" role="img" aria-labelledby="timeline-title timeline-desc" width="100%" '
        f'height="{bottom + 8}">\n<title id="timeline-title">Timeline</title>'
        f'<desc id="timeline-desc">The run from left to right, by lines executed. Rows: {page.text(names)}. '
        f"Exceptions that are marked: {len(timeline.raised)}.</desc>\n"
        f"{chr(10).join([*bars, *raised, *marks, now])}\n</svg>{more}"
    )


def _share(timeline: Timeline, count: int) -> str:
    width = max(timeline.last - timeline.first, 1)
    return f"{min(max(100 * (count - timeline.first) / width, 0), 100):.2f}%"


def _side(timeline: Timeline, count: int) -> str:
    """Return the class of a text at a place: it must not leave the drawing."""
    share = (count - timeline.first) / max(timeline.last - timeline.first, 1)
    return "left" if share < 0.15 else "right" if share > 0.85 else "middle"


def _bars(timeline: Timeline, page: PageText) -> Iterator[str]:
    width = max(timeline.last - timeline.first, 1)
    most = max(page.limits.spans // max(len(timeline.bars), 1), 5)
    for number, bar in enumerate(timeline.bars):
        y = _TOP + number * _ROW
        kind = "process" if bar.is_process else "thread"
        pieces = "".join(
            f'<rect x="{_share(timeline, first)}" y="{y}" width="{max(100 * (last - first) / width, 0.3):.2f}%" '
            f'height="{_BAR}"/>'
            for first, last in _merged(bar.spans, most)
        )
        yield (
            f'<g class="{kind}"><text x="0" y="{y - 5}">{page.text(bar.name, 40)}</text>'
            f'<line class="rail" x1="0" x2="100%" y1="{y + _BAR / 2:g}" y2="{y + _BAR / 2:g}"/>{pieces}</g>'
        )


def _merged(spans: Sequence[tuple[int, int]], most: int) -> Sequence[tuple[int, int]]:
    """Return at most `most` stretches: those next to each other are merged where there are more."""
    gap = 1
    while len(spans) > most:
        found = [spans[0]]
        for first, last in spans[1:]:
            if first - found[-1][1] <= gap:
                found[-1] = found[-1][0], max(last, found[-1][1])
            else:
                found.append((first, last))
        spans, gap = found, gap * 2
    return spans


def _raised(timeline: Timeline, bottom: int, page: PageText) -> Iterator[str]:
    for instant, text in timeline.raised[: page.limits.rows]:
        x = _share(timeline, instant.count)
        yield (
            f'<g class="raised"><title>{page.text(instant.text)} raises {page.text(text, 120)}</title>'
            f'<circle cx="{x}" cy="{bottom - 4}" r="4"/></g>'
        )


def _marks(timeline: Timeline, bottom: int, page: PageText) -> Iterator[str]:
    for key, mark in page.marks.items():
        x = _share(timeline, mark.instant.count)
        what = f"{page.text(mark.instant.text)} {page.text(mark.what, 60)}"
        top = 24 if mark.kind == "write" else bottom - 6
        yield (
            f'<g class="{mark.kind}" id="{page.text(key)}"><title>{what}</title>'
            f'<line x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
            f'<line class="found" x1="{x}" x2="{x}" y1="36" y2="{bottom}"/>'
            f'<text x="{x}" y="32" class="{_side(timeline, mark.instant.count)}">{what}</text></g>'
        )


_HEIGHT = 90
"""Pixels of the highest column."""
_MOST_NUMBERS = 6
"""Numbers that are shown of how often something was there."""


def heap_part(heap: HeapCourse, page: PageText) -> str:
    """Return the growth of the heap: a curve, and what grew."""
    rows = "\n".join(
        f"<tr><td><code>{page.text(path or 'all objects of the type', 160)}</code></td><td>{page.text(kind, 80)}</td>"
        f"<td>{_numbers(counts)}</td><td>{_sizes(sizes)}</td></tr>"
        for path, kind, counts, sizes in heap.rows[: page.limits.rows]
    )
    head = "".join(f'<th scope="col">{each}</th>' for each in ("what", "type", "number", "bytes"))
    table = (
        '<section class="scroll" tabindex="0" aria-label="What grew">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></section>"
        if rows
        else ""
    )
    note = f"<p>{page.text(heap.note, 1000)}</p>" if heap.note else ""
    return f"<p>{page.text(heap.verdict, 1000)}</p>\n{_curve(heap, page)}{note}{table}"


def _curve(heap: HeapCourse, page: PageText) -> str:
    points = heap.points[:: -(-len(heap.points) // page.limits.points)]
    most = max(each.size for each in heap.points) or 1
    width = 100 / len(points)
    columns = []
    for number, each in enumerate(points):
        height = max(round(_HEIGHT * each.size / most), 1)
        x = number * width
        columns.append(
            f"<g><title>{page.text(each.instant.text)}: {each.objects:,} objects, {show_size(each.size)}</title>"
            f'<rect x="{x + width * 0.15:.2f}%" y="{_HEIGHT - height + 18}" width="{width * 0.7:.2f}%" '
            f'height="{height}"/></g>'
        )
    first, last = heap.points[0], heap.points[-1]
    text = f"{len(heap.points)} snapshots, from {show_size(first.size)} to {show_size(last.size)}"
    return (
        f'<svg class="heap" role="img" aria-labelledby="heap-title" width="100%" height="{_HEIGHT + 40}">'
        f'<title id="heap-title">Size of the heap: {text}</title>{"".join(columns)}'
        f'<text x="0" y="12">at most {show_size(most)}</text><text x="0" y="{_HEIGHT + 34}">'
        f'{page.text(first.instant.text)}</text><text class="right" x="100%" y="{_HEIGHT + 34}">'
        f"{page.text(last.instant.text)}</text></svg>"
    )


def _numbers(counts: Sequence[int]) -> str:
    known = [each for each, _ in groupby(counts)]
    shown = known[:: -(-len(known) // _MOST_NUMBERS)]
    return " → ".join(f"{each:,}" for each in (shown if shown[-1] == known[-1] else [*shown, known[-1]]))


def _sizes(sizes: Sequence[int]) -> str:
    return f"{show_size(sizes[0])} → {show_size(sizes[-1])}"
