"""The terminal UI where nothing is compiled: what a recording says without a replay."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import sys
import time
from pathlib import Path

import pytest

from replaydbg.tui.apps.reading_app import ReadingApp
from replaydbg.tui.widgets.rows import Rows
from tests.harness.recording import record_file
from tests.harness.replays import passed_on

PROGRAM = """
import replaydbg
kept = {}
for number in range(40):
    kept[number] = [number] * 3
    if number % 9 == 3:
        replaydbg.snapshot(f"with {number}")
print(len(kept))
kept["nothing"]
"""
PAGES = [
    "Run",
    "Events",
    "Snapshot @#1 with 3",
    "Snapshot @#2 with 12",
    "Snapshot @#3 with 21",
    "Snapshot @#4 with 30",
    "Snapshot @#5 with 39",
    "From @#1 to @#2",
    "From @#2 to @#3",
    "From @#3 to @#4",
    "From @#4 to @#5",
    "From @#1 to @#5",
    "What grows",
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recorded")
    (place / "prog.py").write_text(PROGRAM)
    return record_file(place / "prog.py", place, status=1)


async def shown(path: Path, keys: list[str], *, is_ascii: bool = False) -> tuple[list[str], str, str]:
    """Return the pages, the title of the open one, and its text, after some keys."""
    app = ReadingApp(path, "Nothing is compiled here.", is_ascii=is_ascii)
    async with app.run_test(size=(120, 35)) as pilot:
        for key in keys:
            await pilot.press(key)
        await app.workers.wait_for_complete()
        await pilot.pause()
        pages, page = app.query_one("#pages", Rows), app.query_one("#page", Rows)
        return [row.text for row in pages.rows], str(page.border_title), "\n".join(row.text for row in page.rows)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("Run", "exit code 1"),
        ("Events", "_io.FileIO.write(<file 1>, <output bytes>)"),
        ("Snapshot @#2 with 12", "kept"),
        ("From @#1 to @#2", "kept"),
        ("From @#1 to @#5", "kept"),
        ("What grows", "kept"),
    ],
)
@pytest.mark.parametrize("is_ascii", [False, True])
def test_each_page_shows_what_the_command_prints(recorded: Path, page: str, text: str, is_ascii: bool) -> None:
    keys = [*["down"] * PAGES.index(page), "enter"]

    pages, title, found = asyncio.run(shown(recorded, keys, is_ascii=is_ascii))

    assert pages == PAGES
    assert title == page
    assert text in found


def test_the_last_page_that_was_chosen_is_shown(recorded: Path) -> None:
    keys = [key for _ in PAGES for key in ("enter", "down")]

    assert asyncio.run(shown(recorded, keys))[1] == PAGES[-1]


@pytest.mark.slow
def test_it_opens_where_nothing_is_compiled(recorded: Path) -> None:
    """In a terminal, by the command; `q` leaves."""
    root = Path(__file__).parents[2]
    pid, terminal = pty.fork()
    if not pid:
        env = {**passed_on(), "PYTHONPATH": str(root), "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "35"}
        command = [sys.executable, "-m", "tests.harness.pretended", "pure", "tui", str(recorded)]
        os.execve(sys.executable, command, env)
    written, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                written += os.read(terminal, 1 << 16)
            except OSError:
                break
        if b"Snapshot @#1" in written and b"exit code 1" in written:
            os.write(terminal, b"q")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, written[-2000:]
    assert b"is not built" in written
