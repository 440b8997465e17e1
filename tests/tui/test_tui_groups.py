"""The terminal UI shows the processes of a group: one at a time, and the messages between them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from replaydbg.tui.apps.replay_app import ReplayApp
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.view_model import Reply
from replaydbg.tui.widgets.plain_text import PlainText
from replaydbg.tui.widgets.rows import Rows
from replaydbg.tui.worker.session_host import SessionHost
from tests.harness.recorded_group import ANSWERS, BANK, READS_REPLY, record_program
from tests.harness.recording import record_file
from tests.harness.screens import opened, shown_rows
from tests.harness.seen import Seen, see
from tests.harness.typed import FAILS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_program(tmp_path_factory.mktemp("bank"), BANK) / "1.rdbg"


def place(seen: Seen) -> tuple[str, int]:
    """Return the shown process, and the line that it is at."""
    assert seen.scene.at is not None
    return seen.overview.process, seen.scene.at.line


async def to_line(seen: Seen, line: int, *, way: str = "C") -> None:
    """Go to the first visit of a line in that direction."""
    await seen.press("colon")
    await seen.type(f"tbreak prog.py:{line}")
    await seen.press(way)


def test_the_process_picker(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await to_line(seen, READS_REPLY)
        one = seen.scene.moment
        await seen.press("P")
        await opened(seen)
        first, second = shown_rows(seen)
        assert first.startswith("1  program") and "(not opened)" in second

        await seen.press("down", "enter")
        await seen.quiet()

        assert seen.overview.process == "2"
        assert str(seen.app.part(TimelinePanel).border_title) == "5 Timeline  process 2"
        assert seen.overview.name == "made/2"
        await to_line(seen, ANSWERS)
        assert place(seen) == ("2", ANSWERS)
        assert "balance = 40" in seen.text("values")

        await seen.press("P")
        await opened(seen)
        await seen.press("up", "enter")
        assert place(seen) == ("1", READS_REPLY)
        assert seen.scene.moment == one
        assert "balance" not in seen.text("values")

    see(bank, look)


def test_to_the_sender_and_back(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await to_line(seen, READS_REPLY)

        await seen.press("less_than_sign")
        assert place(seen) == ("2", ANSWERS)
        await seen.press("greater_than_sign")
        assert place(seen) == ("1", READS_REPLY)
        await seen.press("backspace")
        assert place(seen) == ("2", ANSWERS)
        await seen.press("backspace")
        assert place(seen) == ("1", READS_REPLY)

    see(bank, look)


def test_there_is_nothing_to_follow(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("g", "less_than_sign")

        assert "received nothing through a channel" in seen.text("console")
        assert seen.overview.process == "1"

    see(bank, look)


def test_marks_and_breakpoints_of_each_process(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("colon")
        await seen.type(f"break prog.py:{READS_REPLY}")
        await seen.press("m")
        await seen.type("here")
        await seen.quiet()
        assert [each.key for each in seen.app.part(TimelinePanel).tracks] == ["break 1"]

        await seen.press("colon")
        await seen.type("proc 2")
        await seen.quiet()
        assert (seen.scene.points, seen.scene.marks) == ((), ())
        assert seen.app.part(TimelinePanel).tracks == ()

        await seen.press("colon")
        await seen.type("proc 1")
        await seen.quiet()
        assert [each.name for each in seen.scene.marks] == ["here"]
        assert [each.key for each in seen.app.part(TimelinePanel).tracks] == ["break 1"]
        await seen.press("colon")
        await seen.type("delete")

    see(bank, look)


def diagram(seen: Seen) -> list[str]:
    """Return what is drawn of each line of the open diagram: without labels and texts, and each sign once in a row."""
    found = []
    for row in seen.app.screen.query_one("#choices", Rows).rows:
        cells = row.text[5:38]
        found.append("".join(sign for sign, _ in groupby(cells.replace(" ", ""))))
    return found


def state(seen: Seen) -> list[str]:
    """Return the lines beside the diagram, without their breaks."""
    found: list[str] = []
    for row in seen.app.screen.query_one("#state", Rows).rows:
        if row.text.startswith("   "):
            found[-1] += row.text[3:]
        else:
            found.append(row.text)
    return found


def line_at(seen: Seen) -> int:
    """Return the line of the diagram that the cut is."""
    return seen.app.screen.query_one("#choices", Rows).cursor


async def open_diagram(seen: Seen) -> None:
    await seen.press("M")
    await opened(seen)


CALLS = ["●─▶", "◀─●"] * 3


def test_the_space_time_diagram(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("G")
        await open_diagram(seen)

        assert isinstance(seen.app.screen, Dialog)
        assert str(seen.app.screen.query_one("#head", PlainText).content).split() == ["[1]", "2"]
        assert diagram(seen)[:7] == ["┬", "○·▶", *CALLS[:5]]
        assert shown_rows(seen)[1].endswith("  fork")
        assert shown_rows(seen)[2].endswith("8 bytes, pipe")
        assert line_at(seen) > 7
        # The parent waited for the end of its child.
        ends = [row.split()[0] for row in shown_rows(seen) if "ends: exit code 0" in row]
        assert ends == ["2", "1"]
        assert state(seen)[1].startswith("1  ") and state(seen)[2].startswith("2  ")
        assert state(seen)[-2:] == ["1 pipe  1 to 2  empty", "2 pipe  2 to 1  empty"]

    see(bank, look)


def test_keys_move_the_cut(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await open_diagram(seen)
        await seen.press("home")
        assert line_at(seen) == 0
        assert state(seen)[1].endswith("not begun") and state(seen)[2].endswith("not begun")

        # The parent begins, forks, and asks; its child answers, because it can without anything else.
        await seen.press("down", "down", "down")
        assert diagram(seen)[1:6] == ["○·▶", "●─▶", "│┏━●", "═╪═▼═╪═", "◀━┛│"]
        assert state(seen)[-2:] == ["2 pipe  2 to 1  8 bytes in 1 message", "1 pipe  1 to 2  empty"]

        # The cut stays when the cursor goes to the other process, and follows it from there.
        await seen.press("right")
        assert diagram(seen)[4] == "═╪═▼═╪═"
        await seen.press("up")
        assert diagram(seen)[2:5] == ["●─▶", "═╪═╪═", "◀─●"]

        await seen.press("up", "up")
        assert state(seen)[2].endswith("not begun")

    see(bank, look)


def test_keys_that_were_typed_at_once_move_the_cut_in_their_order(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await open_diagram(seen)
        keys = ("home", "down", "down", "down", "right", "down", "left")
        await seen.press(*keys)
        slow = state(seen)

        await seen.press("home")
        await seen.pilot.press(*keys)
        await seen.settled()

        assert state(seen) == slow

    see(bank, look)


def test_enter_goes_to_the_process_under_the_cursor(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await to_line(seen, READS_REPLY)
        await open_diagram(seen)
        await seen.press("right", "up", "enter")

        assert place(seen) == ("2", ANSWERS)
        await seen.press("backspace")
        assert place(seen) == ("1", READS_REPLY)

        await open_diagram(seen)
        await seen.press("home", "right", "enter")
        assert seen.overview.process == "2"

    see(bank, look)


def test_quiet_cuts_only(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await open_diagram(seen)
        await seen.press("home", "down", "down", "down", "right", "down", "Q")

        assert any(row.endswith("quiet cut") for row in shown_rows(seen))
        assert "Quiet cut of made" in str(seen.app.screen.query_one("#box").border_title)
        # A process that has just received does not wait: it is before the receive.
        assert "(asked for " in state(seen)[2]
        assert state(seen)[-2:] == ["1 pipe  1 to 2  8 bytes in 1 message", "2 pipe  2 to 1  empty"]
        await seen.press("Q")
        assert not any(row.endswith("quiet cut") for row in shown_rows(seen))
        assert state(seen)[-2:] == ["1 pipe  1 to 2  empty", "2 pipe  2 to 1  empty"]

    see(bank, look)


def test_escape_cancels_what_takes_long_and_then_closes(bank: Path) -> None:
    def endless(host: SessionHost) -> Reply:
        host.session.work.begin("working")
        while True:
            host.session.work.idle()

    async def look(seen: Seen) -> None:
        await open_diagram(seen)
        before = state(seen)
        seen.app.ask(endless)
        await seen.pilot.press("escape")
        await seen.settled()

        assert seen.app.screen is not seen.app.main
        await seen.press("up")
        assert state(seen) != before
        await seen.press("escape")
        assert seen.app.screen is seen.app.main

    see(bank, look)


def test_a_click_moves_the_cut_to_an_event(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("G")
        await open_diagram(seen)
        await seen.click("#choices", offset=(2, 2))
        await seen.settled()

        assert line_at(seen) == 4
        assert diagram(seen)[2:5] == ["●─▶", "│┏━●", "═╪═▼═╪═"]

    see(bank, look)


@pytest.mark.parametrize("size", [(60, 12), (80, 24), (200, 50)])
def test_the_diagram_in_terminals_of_all_sizes(bank: Path, size: tuple[int, int]) -> None:
    async def look(seen: Seen) -> None:
        await open_diagram(seen)
        await seen.press("up", "left", "right", "pageup", "pagedown", "end", "Q", "escape")

        assert seen.app.screen is seen.app.main

    see(bank, look, size=size)


def test_the_diagram_in_ascii(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await open_diagram(seen)
        await seen.press("home", "down", "down", "down")

        assert all(row.isascii() for row in shown_rows(seen))
        assert diagram(seen)[1:6] == ["b.>", "B->", "|#=B", "=v=", "<=#|"]

    def make(*args: object, **options: object) -> ReplayApp:
        made: Callable[..., ReplayApp] = ReplayApp
        return made(*args, is_ascii=True, **options)

    see(bank, look, make=make)


def test_a_group_with_a_damaged_process(bank: Path, tmp_path: Path) -> None:
    copy = tmp_path / bank.parent.name
    shutil.copytree(bank.parent, copy)
    (copy / "2.rdbg").write_bytes(b"nothing")

    async def look(seen: Seen) -> None:
        await open_diagram(seen)
        await seen.press("up", "left", "right")

        assert state(seen)[-1] == "Process 2 is not drawn: its recording is missing or damaged."

    see(copy / "1.rdbg", look)


def test_who_wrote_leads_to_the_sender(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("w")
        await seen.type("reply")
        await seen.press("3", "home", "W")
        await opened(seen)
        rows = shown_rows(seen)
        assert any("sent by 2@" in row and f"prog.py:{ANSWERS}" in row for row in rows)
        at = next(at for at, row in enumerate(rows) if row.startswith("go to the sender: 2@"))

        await seen.press("home", *["down"] * at, "enter")

        assert place(seen) == ("2", ANSWERS)

    see(bank, look)


@pytest.mark.parametrize("key", ["P", "M", "less_than_sign", "greater_than_sign"])
def test_a_recording_of_one_process(tmp_path: Path, key: str) -> None:
    async def look(seen: Seen) -> None:
        await seen.press(key)

        assert "This is a recording of one process:" in seen.text("console")

    see(record_file(FAILS, tmp_path, status=1), look)
