"""Names, output and values of a program are shown unchanged, even if Textual could read them as `[/x]` and `[red]`."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

import replaydbg.tui
from replaydbg.tui.apps.pair_app import PairApp
from replaydbg.tui.apps.replay_app import ReplayApp
from replaydbg.tui.panels.values_panel import ValuesPanel
from replaydbg.tui.widgets.rows import Rows
from tests.harness.recording import record_file
from tests.harness.seen import Seen, see
from tests.harness.waiting import PATIENCE, wait_in_loop

ODD = "[/x][red]"
PROGRAM = f"""\
import sys, time
cache = {{"{ODD}": "{ODD}", "at": time.time()}}
def fails(key):
    held = cache[key]
    print(f"{{held}} to stdout", flush=True)
    print(f"{{held}} to stderr", file=sys.stderr)
    cache[key] = held = held + "{ODD}"
    raise ValueError(f"bad line in {{held}}: {{len(sys.argv)}}")
fails.__code__ = fails.__code__.replace(co_name="fails{ODD}", co_qualname="fails{ODD}")
fails("{ODD}")
"""


def shown(app: ReplayApp | PairApp) -> str:
    """Return the text on the terminal."""
    return "\n".join("".join(segment.text for segment in line) for line in app.screen._compositor.render_strips())


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Record one program twice, in directories and files with such names."""
    found = []
    for name in ("one", "two"):
        # A file name cannot contain a slash: so a directory ends in the `[`.
        folder = tmp_path_factory.mktemp(name) / "br[" / "x][red]"
        folder.mkdir(parents=True)
        program = folder / "we[red].py"
        program.write_text(PROGRAM)
        found.append(record_file(program, folder, *([] if name == "one" else ["more"]), status=1))
    return found[0], found[1]


@pytest.mark.slow
def test_every_panel_shows_it_as_it_is(recordings: tuple[Path, Path]) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        text = shown(seen.app)
        assert f"bad line in {ODD}{ODD}: 1" in text  # the card
        assert "we[red].py" in text
        assert f"3 Locals  fails{ODD}" in text
        assert f"{ODD} to stdout" in seen.text("output")
        assert f"{ODD} to stderr" in seen.text("output")

        await seen.press("colon")
        await seen.type(f"display cache['{ODD}']")
        assert f"cache['{ODD}'] = '{ODD}{ODD}'" in seen.text("values")
        await seen.press("3", "home")
        assert f"selected: cache['{ODD}']" in shown(seen.app)

        await seen.press("m")
        await seen.type(f"here {ODD} note")
        assert f"{ODD} note" in seen.text("notes")
        await seen.press("colon")
        await seen.type(f"'{ODD}'")
        assert ODD in seen.text("console")
        await seen.press("1", "p")
        await seen.type(f"'{ODD}'")
        await seen.press("slash")
        await seen.type("[/nothing]")
        await seen.pilot.pause()
        assert "[/nothing]" in shown(seen.app)

    see(recordings[0], look, size=(200, 50))


@pytest.mark.slow
def test_every_dialog_shows_it_as_it_is(recordings: tuple[Path, Path]) -> None:
    async def look(seen: Seen) -> None:
        async def dialog(*keys: str, typed: str = "") -> str:
            await seen.press(*keys)
            if typed:
                await seen.type(typed)
            await seen.until(lambda: any(each.rows for each in seen.app.screen.query("#choices").results(Rows)))
            await seen.pilot.pause()
            text = shown(seen.app)
            await seen.press("escape")
            return text

        await seen.press("m")
        await seen.type(f"here {ODD} note")
        await seen.press("colon")
        await seen.type(f"display cache['{ODD}']")
        await seen.press("3", "home")
        values = seen.app.part(ValuesPanel)
        assert values.chosen is not None
        assert ODD in values.chosen.expression
        assert f"Values of cache['{ODD}']" in await dialog("v")
        assert f"Who wrote cache['{ODD}']" in await dialog("W")
        assert f"{ODD} note" in await dialog("apostrophe")
        assert f"{ODD} note" in await dialog("D")
        assert "Visits of line" in await dialog("1", "enter")
        assert ODD in await dialog("colon", typed=f"bisect cache['{ODD}'].count('[red]') > 1")
        await seen.press("colon")
        await seen.type("diff @start")
        assert ODD in seen.text("heap")
        assert ODD in await dialog("enter")
        assert "Help" in await dialog("question_mark")
        await seen.press("ctrl+p")
        await seen.pilot.press(*"snap")
        await seen.until(lambda: "[  go to the previous snapshot" in shown(seen.app))

    see(recordings[0], look, size=(200, 50))


@pytest.mark.slow
def test_two_side_by_side_show_it_as_it_is(recordings: tuple[Path, Path]) -> None:
    async def look(app: PairApp, pilot: Pilot[int]) -> None:
        async def until_shown(text: str) -> None:
            await wait_in_loop(lambda: text in shown(app), message=lambda: shown(app))

        await until_shown(f"bad line in {ODD}{ODD}: 1")
        await until_shown(f"bad line in {ODD}{ODD}: 2")
        await pilot.press("D")
        await until_shown("Enter goes to its last write in both")
        await pilot.press("escape", "x")
        await until_shown("First differences")
        await pilot.press("escape", "percent_sign", *"@nowhere", "enter")
        await until_shown("we[red].rdbg: ")

    async def run() -> None:
        app = PairApp(recordings)
        async with app.run_test(size=(200, 50), notifications=True) as pilot:
            await look(app, pilot)
        for each in app.sides:
            each.owner.join(PATIENCE)

    asyncio.run(run())


def test_titles_and_texts_are_set_in_one_place() -> None:
    """All text that Textual would parse as markup goes through replaydbg.tui.widgets.plain_text."""
    found = []
    for path in sorted(Path(replaydbg.tui.__file__).parent.rglob("*.py")):
        if path.name != "plain_text.py":
            found += [f"{path.name}:{line} {what}" for line, what in past_it(ast.parse(path.read_text()))]

    assert found == []


def past_it(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Return where a module passes text to Textual directly."""
    read_as_markup = {"border_title", "border_subtitle", "tooltip", "notify", "update"}
    widgets = {"Static", "Label", "Button", "OptionList", "Option", "DataTable", "Tree", "Markdown", "Header"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual.widgets"):
            yield from ((node.lineno, each.name) for each in node.names if each.name in widgets)
        elif isinstance(node, ast.Attribute) and node.attr in read_as_markup and is_of_a_widget(node):
            yield node.lineno, node.attr


def is_of_a_widget(node: ast.Attribute) -> bool:
    """Return whether it is permitted: private attributes are sets and locks."""
    return not (isinstance(node.value, ast.Attribute) and node.value.attr.startswith("_")) and not (
        isinstance(node.value, ast.Name) and node.value.id in ("found", "seen")
    )
