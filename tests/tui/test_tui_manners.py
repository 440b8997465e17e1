"""The terminal UI in odd circumstances: small terminals, no colours, no Unicode, other keys, accidents."""

from __future__ import annotations

import gc
import os
import random
import signal
import string
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from textual.scrollbar import ScrollBarRender

from replaydbg.errors import UsageError
from replaydbg.tui.apps.replay_app import ReplayApp
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.dialogs.status_line import StatusLine
from replaydbg.tui.keys import ACTS, PRESETS, keymap
from replaydbg.tui.panels.lower_panel import LowerPanel
from replaydbg.tui.panels.source_panel import SourcePanel
from replaydbg.tui.panels.stack_panel import StackPanel
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.view_model import Reply
from replaydbg.tui.widgets.glyphs import AsciiBars
from replaydbg.tui.widgets.rows import Rows
from replaydbg.tui.worker.moment_queries import QUESTIONS
from replaydbg.tui.worker.session_host import SessionHost
from tests.harness.recording import record_file
from tests.harness.seen import Seen, see
from tests.harness.typed import FAILS, TRAVEL

PRESSES = int(os.environ.get("TEST_PRESSES", "40"))


@pytest.fixture(scope="module")
def fails(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(FAILS, tmp_path_factory.mktemp("tui"), status=1)


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "lanes_and_tasks.py", tmp_path_factory.mktemp("tui"))


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "long_loop.py", tmp_path_factory.mktemp("tui"))


def screen_text(seen: Seen) -> str:
    """Return the text on the terminal."""
    width, height = seen.app.size
    lines = seen.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in lines)[: (width + 1) * height]


# ---- terminals ----


def test_ascii_draws_nothing_else(lanes: Path) -> None:
    async def look(seen: Seen) -> None:
        for keys in ((), ("g", "n", "b"), ("question_mark",), ("escape", "apostrophe")):
            await seen.press(*keys)
            await seen.pilot.pause()
            assert [char for char in screen_text(seen) if not char.isascii()] == []

    see(lanes, look, make=partial(ReplayApp, is_ascii=True))


def test_ascii_is_of_one_app(lanes: Path) -> None:
    drawn: list[type[ScrollBarRender]] = []

    async def look(seen: Seen) -> None:
        drawn.append(seen.app.part(SourcePanel).vertical_scrollbar.renderer)

    for is_ascii in (True, False):
        see(lanes, look, make=partial(ReplayApp, is_ascii=is_ascii))

    assert drawn == [AsciiBars, ScrollBarRender]


