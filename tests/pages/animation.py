"""The README's picture of a session: `python -m tests.pages.animation` records a real one, and animates it as an SVG.

The program is the tutorial's. It is recorded until it fails; the take that failed is drawn, each line as the commands
printed it, at times that leave time to read. The picture needs no scripts, follows the reader's colour scheme, and
stands still if motion is not wanted.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from html import escape, unescape
from itertools import pairwise
from pathlib import Path

from rich.style import Style
from rich.text import Text

from tests.pages.blocks import ROOT, blocks_of
from tests.pages.comparison import without_progress
from tests.pages.shell import Conversation, Shell

PICTURE = ROOT / "docs" / "pictures" / "session.svg"
TITLE = "A program fails. Its recording is opened at the failure, and shows which line wrote the wrong value."
ATTEMPTS = 60
"""Takes: the program fails one time in four."""
ROWS, COLUMNS = 26, 100
WIDTH, HEIGHT, MARGIN, BAR = 8.4, 19, 14, 30
"""Pixels: a character, a line, the border, and the title bar."""
KEY, BEFORE, LINE, LEAST, MOST, END = 0.055, 0.5, 0.32, 1.0, 4.5, 6.0
"""Seconds: a key; before the output; to read a line of it, in all at least and at most; at the end."""
COLOURS = {  # dark, light
    "back": ("#121212", "#fafafa"), "bar": ("#292929", "#e1e5ea"), "text": ("#e4e4e4", "#1b1f24"),
    "dim": ("#9c9c9c", "#5a6068"), "1": ("#f08fa0", "#b3193f"), "2": ("#8ad4a1", "#0d6630"),
    "3": ("#ffc473", "#8a4600"), "4": ("#7cbcf0", "#0a5aa8"), "5": ("#d7a6e8", "#7a2a94"), "6": ("#7fd3d8", "#00616b"),
}  # fmt: skip
"""By the names of classes: those of ANSI's colours are their numbers."""


@dataclass(slots=True)
class Scene:
    """A line that is typed, and what is printed after it."""

    prompt: str
    typed: str
    printed: list[Text] = field(default_factory=list)


def take(top: Path) -> list[Scene] | None:
    """Record the session once; None: the program did not fail."""
    shell = Shell(top)
    program, tickets = blocks_of(ROOT / "docs" / "tutorial.md")[:2]
    (shell.work / "lottery.py").write_text(program.text)
    shell.run(tickets.text.removeprefix("$ "))
    found: list[Scene] = []

    def add(prompt: str, typed: str, printed: str) -> None:
        plain = re.sub(r"\r\n|\r$", "\n", shell.there(printed))
        # Without the sequences by which a line editor switches the terminal.
        plain = re.sub(r"\x1b\[\?\d+[hl]\r?", "", plain).strip("\n")
        found.append(Scene(prompt, typed, [Text.from_ansi(line) for line in plain.split("\n")] if plain else []))

    record = Conversation(shell, "replaydbg record lottery.py", columns=COLUMNS, is_coloured=True)
    add("$", record.command, record.read_raw())
    if record.end() == 0:
        return None
    debug = Conversation(shell, "replaydbg debug latest", columns=COLUMNS, is_coloured=True)
    add("$", debug.command, debug.read_raw())
    why = debug.type_raw("why paid")
    add(debug.prompt, "why paid", why)
    returned = re.search(r"returned at (\S+)", without_progress(why))
    assert returned is not None, why
    for typed in (f"seek {returned[1]}", "p pot, people"):
        add(debug.prompt, typed, debug.type_raw(typed))
    assert debug.end() == 0
    return found


def record() -> list[Scene]:
    """Record the session until the program fails in it."""
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="session-") as top:
            found = take(Path(top))
        if found is not None:
            return found
    raise AssertionError(f"the program passed {ATTEMPTS} times")


# ---- drawing ----


@dataclass(slots=True)
class Film:
    """Parts of the picture, each with the time at which it appears."""

    now: float = 0.6
    """Seconds since the beginning."""
    row: int = 0
    shown: list[tuple[float, str]] = field(default_factory=list)
    """When a part appears, and the part."""
    keys: list[tuple[float, float, int]] = field(default_factory=list)
    """Of each line that is typed: from when to when, and its number of keys."""
    scrolls: list[tuple[float, int]] = field(default_factory=list)
    """When the text has moved up, and by how many lines."""

    def add(self, scene: Scene) -> None:
        """Add a scene to the end."""
        line = Text.assemble((scene.prompt, Style(dim=True)), " ", (scene.typed, Style(bold=True)))
        number, left = len(self.keys), (len(scene.prompt) + 1) * WIDTH
        top = self.row * HEIGHT
        cover = (
            f'<g class="c k{number}"><rect class="back" x="{left:g}" y="{top}" width="2000" height="{HEIGHT}"/>'
            f'<rect class="cursor" x="{left:g}" y="{top + 2}" width="{WIDTH}" height="{HEIGHT - 4}"/></g>'
        )
        self._show([line], cover)
        end = self.now + len(scene.typed) * KEY
        self.keys.append((self.now, end, len(scene.typed)))
        self.now = end + BEFORE
        if scene.printed:
            self._show(scene.printed)
        self.now += min(MOST, max(LEAST, LINE * len(scene.printed)))

    def _show(self, lines: list[Text], more: str = "") -> None:
        drawn = "".join(_line(line, self.row + number) for number, line in enumerate(lines))
        self.row += len(lines)
        self.shown.append((self.now, drawn + more))
        if self.row > ROWS:
            self.scrolls.append((self.now, self.row - ROWS))
        self.now += 0.4


