"""Queries in the terminal UI: who wrote a value, its history, what changed in memory, where it went wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from textual.widgets import Input

from replaydbg.commands.searching import OPTIONS
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.dialogs.status_line import StatusLine
from replaydbg.tui.panels.heap_panel import HeapPanel
from replaydbg.tui.panels.source_panel import SourcePanel
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.panels.values_panel import ValuesPanel
from replaydbg.tui.view_model import BEHIND, WRONG
from replaydbg.tui.widgets.rows import Rows
from replaydbg.tui.worker import moment_queries
from replaydbg.tui.worker.mark_notes import notes_path
from tests.harness.process import run
from tests.harness.recording import record_file
from tests.harness.seen import Seen, see
from tests.harness.surroundings import without_steering
from tests.harness.typed import FAILS, TRAVEL

HEAP = Path(__file__).parents[2] / "fixtures" / "heap"


@pytest.fixture(scope="module")
def fails(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(FAILS, tmp_path_factory.mktemp("tui"), status=1)


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that asks for snapshots, in several threads."""
    return record_file(HEAP / "keeps_every_request.py", tmp_path_factory.mktemp("tui"))


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "long_loop.py", tmp_path_factory.mktemp("tui"))


async def answer(seen: Seen) -> list[str]:
    """Return the rows of the open dialog."""
    await seen.until(
        lambda: isinstance(seen.app.screen, Dialog) and any(each.rows for each in seen.app.screen.query(Rows))
    )
    return [row.text for row in seen.app.screen.query_one(Rows).rows]


def line_of(seen: Seen) -> int:
    assert seen.scene.at is not None
    return seen.scene.at.line


async def select_value(seen: Seen, name: str) -> None:
    await seen.press("3")
    panel = seen.app.part(ValuesPanel)
    panel.cursor = next(at for at, each in enumerate(seen.scene.values) if each.name == name)


# ---- values ----


