"""Views of memory in the terminal UI: growth over the run with bars, and what keeps memory alive as an icicle graph."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from replaydbg.tui.apps.replay_app import ReplayApp
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.dialogs.icicle_dialog import Icicle, IcicleDialog
from replaydbg.tui.dialogs.icicle_layout import LEAST, levels
from replaydbg.tui.icicle_model import IcicleBox
from replaydbg.tui.panels.heap_panel import HeapPanel, arranged, last_parts
from replaydbg.tui.view_model import HeapRow
from replaydbg.tui.widgets.glyphs import ASCII, UNICODE
from replaydbg.tui.widgets.plain_text import PlainText
from replaydbg.tui.widgets.rows import Rows
from replaydbg.tui.widgets.sparkline import sparkline
from tests.harness.recording import record_file
from tests.harness.seen import Seen, see
from tests.harness.typed import FAILS

HEAP = Path(__file__).parents[2] / "fixtures" / "heap"


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that keeps every request, with six snapshots."""
    return record_file(HEAP / "keeps_every_request.py", tmp_path_factory.mktemp("tui"))


@pytest.fixture(scope="module")
def fails(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(FAILS, tmp_path_factory.mktemp("tui"), status=1)


# ---- bars ----


def test_bars_are_from_the_lowest_number_to_the_highest() -> None:
    assert sparkline((0, 50, 100, 25), UNICODE.bars) == "▁▅█▃"
    assert sparkline((7, 7, 7), UNICODE.bars) == "▁▁▁"
    assert sparkline((1, 2), ASCII.bars) == ".&"


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (40, "server.bus.handlers['tick'][0]"),
        (29, "…bus.handlers['tick'][0]"),
        (24, "…handlers['tick'][0]"),
        (2, "…[0]"),
    ],
)
def test_of_a_path_the_last_parts_are_kept(room: int, expected: str) -> None:
    assert last_parts("server.bus.handlers['tick'][0]", room, "…") == expected
    assert last_parts("total", room // 2, "…") == "total"
    assert last_parts("a.items in thread 0 (MainThread): main() line 12", room, "…").endswith("items")


# ---- what is there ----


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 25))
def test_the_beginnings_of_both_sections_are_seen_at_once(types: int, objects: int, height: int) -> None:
    rows = [HeapRow("By type", is_title=True), *(HeapRow(f"type {at}") for at in range(types))]
    rows += [HeapRow("Largest", is_title=True), *(HeapRow(f"object {at}") for at in range(objects))]

    found = list(arranged(rows, height))

    assert [each for each in found if each.text != "More types"] == rows or height < len(rows)
    assert {each.text for each in found} - {"More types"} == {each.text for each in rows}
    if height >= 4:
        assert {"By type", "type 0", "Largest", "object 0"} <= {each.text for each in found[:height]}


# ---- growth ----


def grown(seen: Seen) -> list[HeapRow]:
    return [row.key for row in seen.app.part(HeapPanel).rows if isinstance(row.key, HeapRow) and row.key.series]


