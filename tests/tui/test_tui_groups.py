"""The terminal UI shows the processes of a group: one at a time, and the messages between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replaydbg.tui.apps.replay_app import ReplayApp
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.widgets.plain_text import PlainText
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


def arrows(seen: Seen) -> list[str]:
    """Return the arrows of the open chart, each sign once, without the labels beside them."""
    found = []
    for row in shown_rows(seen):
        chart = row.split()[1]
        found.append("".join(sorted(set(chart), key=chart.index)))
    return found


def test_the_messages_between_the_processes(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await to_line(seen, READS_REPLY)
        await seen.press("M")
        await opened(seen)
        assert isinstance(seen.app.screen, Dialog)
        rows = shown_rows(seen)
        assert seen.app.screen.query_one("#head", PlainText).content is not None
        assert arrows(seen) == ["○·▶", *["●─▶", "◀─●"] * 3]
        assert rows[0].endswith("  fork")
        assert all(row.endswith("8 bytes, pipe") for row in rows[1:])
        await seen.press("end")
        await seen.press("enter")
        # The last message was sent by process 2, and this is process 1.
        assert place(seen) == ("2", ANSWERS)

        await seen.press("M")
        await opened(seen)
        await seen.press("enter")
        assert place(seen) == ("1", READS_REPLY)

    see(bank, look)


def test_the_chart_in_ascii(bank: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("M")
        await opened(seen)

        assert all(row.isascii() for row in shown_rows(seen))
        assert arrows(seen)[1:3] == ["B->", "<-B"]

    def make(*args: object, **options: object) -> ReplayApp:
        made: Callable[..., ReplayApp] = ReplayApp
        return made(*args, is_ascii=True, **options)

    see(bank, look, make=make)


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
