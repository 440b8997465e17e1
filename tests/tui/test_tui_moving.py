"""The terminal UI moves in both directions, and shows its position."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from replaydbg.tui.dialogs.status_line import StatusLine
from replaydbg.tui.keys import ACTS
from replaydbg.tui.panels.opening_card import OpeningCard
from replaydbg.tui.panels.source_panel import SourcePanel
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.view_model import LaneSpans, Scene
from replaydbg.tui.widgets.rows import Rows
from tests.harness.recording import record_file
from tests.harness.seen import Seen, see
from tests.harness.typed import FAILS, TRAVEL

SIZES = [(80, 24), (120, 36), (200, 50)]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def fails(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(FAILS, tmp_path_factory.mktemp("tui"), status=1)


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "lanes_and_tasks.py", tmp_path_factory.mktemp("tui"))


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "long_loop.py", tmp_path_factory.mktemp("tui"))


@pytest.mark.parametrize("size", SIZES)
def test_opens_on_the_failure_with_a_card(fails: Path, size: tuple[int, int]) -> None:
    async def look(seen: Seen) -> None:
        card = str(seen.app.part(OpeningCard).content)

        assert seen.scene.why == "exception"
        assert card.startswith("RuntimeError: hidden\nraised at ")
        assert seen.scene.at is not None
        assert (seen.scene.at.line, seen.scene.at.text) == (30, "raise RuntimeError(results[-1])")

    see(fails, look, size=size)


def test_the_card_goes_with_the_first_move(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        assert seen.app.part(OpeningCard).display

        await seen.press("N")

        assert not seen.app.part(OpeningCard).display

    see(fails, look)


def line_of(seen: Seen) -> int:
    assert seen.scene.at is not None
    return seen.scene.at.line


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("N", 28),
        ("N N", 27),
        ("N N n", 28),
        ("S S S", 16),
        ("S S S F", 24),
        ("S S S f", 27),
        ("N N N s", 16),
        ("N N N s n", 27),
        ("C", 1),
        ("g", 1),
        ("g G", 30),
        ("g e", 30),
        ("g c", 30),
        ("N backspace", 30),
        ("N N { }", 30),
    ],
)
def test_keys_move(fails: Path, keys: str, line: int) -> None:
    async def look(seen: Seen) -> None:
        await seen.press(*keys.split())

        assert line_of(seen) == line

    see(fails, look)


def test_reverse_step_undoes_step(lanes: Path) -> None:
    async def look(seen: Seen) -> None:
        began = (await seen.press("g", "n", "n")).count

        there = await seen.press("s", "s", "s")
        back = await seen.press("S", "S", "S")

        assert there.count > began
        assert back.count == began

    see(lanes, look)


def test_frames_are_selected(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("S", "S", "S")
        inner = seen.scene

        outer = await seen.press("u")
        again = await seen.press("d")

        assert [each.function for each in inner.frames] == ["hidden", "<module>"]
        assert (outer.frame, again.frame) == (1, 0)
        assert outer.at is not None and outer.at.line == 24
        assert "results" in {each.name for each in outer.values}

    see(fails, look)


def test_lanes_can_be_looked_at(lanes: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("g")
        await seen.press("colon")
        await seen.type("advance 20")
        assert len(seen.scene.lanes) > 1

        stack = seen.app.part("#stack")
        await seen.press("2", "end")
        stack_text = seen.text("stack")
        scene = await seen.press("enter")

        assert stack.has_focus
        assert "worker" in stack_text
        assert [each.name for each in scene.lanes if each.is_shown] == ["worker"]

    see(lanes, look)


def test_tasks_are_shown(lanes: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("g", "colon")
        await seen.type("tbreak waits")
        await seen.press("c")

        assert seen.scene.tasks
        assert "Tasks" in seen.text("stack")

        # The code that runs the tasks is folded into one line until it is selected.
        stack = seen.app.main.query_one("#stack", Rows)
        assert "frames of libraries" in seen.text("stack")
        assert "_run_once" not in seen.text("stack")
        stack.cursor = next(at for at, row in enumerate(stack.rows) if "frames of libraries" in row.text)
        await seen.press("2", "enter")
        assert "_run_once" in seen.text("stack")
        assert stack.rows[stack.cursor].text.startswith("▶")

    see(lanes, look)


def test_a_breakpoint_is_set_and_removed_at_the_cursor(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        panel = seen.app.part(SourcePanel)
        await seen.press("1")
        panel.cursor = 11
        await seen.press("b")
        assert [(each.line, each.is_enabled) for each in seen.scene.points] == [(12, True)]

        await seen.press("C")
        assert line_of(seen) == 12
        panel.cursor = 11
        await seen.press("b")

        assert not seen.scene.points

    see(fails, look)


def test_the_source_tells_what_ran(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        rows = seen.app.part(SourcePanel).rows

        assert rows[11].text.split() == ["5", "12", "doubled", "=", "n", "*", "2"]
        # A failure, the current line, and a value beside the line.
        assert rows[29].text.split()[:3] == ["1", "✗▶30", "raise"]
        assert "results = [0, 2, 4, 6, 8, 'hidden']" in rows[29].text
        assert seen.app.part(SourcePanel).border_subtitle == "lines ran: 18/18"

    see(fails, look)


def test_values_say_what_became_of_them(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("colon")
        await seen.type("reverse-advance 22")
        await seen.press("n")

        marks = {each.name: (each.mark, each.old) for each in seen.scene.values}
        assert marks["results"] == ("~", "[0, 2, 4, 6]")
        assert marks["started"] == (" ", "")

    see(fails, look)


def test_the_timeline_is_scrubbed(lanes: Path) -> None:
    async def look(seen: Seen) -> None:
        timeline = seen.app.part(TimelinePanel)
        await seen.press("5")
        before = seen.scene.count

        after = (await seen.press("left", "left", "left")).count
        column = timeline.column(after)
        await seen.press("home")
        first = seen.scene.count
        # However far it was scrubbed, one `back` returns to the start.
        back = (await seen.press("backspace")).count

        assert after < before
        assert column == timeline.column(before) - 3
        assert first == seen.overview.first
        assert back == before

    see(lanes, look)


def test_the_timeline_tells_when_which_lane_ran(lanes: Path) -> None:
    async def look(seen: Seen) -> None:
        timeline = seen.app.part(TimelinePanel)
        await seen.quiet()
        main, worker = (each for each in timeline.rows.all if isinstance(each, LaneSpans))

        assert (main.name, worker.name) == ("main", "worker")
        # It did not run before it was started.
        await seen.press("colon")
        await seen.type("reverse-advance 17")
        assert worker.spans[0][0] >= seen.scene.count
        assert main.spans[0][0] <= seen.overview.first <= main.spans[0][1]

    see(lanes, look)


def test_the_timeline_shows_a_part_of_the_run(lanes: Path) -> None:
    async def look(seen: Seen) -> None:
        timeline = seen.app.part(TimelinePanel)
        view = seen.overview
        await seen.press("5")
        await seen.press("plus", "plus")
        # A part of the run ends with a column, which has many lines.
        assert timeline.count_at(10_000) - timeline.count_at(0) <= (view.last - view.first) // 14
        assert timeline.count_at(0) <= seen.scene.count <= timeline.count_at(10_000)
        assert "of the run" in str(timeline.border_subtitle)

        # The breakpoint is shown there, too.
        await seen.press("g")
        await seen.until(lambda: timeline.count_at(0) == view.first)
        await seen.press("minus", "0")
        assert (timeline.count_at(0), timeline.count_at(10_000)) == (view.first, view.last)

    see(lanes, look)


def test_the_mouse_scrubs_too(lanes: Path) -> None:
    async def look(seen: Seen) -> None:
        timeline = seen.app.part(TimelinePanel)

        await seen.pilot.mouse_down(timeline, offset=(40, 2))
        await seen.pilot.hover(timeline, offset=(60, 2))
        await seen.pilot.mouse_up(timeline, offset=(60, 2))
        await seen.settled()

        # The rows have labels here.
        assert timeline.column(seen.scene.count) == 60 - timeline.gutter.left - 10

    see(lanes, look)


def test_the_wheel_shows_a_part_of_the_run(lanes: Path) -> None:
    async def look(seen: Seen) -> None:
        timeline = seen.app.part(TimelinePanel)
        whole = timeline.count_at(10_000) - timeline.count_at(0)
        wheel = (timeline, 40, 1, 0, -1, 0, False, False, False)

        timeline.post_message(events.MouseScrollUp(*wheel))
        await seen.until(lambda: timeline.count_at(10_000) - timeline.count_at(0) <= whole * 0.55)
        timeline.post_message(events.MouseScrollDown(*wheel))
        await seen.until(lambda: timeline.count_at(10_000) - timeline.count_at(0) >= whole - 2)

    see(lanes, look)


def test_output_leads_to_its_moment(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        assert "balance 7" in seen.text("output")

        await seen.press("6", "home", "enter")

        assert line_of(seen) == 28

    see(fails, look)


def test_what_cannot_be_done_is_said_and_harms_nothing(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        before = seen.scene.count

        await seen.press("]")

        assert "has no snapshots" in seen.app.part(StatusLine).shown
        assert seen.scene.count == before

    see(fails, look)


def test_q_leaves(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.pilot.press("q")

    assert see(fails, look) == 0


def test_what_is_no_recording_is_said(tmp_path: Path) -> None:
    path = tmp_path / "it.rdbg"
    path.write_bytes(b"nothing of the kind")
    messages: list[str] = []

    async def look(seen: Seen) -> None:
        messages.append(seen.app.failure_message)

    assert see(path, look) == 1
    assert "is not a recording" in messages[0]


def test_every_key_of_the_design_is_bound() -> None:
    keys = {key for each in ACTS for key in each.keys.split()}

    assert set("nsfcNSFC[]gGudbeqtT{}%wWvDm'xpy/:?123456") | {"backspace"} <= keys


def test_steps_pass_over_libraries_when_they_are_told_to(tmp_path: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("g", "colon")
        await seen.type("advance called_by_a_library.py:17")

        await seen.press("J")
        told = seen.app.part(StatusLine).shown
        await seen.press("s")

        assert told == "Steps now skip code that is not yours."
        assert line_of(seen) == 12

    see(record_file(TRAVEL / "called_by_a_library.py", tmp_path), look)


def test_a_key_that_is_held_down_is_followed_and_each_press_counts(long: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("g")
        first, shown = seen.scene.count, []
        show = seen.app.show_scene

        def note(scene: Scene) -> None:
            shown.append(scene.count)
            show(scene)

        seen.app.show_scene = note  # type: ignore[method-assign]
        for _ in range(200):
            seen.app.order("step")
        await seen.settled()

        after = seen.scene.count
        assert seen.app.part(TimelinePanel).count == after
        # Not each of them was drawn, but some on the way, and the last one.
        assert shown == sorted(shown) and shown[-1] == after
        assert 1 < len(shown) < 200
        await seen.press("colon")
        await seen.type("reverse-step 200")
        assert seen.scene.count == first

    see(long, look)


def test_moves_that_are_cancelled_leave_the_position_shown(long: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("g")
        for _ in range(400):
            seen.app.order("step")
        before = seen.scene.count
        await seen.until(lambda: seen.scene.count > before)
        seen.app.owner.cancel()
        await seen.settled()

        host = seen.app.owner._host
        assert host is not None
        await seen.until(lambda: seen.scene.count == host.session.here.count and not host.is_unshown)
        await seen.press("s")
        assert seen.scene.count == host.session.here.count

    see(long, look)