def test_growth_over_the_snapshots(requests: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        await seen.press("L")
        heap = seen.app.part(HeapPanel)

        assert seen.app.focused is heap
        assert "growth over 6 snapshots" in str(heap.border_title)
        first = grown(seen)[0]
        assert first.path == "application.sessions.seen"
        assert first.series == (40, 80, 120, 160, 200, 240)
        assert f"{sparkline(first.series, UNICODE.bars)} 40 -> 240  +" in seen.text("heap")
        # The path is cut at its beginning, between two parts.
        assert "…sessions.seen" in seen.text("heap")
        assert "Request" in seen.text("heap")
        # The verdict is wrapped, and no word is cut.
        assert "Grows steadily:" in " ".join(seen.text("heap").split())
        width = heap.scrollable_content_region.width
        # Which other types grow differs from run to run, and so do their names.
        assert all(len(row.text) < width for row in heap.rows if "seen" in row.text or "steadily" in row.text)
        before = seen.text("heap")
        await seen.pilot.resize_terminal(200, 36)
        await seen.until(lambda: seen.text("heap") != before)
        assert "Grows steadily:" in " ".join(seen.text("heap").split())
        assert "application.sessions.seen" in seen.text("heap").splitlines()[1]

        # The cursor is at the container: its facts are one key away.
        await seen.press("enter")
        await seen.until(
            lambda: isinstance(seen.app.screen, Dialog) and any(each.rows for each in seen.app.screen.query(Rows))
        )
        assert "Held by" in "\n".join(row.text for row in seen.app.screen.query_one(Rows).rows)
        await seen.press("escape", "H")
        await seen.until(lambda: "By type" in seen.text("heap"))

    see(requests, look)


def test_growth_without_snapshots_is_over_positions(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.press("L")

        assert "growth over 8 positions" in str(seen.app.part(HeapPanel).border_title)
        before = seen.text("heap")
        # It stays while the position moves.
        await seen.press("N")
        await seen.quiet()
        assert seen.text("heap") == before

    see(fails, look)


# ---- icicles ----


def box(retained: int, *boxes: IcicleBox, step: str = ".step") -> IcicleBox:
    return IcicleBox(step, "path", "type", retained, f"{retained} B", boxes)


BOXES = st.recursive(
    st.integers(1, 10_000).map(box),
    lambda part: st.lists(part, min_size=1, max_size=6).map(
        lambda inside: box(sum(each.retained for each in inside) + 7, *sorted(inside, key=lambda each: -each.retained))
    ),
    max_leaves=30,
)


@given(BOXES, st.integers(1, 200))
def test_boxes_lie_inside_those_that_hold_them(whole: IcicleBox, width: int) -> None:
    found = levels(whole, width)

    assert [(each.first, each.last) for each in found[0]] == [(0, width)]
    for above, level in pairwise(found):
        at = 0
        for cell in level:
            around = above[cell.around]
            assert at <= cell.first < cell.last and cell.last - cell.first >= LEAST - 1
            assert around.first <= cell.first and cell.last <= around.last
            assert around.box is not None and all(each in around.box.boxes for each in cell.boxes)
            at = cell.last


def test_boxes_that_are_too_narrow_are_together() -> None:
    whole = box(1000, box(900), *(box(5, step=f".{number}") for number in range(20)))

    level = levels(whole, 100)[1]

    assert [(each.last - each.first, len(each.boxes)) for each in level] == [(90, 1), (10, 20)]
    assert level[1].box is None


def detail(seen: Seen) -> str:
    return str(seen.app.screen.query_one("#detail", PlainText).content)


async def open_icicle(seen: Seen) -> Icicle:
    await seen.quiet()
    await seen.press("I")
    await seen.until(lambda: isinstance(seen.app.screen, IcicleDialog) and seen.app.screen.is_drawn)
    await seen.pilot.pause()
    return seen.app.screen.query_one(Icicle)


def drawn_text(icicle: Icicle) -> str:
    return "\n".join(icicle.render_line(y).text for y in range(icicle.size.height))


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (200, 60)])
def test_what_keeps_memory_alive(requests: Path, size: tuple[int, int]) -> None:
    async def look(seen: Seen) -> None:
        icicle = await open_icicle(seen)
        assert "everything" in detail(seen) or "all" in detail(seen)
        assert all(cell_len(line) == icicle.size.width for line in drawn_text(icicle).splitlines())
        assert ".application" in drawn_text(icicle)

        # Downwards along the largest boxes, as far as they are drawn.
        paths = []
        for _ in range(8):
            await seen.press("down")
            paths.append(detail(seen).splitlines()[0])
        assert "__main__" in paths[0]

        await seen.press(*["up"] * 8)
        assert icicle.chosen.boxes[0] is icicle.zoomed[0]

    see(requests, look, size=size)


def test_zoom_and_the_object(requests: Path) -> None:
    async def look(seen: Seen) -> None:
        icicle = await open_icicle(seen)
        await seen.press("down", "enter", "down")
        assert len(icicle.zoomed) == 2
        assert icicle.zoomed[1].step == "__main__"
        (cell,) = icicle._levels[0]
        assert cell.box is icicle.zoomed[1]
        head = str(seen.app.screen.query_one("#head", PlainText).content)
        assert head == "all > __main__"

        before = icicle.chosen.boxes[0]
        await seen.press("backspace")
        assert len(icicle.zoomed) == 1
        await seen.press("down")
        assert icicle.chosen.boxes[0] is before

        await seen.press("o")
        await seen.until(lambda: isinstance(seen.app.screen, Dialog) and bool(seen.app.screen.query(Rows)))
        await seen.until(lambda: bool(seen.app.screen.query_one(Rows).rows))
        text = "\n".join(row.text for row in seen.app.screen.query_one(Rows).rows)
        assert "retained" in text and "Held by" in text

    see(requests, look)


def test_boxes_are_clicked(requests: Path) -> None:
    async def look(seen: Seen) -> None:
        icicle = await open_icicle(seen)
        level = icicle._levels[1]
        await seen.pilot.click(icicle, offset=(level[0].first + 1, icicle._height))
        assert icicle.chosen is icicle._levels[1][0]
        await seen.pilot.click(icicle, offset=(level[0].first + 1, icicle._height), times=2)
        assert len(icicle.zoomed) == 2
        await seen.pilot.resize_terminal(80, 24)
        await seen.pilot.pause()
        assert icicle._levels[0][0].last == icicle.size.width

    see(requests, look)


def test_the_graph_without_unicode(fails: Path) -> None:
    async def look(seen: Seen) -> None:
        icicle = await open_icicle(seen)
        assert drawn_text(icicle).isascii()

    see(fails, look, make=partial(ReplayApp, is_ascii=True))