def test_what_the_failing_line_names_is_selected(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        assert seen.app.part(ValuesPanel).border_subtitle == "selected: results"

        # So the key refers to it at once, and the status line shows it.
        await seen.press("W")
        assert (await answer(seen))[0].startswith("results was written at ")
        await seen.press("escape", "3", "end")
        assert seen.app.part(ValuesPanel).border_subtitle != "selected: results"

    see(fails, look)


def test_who_wrote_the_selected_value(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await select_value(seen, "results")

        await seen.press("W")
        rows = await answer(seen)
        await seen.press("enter")

        assert rows[0].startswith("results was written at ")
        assert any("items.append" in each for each in rows)
        assert line_of(seen) == 16

    see(fails, look)


def test_a_value_is_followed_further(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("colon")
        await seen.type("reverse-advance 13")
        await select_value(seen, "doubled")

        await seen.press("W")
        rows = await answer(seen)
        seen.app.screen.query_one(Rows).cursor = next(at for at, each in enumerate(rows) if "who wrote n" in each)
        await seen.press("enter")
        rows = await answer(seen)

        assert rows[0].startswith("n was passed as an argument at ")

    see(fails, look)


def test_history_of_a_value(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await select_value(seen, "number")

        await seen.press("v")
        rows = await answer(seen)
        await seen.press("home", "enter")

        assert [each.split()[-1] for each in rows] == ["0", "1", "2", "3", "4"]
        assert line_of(seen) == 21

    see(fails, look)


def test_parts_of_a_value_are_opened_and_closed(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await select_value(seen, "account")

        scene = await seen.press("enter")
        parts = [each.expression for each in scene.values if each.depth]
        scene = await seen.press("enter")

        assert parts == ["account.balance"]
        assert not [each for each in scene.values if each.depth]

    see(fails, look)


def test_watched_expressions(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("w")
        scene = await seen.type("len(results)")
        assert [(each.name, each.text) for each in scene.values if each.watch] == [("len(results)", "6")]

        scene = await seen.press("g")
        assert "NameError" in next(each.text for each in scene.values if each.watch)
        await seen.press("3", "home")
        scene = await seen.press("delete")

        assert not [each for each in scene.values if each.watch]

    see(fails, look)


# ---- lines ----


def test_visits_of_a_line(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("1")
        seen.app.part(SourcePanel).cursor = 11

        await seen.press("enter")
        rows = await answer(seen)
        await seen.press("up", "enter")

        assert len(rows) == 5
        assert line_of(seen) == 12
        assert {each.name: each.text for each in seen.scene.values}["n"] == "3"

    see(fails, look)


def test_visits_of_a_line_that_ran_very_often_are_those_around_here(long: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("1")
        panel = seen.app.part(SourcePanel)
        panel.cursor = 10
        await seen.press("enter")
        rows = await answer(seen)
        before = seen.scene.count

        assert len(rows) == 250
        await seen.press("end", "enter")
        assert line_of(seen) == 11
        assert {each.name: each.text for each in seen.scene.values}["number"] == "59999"
        assert before - seen.scene.count < 10

    see(long, look)


def test_a_search_for_values_that_is_not_finished_can_be_repeated(fails: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moment_queries, "LONGEST", 1e-9)
    monkeypatch.setattr(moment_queries, "LONGER", 6e10)

    async def look(seen: Seen) -> None:
        await select_value(seen, "number")
        await seen.press("v")
        unfinished = await answer(seen)
        await seen.press("enter")
        await seen.until(lambda: any(len(each.rows) > 1 for each in seen.app.screen.query("Dialog Rows").results(Rows)))
        finished = await answer(seen)

        assert unfinished == ["Stopped after 0 s, none found yet: Enter searches again, for up to 60 s"]
        assert [each.split()[-1] for each in finished] == ["0", "1", "2", "3", "4"]

    see(fails, look)


def test_values_that_were_found_in_time_are_listed(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moment_queries, "LONGEST", 1.0)

    async def look(seen: Seen) -> None:
        await select_value(seen, "total")
        await seen.press("v")
        *rows, last = await answer(seen)

        so_far, title = (f"{len(rows)} found", f"total (first {len(rows)})") if rows else ("none found yet", "total")
        assert f"Stopped after 1 s, {so_far}" in last
        assert str(seen.app.screen.query_one("#box").border_title).endswith(title)

    see(long, look)


def test_run_to_the_cursor_in_both_directions(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        panel = seen.app.part(SourcePanel)
        await seen.press("1")
        panel.cursor = 21
        await seen.press("T")
        assert line_of(seen) == 22
        values = {each.name: each.text for each in seen.scene.values}

        panel.cursor = 27
        await seen.press("t")

        assert values["number"] == "4"
        assert line_of(seen) == 28

    see(fails, look)


def test_print_in_the_past(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("1")
        seen.app.part(SourcePanel).cursor = 11
        await seen.press("p")
        await seen.type("n if n > 1")

        track = seen.app.part(TimelinePanel).tracks[-1]
        assert [each.text for each in track.marks] == ["2", "3", "4"]
        assert "thread 0  3" in seen.text("console")

        await seen.press("5", "delete")
        assert not seen.app.part(TimelinePanel).tracks

    see(fails, look)


def test_hits_of_a_breakpoint_are_a_row_of_the_timeline(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        timeline = seen.app.part(TimelinePanel)
        await seen.press("colon")
        await seen.type("break twice")
        await seen.until(lambda: bool(timeline.tracks))
        assert len(timeline.tracks[0].marks) == 5

        await seen.press("colon")
        await seen.type("clear")
        await seen.until(lambda: not timeline.tracks)

    see(fails, look)


def test_search_in_the_source(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("1", "slash")
        await seen.type("DEF HIDDEN")

        assert seen.app.part(SourcePanel).line == 16

        await seen.press("slash")
        await seen.type("nowhere")
        assert "is not in this file" in seen.app.part(StatusLine).shown

    see(fails, look)


# ---- moments ----


def test_marks_and_their_notes_are_kept_beside_the_recording(fails: Path) -> None:
    async def make(seen: Seen) -> None:
        await seen.press("N", "m")
        await seen.type("here before it breaks")
        await seen.press("g", "apostrophe")
        assert "@here" in (await answer(seen))[0]
        await seen.press("enter")
        assert line_of(seen) == 28

    async def again(seen: Seen) -> None:
        assert [(each.name, each.note) for each in seen.scene.marks] == [("here", "before it breaks")]
        await seen.press("6", "6", "6", "6")
        assert "@here" in seen.text("notes")
        await seen.press("home", "delete")
        assert not seen.scene.marks

    see(fails, make)
    see(fails, again)
    assert not notes_path(fails).exists()


def test_seek_takes_every_moment(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("percent_sign")
        await seen.type("@out:1")
        assert line_of(seen) == 28

        await seen.press("percent_sign")
        await seen.type("nonsense")
        assert "No such moment" in seen.app.part(StatusLine).shown

    see(fails, look)


def test_a_moment_is_copied_as_a_link(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("y")

        assert seen.app.clipboard == f"rdbg://{fails.stem}@{seen.scene.moment}"

    see(fails, look)


def test_events_around_a_moment(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("6", "6", "6")

        await seen.until(lambda: "event" in seen.text("events"))
        before = seen.scene.event
        await seen.press("end", "enter")
        assert seen.scene.event > before

    see(fails, look)


# ---- the command line ----


def test_python_runs_in_a_diversion(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("colon")
        await seen.type("results.clear() or len(results)")
        await seen.press("colon")
        await seen.type("p len(results)")

        lines = seen.text("console").splitlines()
        assert lines == ["(rdbg) results.clear() or len(results)", "0", "(rdbg) p len(results)", "6"]

    see(fails, look)


def test_every_word_of_the_prompt_is_known(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        for line in (
            "where",
            "info locals",
            "when",
            "help",
            "exceptions 3",
            "threads",
            "tasks",
            "output",
            "list",
            "rn",
        ):
            await seen.press("colon")
            await seen.type(line)
            assert "Unknown command" not in seen.text("console")
        assert "rdbg://" in seen.text("console")

    see(fails, look)


def test_what_has_a_panel_of_its_own_is_shown_there(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        async def typed(line: str) -> None:
            await seen.press("colon")
            await seen.type(line)

        await typed("log 12 'n' if n > 1")
        assert [each.text for each in seen.app.part(TimelinePanel).tracks[-1].marks] == ["2", "3", "4"]
        await typed("diff @out:1")
        assert seen.app.part(HeapPanel).answer is not None
        await typed("bisect len(results) > 2")
        assert (await answer(seen))[0].startswith("len(results) > 2: first true after ")
        await seen.press("escape")
        assert seen.app.part(TimelinePanel).tracks[-1].key == "bisect"

        # Commands without a word at the prompt have the name of their key.
        await typed("copy")
        await seen.until(lambda: seen.app.clipboard.endswith(seen.scene.moment))
        await typed("panel-5")
        await seen.until(lambda: seen.app.part(TimelinePanel).has_focus)
        await typed("reverse-next")
        assert line_of(seen) == 28

    see(fails, look)


def test_what_is_too_wide_for_the_console_is_folded(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("colon")
        await seen.type("p 'word ' * 40")
        await seen.pilot.pause()
        console = seen.app.main.query_one("#console", Rows)

        def is_folded() -> bool:
            width = console.scrollable_content_region.width
            return len(console.rows) > 2 and all(len(row.text) < width for row in console.rows)

        await seen.until(is_folded)
        before = len(console.rows)
        assert "".join(row.text for row in console.rows).count("word") == 41
        await seen.pilot.resize_terminal(200, 50)
        await seen.until(lambda: is_folded() and len(console.rows) < before)

    see(fails, look)


def test_what_was_typed_comes_back(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("colon")
        await seen.type("p 1")
        await seen.press("colon", "up", "enter")

        assert seen.text("console").count("(rdbg) p 1") == 2

    see(fails, look)


def test_a_word_is_completed(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.pilot.press("colon", *"reverse-f")
        await seen.until(lambda: seen.app.main.query_one("#line", Input)._suggestion == "reverse-finish")
        await seen.pilot.press("tab")
        await seen.until(lambda: seen.app.main.query_one("#line", Input).value == "reverse-finish")
        await seen.press("escape")

    see(fails, look)


def test_python_is_completed(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        line = seen.app.main.query_one("#line", Input)
        await seen.press("colon", *"p account.")
        await seen.press("tab")
        assert line.value == "p account.balance"
        await seen.press(*" + resu", "left", "tab")
        assert line.value == "p account.balance + resultsu"
        await seen.press("escape")

        await seen.press("w", *"account.ba", "tab")
        assert line.value == "account.balance"
        await seen.press("escape")

    see(fails, look)


def test_of_several_completions_the_common_beginning_is_inserted(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        line = seen.app.main.query_one("#line", Input)
        await seen.press("colon", *"b ends_by", "tab")
        assert line.value == "b ends_by_an_exception.py:"
        await seen.press("ctrl+a", "ctrl+k", *"seek @", "tab")
        assert line.value == "seek @"
        assert "@end  @exc" in seen.app.part(StatusLine).shown
        await seen.press("escape")

    see(fails, look)


def test_the_line_is_given_up(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("colon", "q", "escape")
        await seen.press("N")

        assert line_of(seen) == 28

    see(fails, look)


# ---- memory ----


def test_memory_is_compared_between_snapshots(requests: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("[", "[")
        await seen.press("D")
        rows = await answer(seen)
        seen.app.screen.query_one(Rows).cursor = next(at for at, each in enumerate(rows) if "#1" in each)
        await seen.press("enter")

        text = seen.text("heap")
        assert "application.sessions.seen" in text
        assert "Containers that grew or shrank" in text

        panel = seen.app.main.query_one("#heap", Rows)
        panel.cursor = next(
            at for at, each in enumerate(panel.rows) if each.text.startswith("  application.sessions.seen")
        )
        await seen.press("enter")
        rows = await answer(seen)
        assert any("application.sessions" in each for each in rows), rows
        assert any("Held by" in each for each in rows)

    see(requests, look)


def test_changed_values_tell_where_they_were_written(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("colon")
        await seen.type("reverse-advance 24")
        await seen.press("m")
        await seen.type("early")
        before = await seen.press("e")
        await seen.press("D", "enter")

        assert "~ account.balance  10 -> 7" in seen.text("heap")
        await seen.until(lambda: "ends_by_an_exception.py:27" in seen.text("heap"))
        # Meanwhile the session was elsewhere, invisibly.
        scene = await seen.press("u")
        assert (scene.count, scene.place) == (before.count, before.place)
        await seen.press("N")
        assert line_of(seen) == 28
        seen.app.ask(lambda host: host.remove_mark("early"))
        await seen.settled()

    see(fails, look)


def test_what_is_given_up_leaves_the_session_where_it_was(requests: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("D", "end", "enter")
        await seen.type("@#1 @#2")
        before = seen.scene.count
        panel = seen.app.main.query_one("#heap", Rows)
        panel.cursor = next(at for at, each in enumerate(panel.rows) if each.key is not None)
        await seen.pilot.press("enter")
        await seen.pilot.pause()
        await seen.pilot.press("escape")
        await seen.settled()
        await seen.pilot.press("escape")
        scene = await seen.press("u", "d")

        assert scene.count == before

    see(requests, look)


def test_the_scope_of_a_comparison(requests: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("percent_sign")
        await seen.type("@#3")
        await seen.press("D", "end", "enter")
        await seen.type("@#1 @#2")

        heap = seen.app.main.query_one("#heap")
        assert heap.border_subtitle == "scope (o): mine"
        await seen.press("o")
        assert heap.border_subtitle == "scope (o): standard"

        # With the mouse, too.
        await seen.click(heap, offset=(20, heap.outer_size.height - 1))
        await seen.until(lambda: heap.border_subtitle == "scope (o): all")

    see(requests, look)


# ---- bisection ----


def test_a_bisection_shows_its_looks_and_its_result(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("x")
        assert (await answer(seen))[: len(WRONG)] == list(WRONG.values())
        await seen.press("enter")
        assert "--linear" in seen.app.part(StatusLine).shown
        await seen.type("len(results) > 2")
        rows = await answer(seen)
        await seen.press("enter")

        assert rows[0].startswith("len(results) > 2: first true after ")
        marks = seen.app.part(TimelinePanel).tracks[0].marks
        assert {(each.text, each.is_faint) for each in marks} >= {("bad", False), ("undecided", True)}
        assert line_of(seen) == 22
        assert {each.name: each.text for each in seen.scene.values}["number"] == "2"

    see(fails, look)


def test_a_bisection_takes_the_words_of_the_command_line(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("x", "enter")
        await seen.type("n == 3 --frame twice --from @start --all")
        rows = await answer(seen)

        assert [each.split()[2:4] for each in rows] == [["bad", "ends_by_an_exception.py:22"], ["good", "again"]]
        await seen.press("home", "enter")
        assert line_of(seen) == 22

        await seen.press("x", "enter")
        await seen.type("len(results) > 2 --linear --to @exc")
        assert "first true after" in (await answer(seen))[0]
        await seen.until(lambda: not seen.app.part(StatusLine).shown)
        await seen.press("enter")
        assert [each.count for each in seen.app.part(TimelinePanel).tracks[0].marks] == [seen.scene.count]

        await seen.press("x", "enter")
        await seen.type("number > 2 --whatever")
        assert "Unknown option --whatever" in seen.app.part(StatusLine).shown

    see(fails, look)


def test_the_dialog_of_a_bisection_lists_each_option() -> None:
    predicates = {f"--{kind}" for kind in WRONG}
    assert {each.split()[0] for each in BEHIND} == set(OPTIONS) - predicates


def test_each_way_to_say_what_is_wrong(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        for kind, text, line in (("check", "len(results) < 3", 22), ("raises", "RuntimeError", 30)):
            await seen.press("g", "x", *["down"] * list(WRONG).index(kind), "enter")
            await seen.type(text)
            await answer(seen)
            await seen.press("enter")
            assert line_of(seen) == line

    see(fails, look)


# ---- tests ----


@pytest.fixture(scope="module")
def failed_test(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of a test that failed."""
    folder = tmp_path_factory.mktemp("tui")
    (folder / "test_shop.py").write_text(
        "def total(prices):\n    found = 0\n    for each in prices:\n        found += each\n    return found\n\n\n"
        "def test_total():\n    prices = [1, 2, 3]\n    got = total(prices)\n    prices.append(4)\n"
        "    assert got == sum(prices)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--replaydbg=retain-on-failure"]
    done = run([*command, "test_shop.py"], cwd=folder, env=without_steering(os.environ), timeout=60.0)
    assert done.status == 1, done
    return next(folder.glob("test-results/*/rec.rdbg"))


@pytest.mark.slow
def test_a_failed_test_is_bisected_by_what_it_claims(failed_test: Path) -> None:
    async def look(seen: Seen) -> None:
        # The timeline shows the test, without pytest's own work.
        assert seen.overview.failure is not None
        assert seen.overview.last - seen.overview.first < 10 * (seen.overview.failure.count - seen.overview.first)
        assert seen.overview.command == "test_shop.py::test_total"

        await seen.press("g", "x")
        assert (await answer(seen))[0] == "this assertion of the test is false: got == sum(prices)"
        await seen.press("enter")
        rows = await answer(seen)
        await seen.press("enter")

        assert "test_shop.py:11" in rows[0]
        assert line_of(seen) == 11

    see(failed_test, look)
