"""The terminal UI at its start: its threads, its exceptions, its heap, its help; nothing is hidden without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydbg.errors import UsageError
from replaydbg.tui.apps.replay_app import ReplayApp
from replaydbg.tui.apps.themes import use_theme
from replaydbg.tui.dialogs.help_dialog import HelpDialog, help_rows
from replaydbg.tui.panels.heap_panel import HeapPanel
from replaydbg.tui.panels.opening_card import OpeningCard
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.view_model import LaneSpans
from replaydbg.tui.widgets.rows import Rows
from tests.harness.contrast import LEAST_OF_SIGNS, border_contrast
from tests.harness.recording import record_file
from tests.harness.seen import Seen, see
from tests.harness.typed import FAILS, TRAVEL


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "dies_in_a_thread.py", tmp_path_factory.mktemp("tui"))


@pytest.fixture(scope="module")
def fails(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(FAILS, tmp_path_factory.mktemp("tui"), status=1)


# ---- threads ----


def shown_threads(seen: Seen) -> list[int]:
    timeline = seen.app.part(TimelinePanel)
    return [each.lane for each in timeline.rows.shown(timeline._room) if isinstance(each, LaneSpans)]


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (200, 60)])
def test_the_thread_of_the_position_is_on_the_timeline(threads: Path, size: tuple[int, int]) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        timeline = seen.app.part(TimelinePanel)
        await seen.press("left_curly_bracket")
        assert seen.scene.lane_number == 8
        # It moves up and down as the thread of the position does.
        assert shown_threads(seen)[-1] == 8
        number = len(shown_threads(seen))
        assert 1 <= number < 9
        assert f"{number} of 9 threads" in str(timeline.border_subtitle)

        await seen.press("g")
        assert shown_threads(seen)[0] == 0

    see(threads, look, size=size)


def test_the_others_are_reached_by_scrolling(threads: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        await seen.press("g", "5", *["down"] * 20)
        assert shown_threads(seen)[-1] == 8
        await seen.press(*["up"] * 20)
        assert shown_threads(seen)[0] == 0

    see(threads, look)


def test_of_few_threads_none_is_hidden(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        assert not str(seen.app.part(TimelinePanel).border_subtitle or "")

    see(fails, look)


# ---- exceptions ----


def test_exceptions_of_libraries_are_not_on_the_timeline(threads: Path) -> None:
    async def look(seen: Seen) -> None:
        assert [each.text.split(" was")[0] for each in seen.overview.exceptions] == ["RuntimeError: job 7"]

    see(threads, look)


def test_the_card_names_the_exception_of_which_a_thread_died(threads: Path) -> None:
    async def look(seen: Seen) -> None:
        assert "before: RuntimeError: job 7 was rejected" in str(seen.app.part(OpeningCard).content)

    see(threads, look)


def test_opened_elsewhere_the_card_shows_where_the_failure_was(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        failure = seen.overview.failure
        assert failure is not None and seen.scene.count < failure.count
        card = str(seen.app.part(OpeningCard).content)
        assert card.startswith("RuntimeError: hidden\nraised at ")
        raised_at, moment, this = card.splitlines()[1:4]
        assert raised_at.endswith("ends_by_an_exception.py:30 <module>")
        assert not moment.startswith(f"moment {seen.scene.moment},")
        assert this.startswith(f"this is moment {seen.scene.moment}, ")

        await seen.press("e")

        assert seen.scene.count == failure.count
        assert moment.startswith(f"moment {seen.scene.moment}, ")

    see(fails, look, moment="@start")


@pytest.mark.parametrize(("size", "most"), [((80, 24), 1), ((120, 35), 3)])
def test_a_long_message_is_wrapped(tmp_path: Path, size: tuple[int, int], most: int) -> None:
    program = tmp_path / "long.py"
    program.write_text("raise ValueError('a word ' * 200)\n")
    recording = record_file(program, tmp_path, status=1)

    async def look(seen: Seen) -> None:
        await seen.pilot.pause()
        card = seen.app.part(OpeningCard)
        lines = str(card.content).splitlines()
        at = next(at for at, line in enumerate(lines) if line.startswith("raised at"))
        assert at == most
        assert max(map(len, lines[:at])) <= card.content_size.width
        assert lines[at - 1].endswith("...")

    see(recording, look, size=size)


# ---- the heap ----


def test_the_heap_is_there_at_the_start_and_follows(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        heap = seen.app.part(HeapPanel)
        await seen.until(lambda: "By type" in seen.text("heap"))
        await seen.quiet()
        assert f"4 Heap  {seen.scene.moment}: " in str(heap.border_title)
        assert "Largest retained sizes" in seen.text("heap")

        await seen.press("N")
        await seen.quiet()
        assert f"4 Heap  {seen.scene.moment}: " in str(heap.border_title)

    see(fails, look)


def test_a_comparison_stays_until_h_is_pressed(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        seen.app.compare("@start")
        await seen.settled()
        await seen.quiet()
        before = seen.text("heap")
        assert "Changed values" in before

        await seen.press("N")
        await seen.quiet()
        assert seen.text("heap") == before

        await seen.press("H")
        await seen.until(lambda: "By type" in seen.text("heap"))

    see(fails, look)


def test_what_grew_is_shown_with_its_growth(threads: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.until(lambda: "By type" in seen.text("heap"))
        lines = [line.split() for line in seen.text("heap").splitlines()]
        (found,) = [line for line in lines if line[:1] == ["threading.Thread"]]
        assert found[1:3] == ["8", "+8"]

    see(threads, look)


# ---- help and colours ----


@pytest.mark.parametrize("size", [(60, 20), (120, 35)])
def test_the_help_fits(fails: Path, size: tuple[int, int]) -> None:
    async def look(seen: Seen) -> None:
        for panel in "15":
            await seen.press(panel, "question_mark")
            await seen.until(lambda: isinstance(seen.app.screen, HelpDialog))
            rows = seen.app.screen.query_one(Rows)
            await seen.until(lambda: len(rows.rows) > 10)  # noqa: B023 - it is waited for at once
            assert max(len(row.text) for row in rows.rows) <= rows.content_size.width
            await seen.press("escape")

    see(fails, look, size=size)


def test_help_is_wrapped_between_words_and_keeps_each() -> None:
    text = "One two three\nfour five.\n\n  a b  six seven eight\n\nTitle:\n  c  nine"

    rows = [row.text.rstrip() for row in help_rows(text, 26)]

    assert rows == [
        "One two three four five.",
        "",
        "  a b           six seven",
        " " * 16 + "eight",
        "",
        "Title",
        *rows[6:],
    ]
    assert [each.split() for each in rows[6:]] == [["c", "nine"], []]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_focused_panel_can_be_told(fails: Path, theme: str) -> None:
    async def look(seen: Seen) -> None:
        use_theme(seen.app, theme)
        await seen.press("3")
        await seen.pilot.pause()
        assert border_contrast(seen.app, "#values") >= LEAST_OF_SIGNS

    see(fails, look)


def test_an_unknown_theme_is_refused(fails: Path) -> None:
    with pytest.raises(UsageError, match=r"No such theme: 'no'. Available: dark, light, .*textual-light"):
        ReplayApp(fails, theme="no")
