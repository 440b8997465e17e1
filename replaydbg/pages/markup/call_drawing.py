"""The calls of the run as a flame graph over time: SVG on the same scale as the timeline, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest
from operator import attrgetter

from replaydbg.pages.facts.page_facts import CallBar, CallChart, CallStrip, Instant
from replaydbg.pages.markup.escaping import PageText

_ROW, _TOP, _GAP = 18, 18, 8
"""Pixels: the height of a call, that of a thread's name above its calls, and the space below them."""


def calls_part(chart: CallChart, here: Instant | None, page: PageText) -> str:
    """Return the drawing, and the functions that took most lines."""
    shown = _widest(chart.strips, page.limits.calls)
    notes = [
        (sum(len(strip.bars) for strip in chart.strips) - len(shown), "narrower bars"),
        (max((strip.deepest - _depth(strip.bars) for strip in chart.strips), default=0), "levels of deeper calls"),
        (chart.more_strips, "more threads"),
    ]
    left_out = "; ".join(f"{number:,} {what}" for number, what in notes if number)
    aside = f"<p>Not on this page: {left_out}.</p>" if left_out else ""
    note = f"<p>{page.text(chart.note)}</p>" if chart.note else ""
    return f"{_drawing(chart, shown, here, page)}{note}{aside}{_table(chart, page)}"


def _widest(strips: Sequence[CallStrip], most: int) -> set[tuple[int, int]]:
    """Return the places of the widest bars: the number of the strip, and that of the bar in it."""
    bars = [(strip, bar) for strip, each in enumerate(strips) for bar in range(len(each.bars))]
    return set(nlargest(most, bars, key=lambda place: _width(strips[place[0]].bars[place[1]])))


def _width(bar: CallBar) -> int:
    return bar.last - bar.first


def _depth(bars: Sequence[CallBar]) -> int:
    return max(map(attrgetter("depth"), bars), default=-1) + 1


def _drawing(chart: CallChart, shown: set[tuple[int, int]], here: Instant | None, page: PageText) -> str:
    y, parts = 0, []
    for number, strip in enumerate(chart.strips):
        bars = [each for place, each in enumerate(strip.bars) if (number, place) in shown]
        drawn = "".join(_bar(chart, each, y + _TOP, page) for each in bars)
        parts.append(f'<g><text x="0" y="{y + 12}">{page.text(strip.name, 40)}</text>{drawn}</g>')
        y += _TOP + _ROW * _depth(bars) + _GAP
    if here is not None:
        x = f"{_share(chart, here.count):.2f}%"
        parts.append(
            f'<g class="now"><title>this page: {page.text(here.text)}</title>'
            f'<line x1="{x}" x2="{x}" y1="0" y2="{y}"/></g>'
        )
    names = ", ".join(f"{each.name} ({each.lines:,} lines)" for each in chart.functions[:5])
    return (
        f'<svg class="calls" role="img" aria-labelledby="calls-title calls-desc" width="100%" height="{y}">\n'
        f'<title id="calls-title">Calls of functions</title><desc id="calls-desc">The run from left to right, by lines '
        f"executed, as in the timeline; callers are above what they call. {chart.calls:,} calls. "
        f"Longest: {page.text(names)}.</desc>\n{chr(10).join(parts)}\n</svg>"
    )


def _share(chart: CallChart, count: int) -> float:
    return min(max(100 * (count - chart.first) / max(chart.last - chart.first, 1), 0), 100)


def _bar(chart: CallChart, bar: CallBar, top: int, page: PageText) -> str:
    x = _share(chart, bar.first)
    width = max(_share(chart, bar.last) - x, 0.15)
    # Of a narrow one nothing could be read.
    name = f'<text x="3" y="13">{page.text(bar.name, 60)}</text>' if width > 1.5 else ""
    return (
        f'<svg x="{x:.2f}%" y="{top + bar.depth * _ROW}" width="{width:.2f}%" height="{_ROW}"'
        f"{' class=' + chr(34) + 'library' + chr(34) if bar.is_library else ''}>"
        f'<title>{page.text(bar.title, 160)}</title><rect width="100%" height="{_ROW - 1}"/>{name}</svg>'
    )


def _table(chart: CallChart, page: PageText) -> str:
    head = "".join(f'<th scope="col">{each}</th>' for each in ("function", "where", "calls", "lines in it"))
    rows = "\n".join(_rows(chart, page))
    return (
        "<details><summary>Functions that took most lines</summary>"
        '<section class="scroll" tabindex="0" aria-label="Functions that took most lines">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></section>"
        "<p>Lines from the call to its end, with those that it calls, and those of other threads in the meantime.</p>"
        "</details>"
    )


def _rows(chart: CallChart, page: PageText) -> Iterator[str]:
    for each in chart.functions[: page.limits.rows]:
        yield (
            f"<tr><td><code>{page.text(each.name, 80)}</code></td><td>{page.text(each.place, 120)}</td>"
            f"<td>{each.calls:,}</td><td>{each.lines:,}</td></tr>"
        )
