"""Text of anybody in HTML: masked, without control characters, cut and escaped, in this order.

Small functions and f-strings with one escape for all texts: a template engine (Jinja2, 2 MB with MarkupSafe) would be a
dependency of every installation, for one page whose parts are computed and not written by people.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from replaydbg.events.show import printable
from replaydbg.pages.facts.hidden_texts import HiddenTexts
from replaydbg.pages.facts.page_facts import Instant


class PageLimits(NamedTuple):
    """How much of everything a page has."""

    frames: int = 60
    detailed: int = 14
    """Frames with source and variables."""
    around: int = 12
    """Lines of source before and after the current one."""
    variables: int = 60
    writes: int = 40
    before: int = 150
    """Lines of output before the moment."""
    after: int = 30
    rows: int = 100
    """Rows of any other table."""
    value: int = 400
    """Characters of a value, and of any other text."""
    inline: int = 80
    """Characters of a value beside a line."""
    spans: int = 1_200
    """Stretches in the timeline, over all of its rows."""
    calls: int = 400
    """Bars in the drawing of calls."""
    points: int = 60
    """Snapshots in the drawing of the heap."""
    lines: int = 40
    """Lines of an exception's text."""
    drawing: int = 120_000
    """Bytes of the space-time diagram."""

    def scaled(self, factor: float) -> PageLimits:
        """Return smaller limits."""
        return PageLimits(*(max(int(each * factor), 2) for each in self))


class LinkedMoment(NamedTuple):
    """A moment in the timeline to which the page links."""

    instant: Instant
    what: str
    """What happened there."""
    kind: str
    """`write` or `print`."""


class PageText:
    """Turns texts into HTML, and remembers the moments to which the page links."""

    def __init__(self, hidden: HiddenTexts, limits: PageLimits, *, has_timeline: bool) -> None:
        self._hidden, self.limits, self._has_timeline = hidden, limits, has_timeline
        self.marks: dict[str, LinkedMoment] = {}
        """The moments to which the page links, by the ids of their marks in the timeline."""

    def text(self, text: str, most: int = 0) -> str:
        """Return a text for the page, also for the value of an attribute; `most`: characters (default: `value`)."""
        most = most or self.limits.value
        # A text may be huge: what is far behind the cut cannot change what is before it.
        shown = printable(self._hidden.text(text[: 4 * most + 4_000]))
        return escape(shown if len(shown) <= most else shown[: most - 1] + "…", quote=True)

    def long_text(self, text: str) -> str:
        """Return a text of several lines for a `pre` element."""
        given, lines = text.split("\n"), self.limits.lines
        shown = [self.text(each) for each in given[:lines]]
        return "\n".join([*shown, *([f"… and {len(given) - lines:,} more lines"] if len(given) > lines else [])])

    def moment(self, instant: Instant, what: str, kind: str) -> str:
        """Return a moment, as a link to its mark in the timeline; `what` happened there, `kind`: class of the mark."""
        text = self.text(instant.text)
        if not self._has_timeline:
            return f'<code class="moment">{text}</code>'
        key = f"at-{instant.text.replace(':', '-').replace('.', '-')}"
        self.marks.setdefault(key, LinkedMoment(instant, what, kind))
        return f'<a class="moment" href="#{self.text(key)}">{text}</a>'

    def drawing(self, data: bytes) -> str:
        """Return an SVG element, whose texts are escaped, with the secrets masked."""
        return self._hidden.data(data).decode("utf-8", "replace")