def _line(line: Text, row: int) -> str:
    if not line.plain.strip():
        return ""
    y = row * HEIGHT + HEIGHT * 0.72
    return f'<text y="{y:g}" textLength="{len(line.plain) * WIDTH:g}">{"".join(_pieces(line))}</text>'


def _pieces(line: Text) -> list[str]:
    """Return a line as pieces of one style each."""
    edges = sorted({0, len(line), *(edge for span in line.spans for edge in (span.start, span.end))})
    found = []
    for begin, end in pairwise(edges):
        style = Style.combine(
            [
                Style.null(),
                *(
                    each.style
                    for each in line.spans
                    if isinstance(each.style, Style) and each.start <= begin < each.end
                ),
            ]
        )
        names = [f"a{style.color.number % 8}"] if style.color is not None and style.color.number else []
        names += [name for name in ("bold", "dim") if getattr(style, name)]
        text = escape(line.plain[begin:end], quote=False)
        found.append(f'<tspan class="{" ".join(names)}">{text}</tspan>' if names else text)
    return found


def draw(scenes: list[Scene]) -> str:
    """Return the picture."""
    film = Film()
    for scene in scenes:
        film.add(scene)
    length = film.now + END
    rules, parts = [], []
    for number, (at, part) in enumerate(film.shown):
        rules.append(f"@keyframes s{number}{{0%{{opacity:0}}{_share(at, length)}{{opacity:1}}}}")
        rules.append(f".s{number}{{animation-name:s{number}}}")
        parts.append(f'<g class="s s{number}">{part}</g>')
    for number, (begin, end, keys) in enumerate(film.keys):
        rules.append(
            f"@keyframes k{number}{{0%,{_share(begin, length)}"
            f"{{transform:none;animation-timing-function:steps({keys})}}"
            f"{_share(end, length)}{{transform:translate({keys * WIDTH:g}px)}}"
            f"{_share(end + BEFORE, length)},100%{{transform:translate(3000px)}}}}"
        )
        rules.append(f".k{number}{{animation-name:k{number}}}")
    moved = "".join(f"{_share(at, length)}{{transform:translateY({-rows * HEIGHT}px)}}" for at, rows in film.scrolls)
    rules.append(f"@keyframes up{{0%{{transform:none}}{moved}}}")
    last = film.scrolls[-1][1] if film.scrolls else 0
    return _page(rules, "\n".join(parts), length, last)


def _share(at: float, length: float) -> str:
    return f"{100 * at / length:.2f}%"


def _scheme(number: int) -> str:
    found = [f"svg{{--text:{COLOURS['text'][number]}}}"]
    for name, colours in COLOURS.items():
        selector = f".a{name}" if name.isdecimal() else f".{name}"
        found.append(f"{selector}{{fill:{colours[number]}}}")
    return "".join(found)


def _page(rules: list[str], parts: str, length: float, last: int) -> str:
    width, height = COLUMNS * WIDTH, ROWS * HEIGHT
    box = f"0 0 {width + 2 * MARGIN:g} {height + BAR + 2 * MARGIN:g}"
    fonts = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace'
    buttons = "".join(
        f'<circle cx="{at}" cy="15" r="6" fill="{colour}"/>'
        for at, colour in ((20, "#ff5f57"), (40, "#febc2e"), (60, "#28c840"))
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" xml:space="preserve">
<title>{TITLE}</title>
<style>
text{{font:14px {fonts};white-space:pre;fill:var(--text)}}
.bold{{font-weight:bold}}.cursor{{fill:var(--text)}}
{_scheme(0)}
@media (prefers-color-scheme:light){{{_scheme(1)}}}
.s,.c,.up{{animation:{length:.1f}s step-end infinite}}.c{{transform:translate(3000px)}}
.up{{transform:translateY({-last * HEIGHT}px);animation-name:up}}
{chr(10).join(rules)}
@media (prefers-reduced-motion:reduce){{.s,.c,.up{{animation:none}}}}
</style>
<rect class="back" width="100%" height="100%" rx="8"/><rect class="bar" width="100%" height="{BAR}" rx="8"/>
{buttons}
<svg x="{MARGIN}" y="{BAR + MARGIN}" width="{width:g}" height="{height:g}"><g class="up">
{parts}
</g></svg>
</svg>
"""


def shown_lines(svg: str) -> list[str]:
    """Return the lines of text in a picture."""
    return [unescape(re.sub("<[^>]+>", "", each)) for each in re.findall(r"<text [^>]*>(.*?)</text>", svg)]


if __name__ == "__main__":
    PICTURE.write_text(draw(record()), encoding="utf-8")
