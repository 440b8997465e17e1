"""Two recordings of one program are shown side by side, and move together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot

from replaydbg.tui.apps.pair_app import PairApp
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.dialogs.status_line import StatusLine
from replaydbg.tui.keys import keymap
from replaydbg.tui.panels.source_panel import SourcePanel
from replaydbg.tui.widgets.rows import Rows
from tests.harness.recording import record_file
from tests.harness.typed import FAILS, TRAVEL
from tests.harness.waiting import PATIENCE, wait_in_loop

Look = Callable[["Both"], Awaitable[None]]


class Both:
    """The view of two recordings, in a terminal of its own."""

    def __init__(self, app: PairApp, pilot: Pilot[int]) -> None:
        self.app, self.pilot = app, pilot

    async def until(self, is_so: Callable[[], bool]) -> None:
        await wait_in_loop(is_so)

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.until(lambda: not isinstance(self.app.screen, Dialog) or self.app.screen.is_drawn)
            await self.pilot.press(key)
            await self.until(lambda: not self.app.is_waiting)
            await self.pilot.pause()

    @property
    def lines(self) -> list[int]:
        return [each.scene.at.line if each.scene and each.scene.at else 0 for each in self.app.sides]

    async def dialog(self) -> Rows:
        await self.until(lambda: any(each.rows for each in self.app.screen.query("#choices").results(Rows)))
        return self.app.screen.query_one(Rows)

    def values(self, side: int) -> list[str]:
        return [row.text for row in self.app.sides[side].query_one("#values", Rows).rows]


def see(paths: tuple[Path, Path], look: Look, make: Callable[..., PairApp] = PairApp) -> int | None:
    async def run() -> int | None:
        app = make(paths)
        async with app.run_test(size=(160, 40)) as pilot:
            both = Both(app, pilot)
            await both.until(lambda: not app.is_waiting or app._exit)
            await pilot.pause()
            await look(both)
        for each in app.sides:
            each.owner.join(PATIENCE)
        return app.return_value

    return asyncio.run(run())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Record the same program twice: it reads the clock."""
    folders = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    return record_file(FAILS, folders[0], status=1), record_file(FAILS, folders[1], status=1)


def test_both_move_with_one_key(runs: tuple[Path, Path]) -> None:
    async def look(both: Both) -> None:
        assert both.lines == [30, 30]
        await both.press("N", "N")
        assert both.lines == [27, 27]
        await both.press("g")
        assert both.lines == [1, 1]

    see(runs, look)


def test_one_moves_alone(runs: tuple[Path, Path]) -> None:
    async def look(both: Both) -> None:
        await both.press("equals_sign", "N")
        assert both.lines == [28, 30]

        both.app.sides[1].query_one(SourcePanel).focus()
        await both.press("N", "N")
        assert both.lines == [28, 27]

    see(runs, look)


def test_values_that_differ_are_marked(runs: tuple[Path, Path]) -> None:
    async def look(both: Both) -> None:
        for side in (0, 1):
            marked = [each for each in both.values(side) if each.startswith("!")]
            assert any("started = " in each and "other: " in each for each in marked), both.values(side)
            assert not any("results" in each for each in marked)

    see(runs, look)


def test_the_first_differences_are_offered_by_name(runs: tuple[Path, Path]) -> None:
    async def look(both: Both) -> None:
        await both.pilot.press("x")
        dialog = await both.dialog()
        rows = [row.text for row in dialog.rows]
        names = [each for each in rows if not each.startswith("  ")]
        assert names == [f"First difference in {each}" for each in ("control flow", "inputs", "values")]
        # The two differ only in the readings of the clock.
        assert any("every thread ran the same lines" in each for each in rows), rows
        await both.press("escape")
        assert both.lines == [30, 30]

    see(runs, look)


