"""Screens of the terminal UI: its main states, drawn by the real program, and their reproducible parts.

`python -m tests.harness.screens` redraws the documentation's pictures, and the screens that a test compares.
"""

from __future__ import annotations

import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual.geometry import Size

from replaydbg.tui.apps.replay_app import ReplayApp
from replaydbg.tui.apps.themes import use_theme
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.widgets.rows import Rows
from tests.harness.contrast import faint_texts
from tests.harness.recorded_group import BANK, record_program
from tests.harness.recording import record_failure
from tests.harness.seen import Seen, see

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "fixtures" / "races" / "till.py"
PICTURES = ROOT / "docs" / "pictures"
SCREENS = ROOT / "tests" / "screens"
SIZES = ((80, 24), (120, 36), (200, 50))
THEMES = ("dark", "light")
SHOWN = (120, 36)
"""The size of the pictures in the documentation."""


async def failure(seen: Seen) -> None:
    """The initial state."""


async def stepping(seen: Seen) -> None:
    """In a function, with a breakpoint and changed values."""
    await seen.press("colon")
    await seen.type("break Till.pay_in")
    await seen.press("C", "n", "n")
    await seen.until(lambda: bool(seen.app.part(TimelinePanel).tracks))
    await seen.press("3", "6")
    seen.app.show_tab("output")
    await seen.press("3")


async def who_wrote(seen: Seen) -> None:
    """The answer to who wrote a value."""
    await watch_till(seen)
    await seen.press("W")
    await opened(seen)


async def memory(seen: Seen) -> None:
    """The changes in memory since the first snapshot."""
    await seen.press("D")
    await opened(seen)
    await seen.press("enter")
    await seen.until(lambda: "Changed values" in seen.text("heap"))


async def bisected(seen: Seen) -> None:
    """The result of a bisection."""
    await seen.press("x")
    await opened(seen)
    await seen.press("enter")
    await seen.type("len(till.seen) != len(set(till.seen))")
    await opened(seen)
    await seen.press("enter")


def is_laid_out(seen: Seen, size: tuple[int, int]) -> bool:
    """Whether the panels, and the dialog on top of them, have that size."""
    screens = {seen.app.main.size, seen.app.screen.size, seen.app._terminal}
    return screens == {Size(*size)} and not any(each._layout_required for each in seen.app.screen_stack)


async def watch_till(seen: Seen) -> None:
    """Watch the till, and select it."""
    await seen.press("w")
    await seen.type("till.cents")
    await seen.press("3", "home")


async def opened(seen: Seen) -> None:
    """Wait until a dialog has content."""
    await seen.until(lambda: seen.app.screen is not seen.app.main and bool(shown_rows(seen)))


def shown_rows(seen: Seen) -> list[str]:
    """Return the rows of the open dialog."""
    return [row.text for each in seen.app.screen.query(Rows) for row in each.rows]


async def processes(seen: Seen) -> None:
    """The processes of a group."""
    await seen.press("P")
    await opened(seen)


async def messages(seen: Seen) -> None:
    """The messages between them."""
    await seen.press("M")
    await opened(seen)


STATES: dict[str, Callable[[Seen], Awaitable[None]]] = {
    "failure": failure,
    "stepping": stepping,
    "who-wrote": who_wrote,
    "memory": memory,
    "bisected": bisected,
}
GROUP_STATES: dict[str, Callable[[Seen], Awaitable[None]]] = {"processes": processes, "messages": messages}


def program_text() -> str:
    """Return the program as in the walk-through: without the first lines of a fixture."""
    return PROGRAM.read_text(encoding="utf-8").split("\n", 2)[2]