def test_no_colour_is_needed(fails: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def look(seen: Seen) -> None:
        await seen.press("1")
        text = screen_text(seen)

        assert "✗▶30" in text
        assert "OUTPUT console" in text

    see(fails, look)


@pytest.mark.parametrize(("key", "panel"), [("2", "stack"), ("3", "values"), ("4", "heap"), ("6", "output")])
def test_a_narrow_terminal_shows_one_panel_at_a_time(fails: Path, key: str, panel: str) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("N", key)
        await seen.pilot.pause()

        shown = {each.id for each in seen.app.main.query(Rows) if each.region.height and each.region.width}
        assert shown == {"source", panel}
        assert "5 Timeline" in screen_text(seen)

    see(fails, look, size=(80, 24))


def test_a_very_small_terminal_shows_one_panel(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        assert "RuntimeError: hidden" in screen_text(seen)
        await seen.press("N")
        for key, panel in (("1", "source"), ("2", "stack"), ("3", "values"), ("4", "heap"), ("6", "output")):
            await seen.press(key)
            await seen.pilot.pause()
            shown = [each.id for each in seen.app.main.query(Rows) if each.region.height > 2]
            assert shown == [panel]
            assert "event " in screen_text(seen)

        await seen.press("1")
        await seen.pilot.pause()
        assert "▶28" in screen_text(seen)

    see(fails, look, size=(40, 10))


def test_a_terminal_may_change_its_size(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        for size in ((200, 60), (80, 24), (30, 8), (3, 1), (400, 100), (120, 36)):
            await seen.pilot.resize_terminal(*size)
            await seen.press("N", "n")
        # Also while a question is open.
        await seen.press("x")
        await seen.pilot.resize_terminal(40, 10)
        await seen.press("escape", "colon")
        await seen.pilot.resize_terminal(120, 36)
        await seen.press("escape")

        assert seen.app.main.has_class("-narrow") is False
        assert "3 Locals" in screen_text(seen)

    see(fails, look)


def test_themes(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        assert seen.app.current_theme.dark is False

    see(fails, look, make=partial(ReplayApp, theme="light"))
    with pytest.raises(UsageError, match="No such theme: 'green'"):
        ReplayApp(fails, theme="green")


# ---- keys ----


@pytest.mark.parametrize("preset", PRESETS)
def test_no_key_of_a_preset_is_for_two_acts(preset: str) -> None:
    keys = [key for each in keymap(preset).values() for key in each.split()]

    assert len(keys) == len(set(keys))
    assert all(keymap(preset)[each.id] for each in ACTS)


def test_keys_of_the_user_go_before_those_of_a_preset() -> None:
    keys = keymap("pudb", {"next": "j", "copy": "V"})

    assert (keys["next"], keys["copy"], keys["panel-3"], keys["finish"]) == ("j", "V", "3", "f r")


@pytest.mark.parametrize(
    ("preset", "own", "said"),
    [
        ("emacs", {}, "No such keymap: 'emacs'"),
        ("default", {"dance": "x"}, "No such action: 'dance'"),
        ("default", {"next": "x", "step": "x"}, "The key 'x' is assigned twice: to 'next' and to 'step'"),
    ],
)
def test_keys_that_make_no_sense(preset: str, own: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        keymap(preset, own)


def test_other_keys_are_heeded_and_shown(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        before = seen.scene.count
        await seen.press("n")
        assert seen.scene.count == before
        await seen.press("Z")
        assert seen.scene.count < before
        await seen.press("question_mark")
        rows = [row.text.split() for row in seen.app.screen.query_one(Rows).rows]
        assert ["Z", "go", "back", "to", "the", "previous", "line", "of", "this", "function"] in rows

    see(fails, look, make=partial(ReplayApp, keys=keymap("default", {"reverse-next": "Z", "next": ""})))


def test_a_key_of_the_user_is_no_key_of_a_panel_any_longer(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        for panel, key, line in (("1", "j", 28), ("3", "j", 27), ("5", "h", 24)):
            await seen.press(panel, key)
            assert seen.scene.at is not None
            assert seen.scene.at.line == line
        # Only the arrows are left.
        await seen.press("1")
        cursor = seen.app.part(SourcePanel).cursor
        await seen.press("down")
        assert seen.app.part(SourcePanel).cursor == cursor + 1

    see(fails, look, make=partial(ReplayApp, keys=keymap("default", {"reverse-next": "j h"})))


def test_the_palette_has_every_act(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        titles = {each.title for each in seen.app.get_system_commands(seen.app.screen)}
        assert {each.title for each in ACTS} <= titles

        await seen.press("g", "ctrl+p")
        await seen.pilot.press(*"program failed")

        def chosen() -> str:
            row = seen.app.screen.query_one(Rows).row
            return row.text if row is not None else ""

        await seen.until(lambda: "to where the program failed" in chosen())
        await seen.pilot.press("down", "up", "pagedown", "home", "enter")
        await seen.until(lambda: seen.scene.at is not None and seen.scene.at.line == 30)
        assert seen.app.screen is seen.app.main

    see(fails, look)


@pytest.mark.parametrize("panel", ["1", "2", "3", "4", "5", "6"])
def test_help_is_of_the_focused_panel(fails: Path, panel: str) -> None:
    async def look(seen: Seen) -> None:
        await seen.press(panel)
        focused = seen.app.focused
        await seen.press("question_mark")
        await seen.until(lambda: isinstance(seen.app.screen, Dialog))

        rows = seen.app.screen.query_one(Rows).rows
        assert getattr(focused, "HELP", "")[:40] == rows[0].text[:40]

    see(fails, look)


# ---- the mouse ----


def test_the_keys_of_the_bottom_line_can_be_clicked(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        status = seen.app.part(StatusLine)
        text = str(status.hint())
        await seen.click(status, offset=(text.index("back"), 0))
        await seen.settled()
        assert seen.scene.at is not None and seen.scene.at.line == 28

        await seen.click(status, offset=(text.index("exception"), 0))
        await seen.settled()
        assert seen.scene.at.line == 30
        assert "RuntimeError" in status.shown
        await seen.click(status, offset=(text.index("palette"), 0))
        assert not status.shown
        await seen.click(status, offset=(text.index("palette"), 0))
        await seen.until(lambda: seen.app.screen is not seen.app.main)
        await seen.pilot.press("escape")

    see(fails, look)


def test_panels_are_clicked(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        # A second click chooses; in front of a line one sets a breakpoint; for output one click goes there.
        await seen.press("S", "S", "S")
        await seen.click("#stack", offset=(6, 2), times=2)
        await seen.settled()
        assert seen.scene.frame == 1

        source = seen.app.part(SourcePanel)
        await seen.click(source, offset=(2, 3))
        await seen.settled()
        assert len(seen.scene.points) == 1
        # Its hits are another row of the timeline, for which the other panels make room.
        await seen.until(lambda: bool(seen.app.part(TimelinePanel).tracks))
        await seen.quiet()

        await seen.click("#output", offset=(8, 0))
        await seen.until(lambda: seen.scene.at is not None and seen.scene.at.line == 28)

        await seen.click("#lower", offset=(13, 0))
        await seen.until(lambda: seen.app.part(LowerPanel).selected == "console")

    see(fails, look)


# ---- long operations ----


def test_what_takes_long_says_so_and_is_given_up(long: Path) -> None:
    async def look(seen: Seen) -> None:
        status = seen.app.part(StatusLine)
        before = seen.scene.count
        file = TRAVEL / "long_loop.py"
        # Copies of the process are asked for these values, which takes long.
        seen.app.order(f"log {file}:11 \"locals()['number']\"", is_typed=True)
        await seen.until(lambda: "Esc cancels" in status.shown)

        # Drawing is not held up meanwhile.
        await seen.pilot.press("2")
        assert seen.app.part(StackPanel).has_focus
        await seen.pilot.press("escape")
        await seen.settled()

        assert seen.scene.count == before
        assert "Cancelled" in seen.text("console")

    see(long, look)


def test_of_many_seeks_the_last_one_counts(long: Path) -> None:
    async def look(seen: Seen) -> None:
        done: list[int] = []

        def scrub(count: int, host: SessionHost) -> Reply:
            done.append(count)
            return host.scrub(count)

        last = seen.overview.last
        for count in range(last - 4000, last, 10):
            seen.app.ask(partial(scrub, count), slot="seek")
        await seen.settled()

        assert seen.scene.count == last - 10
        assert len(done) < 100

    see(long, look)


# ---- accidents ----


def test_a_session_that_is_lost_begins_anew_where_it_stood(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("colon")
        await seen.type("break twice")
        await seen.press("N", "N")
        before = seen.scene
        host = seen.app.owner._host
        assert host is not None
        travel = host.session.travel
        for pid in {*travel.timeline.processes(), host.session.cursor.pid}:
            os.kill(pid, signal.SIGKILL)
        travel.close()

        await seen.press("N")

        assert "restarted at the same position" in " ".join(seen.text("console").split())
        assert (seen.scene.count, seen.scene.points) == (before.count, before.points)
        await seen.press("N")
        assert seen.scene.count < before.count

    see(fails, look)


def test_a_process_that_is_killed_is_replaced_with_a_notice(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("N", "N")
        before = seen.scene
        host = seen.app.owner._host
        assert host is not None
        for pid in {*host.session.travel.timeline.processes(), host.session.cursor.pid}:
            os.kill(pid, signal.SIGKILL)

        await seen.press("N")
        await seen.until(lambda: "has been replaced" in seen.app.part(StatusLine).shown)

        assert seen.scene.count < before.count
        assert "has been replaced" in " ".join(seen.text("console").split())
        await seen.press("n")
        assert seen.scene.count == before.count

    see(fails, look)


def test_a_bug_of_ours_does_not_end_the_session(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        def breaks(host: SessionHost) -> Reply:
            raise ZeroDivisionError("a bug")

        seen.app.ask(breaks)
        await seen.settled()
        assert "ZeroDivisionError: a bug" in " ".join(seen.text("console").split())

        await seen.press("N")
        assert seen.scene.at is not None and seen.scene.at.line == 28

    see(fails, look)


def test_questions_have_their_names() -> None:
    assert all(name == each.__name__ for name, each in QUESTIONS.items())


# ---- random input ----

KEYS = [
    *(each for each in string.ascii_letters if each != "q"),
    *("1", "2", "3", "4", "5", "6", "left", "right", "up", "down", "home", "end", "pageup", "pagedown", "enter"),
    *("escape", "backspace", "delete", "tab", "colon", "slash", "percent_sign", "question_mark", "space"),
    *("left_square_bracket", "right_square_bracket", "left_curly_bracket", "right_curly_bracket", "apostrophe"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fails", "lanes"])
def test_random_keys_break_nothing(name: str, request: pytest.FixtureRequest) -> None:
    recording: Path = request.getfixturevalue(name)
    seed = int(os.environ.get("TEST_SEED", "0")) or random.randrange(1 << 30)
    print(f"TEST_SEED={seed}")
    draw = random.Random(seed)

    async def look(seen: Seen) -> None:
        said: list[str] = []
        for _ in range(PRESSES):
            key = draw.choice(KEYS)
            said.append(key)
            await seen.pilot.press(key)
            if draw.random() < 0.2:
                await seen.settled()
            assert not seen.app._exit, said
        await seen.press("escape", "escape", "escape")
        assert "Traceback" not in seen.text("console").replace(seen.text("output"), ""), (seen.text("console"), said)

    see(recording, look, make=without_quitting)


@pytest.mark.slow
def test_nothing_grows(fails: Path) -> None:
    lines = ("next", "step", "reverse-next", "reverse-step", "up", "down", "finish", "seek 50%", "seek @exc", "start")
    draw = random.Random(7)

    async def look(seen: Seen) -> None:
        async def move(times: int) -> tuple[int, int]:
            for _ in range(times):
                seen.app.order(draw.choice(lines))
                await seen.settled()
            # For a long file Textual keeps the visible lines, thousands of objects: so count with few.
            await seen.pilot.resize_terminal(20, 4)
            await seen.settled()
            gc.collect()
            found = len(gc.get_objects()), len(list(Path("/proc/self/fd").iterdir()))
            await seen.pilot.resize_terminal(120, 36)
            return found

        # First come the sources of the functions stepped into, and checkpoints.
        before = await move(PRESSES * 2)
        after = await move(PRESSES * 4)

        assert after[0] < before[0] * 1.2
        assert after[1] < before[1] + 20

    see(fails, look)


def without_quitting(*args: object, **more: object) -> ReplayApp:
    """Return an app that `:q` does not end."""
    app = ReplayApp(*args, **more)  # type: ignore[arg-type]
    end: Callable[[Reply], None] = app.take

    def take(reply: Reply, **about: bool) -> None:
        if not reply.is_over:
            end(reply, **about)

    app.take = take  # type: ignore[method-assign]
    return app
