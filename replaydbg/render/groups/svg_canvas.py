"""A small canvas that collects SVG elements.

Built with the standard library's ElementTree: it escapes all text, and a drawing of lines and words needs no more. The
result has no scripts, no references to other files, and no fonts but those of the reader.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import NamedTuple

from replaydbg.events.show import printable

CHARACTER = 6.7
"""Width of a character of the monospaced text, in pixels: a little more than that of common fonts at 11 pixels."""

_STROKES = """
text { font: 11px ui-monospace, Menlo, Consolas, monospace; }
.title { font-size: 13px; font-weight: bold; }
.strong, .number { font-weight: bold; }
.number { text-anchor: middle; }
.lane, .end { stroke-width: 2; }
.beyond { stroke-dasharray: 2 4; }
.message { stroke-width: 1.2; fill: none; }
.start { stroke-width: 1.2; stroke-dasharray: 1.5 3; fill: none; }
.flying { stroke-width: 2.6; fill: none; }
.cut { stroke-width: 1.6; stroke-dasharray: 7 4; }
.badge { stroke-width: 1.6; }
"""

_COLOURS = """
.page {{ fill: {page}; stroke: {faint}; }}
text, .event {{ fill: {ink}; }}
.event {{ stroke: {page}; }}
.dim, .tip {{ fill: {dim}; }}
.lane, .cut, .end {{ stroke: {ink}; }}
.later, .beyond, .message, .start {{ stroke: {dim}; }}
.flying {{ stroke: {flying}; }}
.flying-tip, .number {{ fill: {flying}; }}
.badge {{ fill: {page}; stroke: {flying}; }}
"""

_LIGHT = {"page": "#ffffff", "ink": "#1f2328", "dim": "#57606a", "faint": "#b6bec7", "flying": "#a34600"}
_DARK = {"page": "#0d1117", "ink": "#e6edf3", "dim": "#9aa4af", "faint": "#48515b", "flying": "#ffb454"}
EMBEDDED = "canvas"
"""The class of a drawing that is part of a page, and that has the page's style."""


def embedded_style(colours: Mapping[str, str]) -> str:
    """Return the style of drawings within a page; `colours` are those of the page, by their names here."""
    rules = [each for each in f"{_STROKES}{_COLOURS.format(**colours)}".splitlines() if each]
    return "\n".join(
        ", ".join(f".{EMBEDDED} {each.strip()}" for each in selectors.split(",")) + brace + rest
        for selectors, brace, rest in (rule.partition("{") for rule in rules)
    )


# Written out, because few programs besides browsers know variables in styles. The page has a background of its own:
# whatever is around the drawing, its colours can be told apart.
_STYLE = f"{_STROKES}{_COLOURS.format(**_LIGHT)}@media (prefers-color-scheme: dark) {{{_COLOURS.format(**_DARK)}}}\n"


class Spot(NamedTuple):
    """A place on the canvas, in pixels from its upper left corner."""

    x: float
    y: float


class SvgCanvas:
    """Collects elements in the order in which they are painted."""

    def __init__(self, title: str, description: str, *, is_embedded: bool = False) -> None:
        """`title` and `description` are what a screen reader reads.

        `is_embedded`: it becomes part of a page, which has `embedded_style`.
        """
        self._is_embedded = is_embedded
        self._root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
        self._add(self._root, "title", text=title, id="cut-title")
        self._add(self._root, "desc", text=description, id="cut-description")
        self._root.set("aria-labelledby", "cut-title cut-description")
        if is_embedded:
            self._root.set("class", EMBEDDED)
        else:
            ElementTree.SubElement(self._root, "style").text = _STYLE
        self._page = ElementTree.SubElement(self._root, "rect", {"class": "page", "rx": "6"})

    def _add(self, parent: ElementTree.Element, tag: str, *, text: str = "", **attributes: str) -> ElementTree.Element:
        element = ElementTree.SubElement(parent, tag, attributes)
        if text:
            element.text = printable(text)
        return element

    def group(self, hint: str) -> ElementTree.Element:
        """Return a new group of elements; `hint` is shown when the pointer rests on it."""
        group = ElementTree.SubElement(self._root, "g")
        self._add(group, "title", text=hint)
        return group

    def line(self, first: Spot, last: Spot, kind: str, *, within: ElementTree.Element | None = None) -> None:
        """Draw a line; `kind` is its class in the style."""
        places = {"x1": _number(first.x), "y1": _number(first.y), "x2": _number(last.x), "y2": _number(last.y)}
        self._add(self._root if within is None else within, "line", **{"class": kind, **places})

    def path(self, data: str, kind: str, *, within: ElementTree.Element) -> None:
        """Draw a path: numbers and letters in the language of SVG."""
        self._add(within, "path", **{"class": kind, "d": data})

    def tip(self, point: Spot, origin: Spot, kind: str, *, within: ElementTree.Element, size: float = 8) -> None:
        """Draw the head of an arrow that comes from `origin`."""
        along, across = _direction(origin, point)
        wings = [
            Spot(
                point.x - size * along.x + side * size / 2 * across.x,
                point.y - size * along.y + side * size / 2 * across.y,
            )
            for side in (1, -1)
        ]
        corners = " ".join(f"{_number(each.x)},{_number(each.y)}" for each in (point, *wings))
        self._add(within, "polygon", **{"class": kind, "points": corners})

    def circle(self, centre: Spot, radius: float, kind: str, *, within: ElementTree.Element | None = None) -> None:
        """Draw a circle."""
        places = {"cx": _number(centre.x), "cy": _number(centre.y), "r": _number(radius)}
        self._add(self._root if within is None else within, "circle", **{"class": kind, **places})

    def text(self, at: Spot, text: str, kind: str = "", *, within: ElementTree.Element | None = None) -> None:
        """Write text, with its baseline at a place; control characters are escaped."""
        attributes = {"x": _number(at.x), "y": _number(at.y), **({"class": kind} if kind else {})}
        self._add(self._root if within is None else within, "text", text=text, **attributes)

    def to_bytes(self, width: float, height: float) -> bytes:
        """Return the file, of a size in pixels; of an embedded drawing the element."""
        size = {"width": _number(width), "height": _number(height)}
        for name, value in size.items():
            self._root.set(name, value)
            self._page.set(name, value)
        self._root.set("viewBox", f"0 0 {size['width']} {size['height']}")
        if not self._is_embedded:
            ElementTree.indent(self._root)
        text = ElementTree.tostring(self._root, encoding="unicode", short_empty_elements=not self._is_embedded)
        if self._is_embedded:
            return text.encode()
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def between(first: Spot, last: Spot, pixels: float) -> Spot:
    """Return the place that is so far from the first one, on the way to the last."""
    along, _ = _direction(first, last)
    return Spot(first.x + pixels * along.x, first.y + pixels * along.y)


def _direction(first: Spot, last: Spot) -> tuple[Spot, Spot]:
    """Return the unit vector from one place to another, and the one across it."""
    x, y = last.x - first.x, last.y - first.y
    length = (x * x + y * y) ** 0.5 or 1.0
    return Spot(x / length, y / length), Spot(-y / length, x / length)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
