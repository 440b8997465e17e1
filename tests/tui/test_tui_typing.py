"""Keys have the same effect however fast they arrive, and pasted text triggers nothing."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from textual import events
from textual._styles_cache import StylesCache
from textual.keys import _character_to_key
from textual.pilot import Pilot

from replaydbg.tui.apps.pair_app import PairApp
from replaydbg.tui.apps.replay_app import ReplayApp
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.dialogs.help_dialog import HelpDialog
from replaydbg.tui.dialogs.icicle_dialog import IcicleDialog
from replaydbg.tui.dialogs.input_line import AskLine, InputLine
from replaydbg.tui.dialogs.palette import PaletteDialog
from replaydbg.tui.dialogs.status_line import StatusLine
from replaydbg.tui.widgets.rows import Rows
from tests.harness.recording import record_file
from tests.harness.seen import Seen, see
from tests.harness.typed import FAILS, TRAVEL
from tests.harness.waiting import wait_in_loop


@pytest.fixture(scope="module")
def fails(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(FAILS, tmp_path_factory.mktemp("typing"), status=1)


def burst(app: ReplayApp | PairApp, text: str) -> None:
    """Send keys in one piece, as a terminal delivers keys that were sent together."""
    for each in text:
        key = {"\r": "enter", "\x1b": "escape"}.get(each) or _character_to_key(each)
        app.post_message(events.Key(key, each))


def typed(app: ReplayApp | PairApp) -> str:
    """Return the text in the input line."""
    return app.screen.query_one(InputLine).value


@pytest.mark.parametrize("before", ["", "6", "2", "nN"])
def test_what_follows_the_colon_goes_there(fails: Path, before: str) -> None:
    async def look(seen: Seen) -> None:
        burst(seen.app, f"{before}:when")
        await seen.settled()
        await seen.until(lambda: typed(seen.app) == "when")
        await seen.pilot.pause()

        assert seen.app.part(AskLine).is_open
        assert isinstance(seen.app.focused, InputLine)
        burst(seen.app, "-x")
        await seen.until(lambda: typed(seen.app) == "when-x")
        assert not seen.scene.points

    see(fails, look)


def test_lines_in_one_piece_are_done_one_after_the_other(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        burst(seen.app, ":p 6 * 7\r:p 6 * 8\rm here\r")
        await seen.until(lambda: bool(seen.scene.marks))

        assert [line for line in seen.text("console").splitlines() if line.isdecimal()] == ["42", "48"]
        assert [each.name for each in seen.scene.marks] == ["here"]

    see(fails, look)


def test_answers_to_many_questions_do_not_pile_up(fails: Path) -> None:
    """Each would have to be closed, and Textual draws all that are below: too many stop it."""

    async def look(seen: Seen) -> None:
        for _ in range(3):
            seen.app.ask_why("account.balance")
            seen.app.action_icicle()
        await seen.until(lambda: len(seen.app.screen_stack) > 1)
        await seen.settled()

        assert [type(each) for each in seen.app.screen_stack[1:]] == [IcicleDialog]
        await seen.press("escape")
        assert len(seen.app.screen_stack) == 1

    see(fails, look)


@pytest.mark.parametrize("text", ["when", ":when\n", "when\nquit\n"])
def test_pasted_text_waits_to_be_looked_at(fails: Path, text: str) -> None:
    async def look(seen: Seen) -> None:
        seen.app.post_message(events.Paste(text))
        await seen.until(lambda: typed(seen.app) == "when")

        assert not seen.text("console")
        assert ("first one" in seen.app.part(StatusLine).shown) is (text.count("\n") > 1)
        await seen.press("enter")
        assert "rdbg://" in seen.text("console")

    see(fails, look)


def test_pasted_text_goes_where_something_is_asked(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        burst(seen.app, "m")
        seen.app.post_message(events.Paste("here\n"))
        await seen.until(lambda: typed(seen.app) == "here")
        await seen.press("enter")
        assert [each.name for each in seen.scene.marks] == ["here"]

    see(fails, look)


def test_what_was_closed_already_closes_nothing_else(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        for key in ("?", "'"):
            burst(seen.app, key)
            await seen.until(lambda: isinstance(seen.app.screen, Dialog) and seen.app.screen.is_drawn)
            rows = seen.app.screen.query_one(Rows)
            rows.cursor = len(rows.rows) - 1
            # As after a click too many: each message chooses the row, and the first one closes the dialog.
            for _ in range(3):
                rows.post_message(Rows.Chosen(rows, "@end"))
            seen.app.screen.dismiss(None)
            await seen.settled()
            await seen.until(lambda: seen.app.screen is seen.app.main)
        assert not seen.app._exit

    see(fails, look)


def test_the_palette_takes_what_comes_with_its_key(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        before = seen.scene.count

        def open_and_type(text: str) -> None:
            seen.app.post_message(events.Key("ctrl+p", None))
            burst(seen.app, text)

        open_and_type("first line\r")
        await seen.until(lambda: seen.scene.count < before)
        assert seen.app.screen is seen.app.main

        open_and_type("no such thing at all")
        await seen.until(lambda: isinstance(seen.app.screen, PaletteDialog))
        palette = seen.app.screen
        await seen.until(
            lambda: [row.text for each in palette.query(Rows) for row in each.rows] == ["No action matches."]
        )
        for key in ("pagedown", "pageup", "enter", "escape", "escape"):
            seen.app.post_message(events.Key(key, None))
        await seen.until(lambda: seen.app.screen is seen.app.main)

        open_and_type("light theme\r")
        await seen.until(lambda: not seen.app.current_theme.dark)

    see(fails, look)


def test_a_dialog_that_is_closed_at_once(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        for _ in range(3):
            # The help wraps its text after the next picture.
            help_ = HelpDialog("One.")
            await seen.app.push_screen(help_)
            help_.dismiss(None)
            await seen.until(lambda: seen.app.screen is seen.app.main)
            help_._wrap()
            await seen.pilot.pause()
        assert not seen.app._exit

    see(fails, look)


def test_two_side_by_side(fails: Path) -> None:
    async def run() -> None:
        app = PairApp((fails, fails))
        async with app.run_test(size=(160, 40)) as pilot:
            await in_pair(app, pilot)
        for each in app.sides:
            each.owner.join(60)

    asyncio.run(run())


async def in_pair(app: PairApp, pilot: Pilot[int]) -> None:
    """Paste and type into two recordings side by side."""
    await wait_in_loop(lambda: not app.is_waiting)
    await pilot.pause()
    app.post_message(events.Paste("when"))
    await wait_in_loop(lambda: "Paste works" in app.query_one(StatusLine).shown)
    burst(app, "%@start\r")
    await wait_in_loop(lambda: all(each.scene is not None and each.scene.why == "seek" for each in app.sides))


@pytest.mark.slow
def test_a_list_is_not_hit_by_what_was_typed_before_it_was_there(tmp_path: Path) -> None:
    recording = record_file(TRAVEL / "long_loop.py", tmp_path)

    async def look(seen: Seen) -> None:
        shown = []
        progress = StatusLine.progress

        def note(line: StatusLine, what: str, done: float, seconds: float) -> None:
            shown.append((what, done))
            progress(line, what, done, seconds)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StatusLine, "progress", note)
            seen.app.part(AskLine).ask("all values of", seen.app._ask_history)
            await seen.type("total")
            await seen.until(lambda: isinstance(seen.app.screen, Dialog))
            dialog = seen.app.screen
            # The dialog exists, but has not been drawn yet.
            early = events.Key("enter", None)
            early.time = 0.0
            seen.app.post_message(early)
            await seen.pilot.pause()

        assert seen.app.screen is dialog
        assert any("total" in what and done for what, done in shown), shown
        before = seen.scene.count
        await seen.press("home", "enter")
        assert seen.scene.count < before

    see(recording, look)


def test_keys_that_come_when_it_ends_are_ignored(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        burst(seen.app, "q" + "nN?:x" * 40)
        await seen.until(lambda: seen.app._exit)
        for _ in range(100):
            burst(seen.app, "n")
            await asyncio.sleep(0)

    assert see(fails, look) == 0


def test_closed_dialogs_leave_no_pictures_behind(fails: Path) -> None:
    def pictures() -> int:
        gc.collect()
        return sum(isinstance(each, StylesCache) for each in gc.get_objects())

    async def look(seen: Seen) -> None:
        await seen.quiet()
        before = pictures()
        for _ in range(6):
            burst(seen.app, "?")
            await seen.until(lambda: isinstance(seen.app.screen, HelpDialog) and seen.app.screen.is_drawn)
            burst(seen.app, "\x1b")
            await seen.until(lambda: seen.app.screen is seen.app.main)
            await seen.pilot.pause()
        # Each has six widgets with pictures.
        assert pictures() < before + 12

    see(fails, look)