ADDRESSES = """\
import sys, threading
class Box:
    def __init__(self, n): self.n = n
drawn = open(sys.argv[1], "rb").read()
junk = [object() for _ in range(drawn[0] * 7 + 1)]
box, other, lock = Box(1), Box(drawn[0]), threading.Lock()
same = {"k": [1, Box(2)]}
way = "up" if drawn[1] > 127 else "down"
del junk
assert not box
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Record the same program twice, with other addresses; it draws two numbers, of which the first differs."""
    folder = tmp_path_factory.mktemp("addresses")
    program = folder / "addresses.py"
    program.write_text(ADDRESSES)
    made: list[Path] = []
    for number in (1, 200):
        numbers = folder / "numbers"
        numbers.write_bytes(bytes([number, 1]))
        made.append(record_file(program, folder, str(numbers), status=1).rename(folder / f"{number}.rdbg"))
    return made[0], made[1]


def test_equal_objects_at_other_addresses_are_not_marked(elsewhere: tuple[Path, Path]) -> None:
    async def look(both: Both) -> None:
        marked = [each.lstrip("! ▸").split(" = ")[0] for each in both.values(0) if each.startswith("!")]
        assert not {"box", "lock", "same", "Box", "sys", "threading"} & set(marked), both.values(0)
        assert "drawn" in marked, both.values(0)
        assert "other" in marked, "what it holds is not the same"

    see(elsewhere, look)


def test_enter_goes_to_a_first_difference_in_both(elsewhere: tuple[Path, Path]) -> None:
    async def look(both: Both) -> None:
        await both.pilot.press("x")
        dialog = await both.dialog()
        texts = [row.text for row in dialog.rows]
        dialog.cursor = texts.index("First difference in values")
        await both.press("enter")
        # Before the line after the one that reads the file.
        await both.until(lambda: both.lines == [5, 5])

    see(elsewhere, look)


def test_memory_of_both_is_compared(runs: tuple[Path, Path]) -> None:
    async def look(both: Both) -> None:
        await both.pilot.press("D")
        dialog = await both.dialog()
        rows = [row.text for row in dialog.rows]
        assert any(each.startswith("~ started  ") for each in rows), rows
        assert not any("results" in each for each in rows)

        # A wider scope has more rows.
        dialog.cursor = rows.index("scope: all")
        await both.pilot.press("enter")
        await both.until(lambda: both.app.screen is not both.app.screen_stack[0])
        assert [row.text for row in (await both.dialog()).rows][-1] == "scope: standard"

        (await both.dialog()).cursor = next(
            at for at, row in enumerate((await both.dialog()).rows) if row.text.startswith("~ started  ")
        )
        await both.press("enter")
        await both.until(lambda: both.lines == [20, 20])

    see(runs, look)


def test_both_seek_and_go_back_to_the_failure(runs: tuple[Path, Path]) -> None:
    async def look(both: Both) -> None:
        await both.press("percent_sign", *"@out:1", "enter")
        assert both.lines == [28, 28]
        await both.press("e")
        assert both.lines == [30, 30]

        await both.press("equals_sign", "percent_sign", *"@out:1", "enter")
        assert both.lines == [28, 30]

    see(runs, look)


def test_keys_of_the_user_are_heeded(runs: tuple[Path, Path]) -> None:
    async def look(both: Both) -> None:
        await both.press("question_mark")
        rows = [row.text for row in (await both.dialog()).rows]
        assert any(each.split()[:3] == ["Z", "heap", "differences"] for each in rows)
        await both.press("escape", "j", "j")
        assert both.lines == [27, 27]

    see(runs, look, make=partial(PairApp, keys=keymap("default", {"heap-diff": "Z", "reverse-next": "j"})))


def test_two_programs_are_not_compared(runs: tuple[Path, Path], tmp_path: Path) -> None:
    other = record_file(TRAVEL / "long_loop.py", tmp_path)

    async def look(both: Both) -> None:
        await both.pilot.press("x")
        await both.until(lambda: "comparing" not in both.app.query_one(StatusLine).shown)
        assert "program" in both.app.query_one(StatusLine).shown

    see((runs[0], other), look)


def test_q_leaves(runs: tuple[Path, Path]) -> None:
    async def look(both: Both) -> None:
        await both.press("question_mark", "escape")
        assert both.app.return_code is None
        await both.pilot.press("q")
        await both.until(lambda: both.app.return_code == 0)

    see(runs, look)