def record(folder: Path) -> Path:
    """Record the program of the pictures, in a directory with a short path."""
    program = folder / PROGRAM.name
    program.write_text(program_text())
    return record_failure(Path(program.name), folder)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A state at one size in one theme."""

    svg: str
    faint: list[str]
    """Its texts that have too little contrast."""


def draw(recording: Path, state: str) -> dict[tuple[tuple[int, int], str], Drawn]:
    """Return a state at all sizes and in all themes."""
    found: dict[tuple[tuple[int, int], str], Drawn] = {}

    async def look(seen: Seen) -> None:
        # The results of background tasks are on the timeline, too.
        await seen.until(lambda: state in GROUP_STATES or bool(seen.app.part(TimelinePanel).rows.all))
        await seen.quiet()
        await (STATES | GROUP_STATES)[state](seen)
        await seen.quiet()
        await seen.settled()
        await seen.pilot.pause()
        for theme in THEMES:
            use_theme(seen.app, theme)
            for size in SIZES:
                await seen.pilot.resize_terminal(*size)
                await seen.until(lambda: is_laid_out(seen, size))  # noqa: B023 - it is waited for at once
                await seen.pilot.pause()
                svg = plain(seen.app.export_screenshot(title="replaydbg"), recording.parent)
                found[size, theme] = Drawn(svg, faint_texts(seen.app))

    see(recording, look, size=SHOWN, make=partial(ReplayApp, theme="dark"))
    return found


def plain(svg: str, folder: Path) -> str:
    """Return a picture that loads no fonts, and contains nothing random or specific to this machine."""

    def without_folder(found: re.Match[str]) -> str:
        # Same length as before: each piece of text has a fixed width.
        return f">{found[1]}{found[2]}{'&#160;' * len(f'{folder}/')}<"

    svg = re.sub(rf">([^<]*){re.escape(str(folder))}/([^<]*)<", without_folder, svg)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.S)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)
    # No two pieces overlap.
    svg = re.sub(r' clip-path="url\(#terminal-\d+-line-\d+\)"', "", svg)
    svg = re.sub(r'<clipPath id="terminal-\d+-line-\d+">.*?</clipPath>\s*', "", svg, flags=re.S)
    svg = re.sub(r"Fira Code", "monospace", svg).replace("monospace,monospace", "monospace")
    return "\n".join(line.rstrip() for line in re.sub(r"terminal-\d+", "terminal", svg).splitlines()) + "\n"


_SVG = "{http://www.w3.org/2000/svg}"


def _texts(svg: str) -> Iterator[ElementTree.Element]:
    return ElementTree.fromstring(svg).iter(f"{_SVG}text")


def lines(svg: str) -> list[str]:
    """Return the text of a picture."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for each in _texts(svg):
        if "-title" not in each.get("class", ""):
            rows.setdefault(float(each.get("y", "0")), []).append((float(each.get("x", "0")), each.text or ""))
    return ["".join(text for _, text in sorted(row)).replace("\xa0", " ") for _, row in sorted(rows.items())]


def normal(svg: str) -> str:
    """Return the reproducible parts of a picture: no numbers, no positions on the timeline."""
    found = []
    for line in lines(svg):
        line = re.sub(r"0x[0-9a-f]+", "0x0", line)
        line = re.sub(r"(?<=[╮│╯])[0-9a-f]+>", "0>", line)  # an address whose beginning a dialog covers
        line = re.sub(r'File ".*', "File", line)  # its length depends on the directory
        line = re.sub(r"[0-9][0-9,.]*", "0", line)
        line = re.sub(
            r"[\w.]+( +\+?0)+ +(B|kB)", "TYPE 0 B", line
        )  # of how many of each type there are, and their order
        line = re.sub(r"(?<=│)[^│]*(TYPE 0 B <| in thread 0 \()[^│]*", "RETAINED", line)  # nor which object keeps most
        line = re.sub(r"[━·▁▂▃▄▅▆▇█✗◆▼●○]+", "*", line)
        line = re.sub(r"─+", "─", re.sub(r"[\s*]+", " ", line))
        line = re.sub(r" (?=[│┃])", "", line)  # whether there is one depends on how many digits a number has
        found.append(line.strip())
    classes = {each.get("class") for each in _texts(svg) if (each.text or "").strip("\xa0 ")}
    colours = sorted({fill for name, fill in re.findall(r"\.([\w-]+) \{ fill: (#[0-9a-f]{6})", svg) if name in classes})
    return "\n".join([*(each for each in found if each), f"colours: {' '.join(colours)}"]) + "\n"


def screen_path(state: str, size: tuple[int, int], theme: str) -> Path:
    """Return the path of a screen's normal form."""
    return SCREENS / f"{state}-{size[0]}x{size[1]}-{theme}.txt"


def main() -> None:
    """Redraw everything."""
    with tempfile.TemporaryDirectory() as folder:
        recordings = dict.fromkeys(STATES, record(Path(folder)))
        recordings |= dict.fromkeys(GROUP_STATES, record_program(Path(folder), BANK) / "1.rdbg")
        for state, recording in recordings.items():
            for (size, theme), drawn in draw(recording, state).items():
                svg = drawn.svg
                screen_path(state, size, theme).write_text(normal(svg), encoding="utf-8")
                if size == SHOWN and state not in GROUP_STATES and (theme == "dark" or state == "failure"):
                    (PICTURES / f"{state}-{theme}.svg").write_text(svg, encoding="utf-8")
            print(state, file=sys.stderr)


if __name__ == "__main__":
    main()
