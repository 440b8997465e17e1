"""A space-time diagram as text: each message can be followed, and crosses the line exactly if it is in flight."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed.space_time import Layout
from replaydbg.tui.diagram_model import DiagramAnswer, DiagramArrowRow, DiagramRow
from replaydbg.tui.dialogs.diagram_rows import DiagramText
from replaydbg.tui.widgets.glyphs import ASCII, UNICODE
from tests.distributed.model import World
from tests.distributed.test_cuts import worlds
from tests.distributed.test_space_time import drawn, wanted_of


def answer_of(layout: Layout, receivers: list[int]) -> DiagramAnswer:
    """Return what the worker makes of a layout."""
    rows = [DiagramRow(each.process, each.position, f"{each.process}@{each.position}", "") for each in layout.events]
    arrows = [
        DiagramArrowRow(each.source, each.target, to, "text", is_start=False, is_in_flight=each.crosses(layout.line))
        for each, to in zip(layout.arrows, receivers, strict=True)
        if each is not None
    ]
    return DiagramAnswer("", layout.processes, 1, tuple(rows), layout.line, tuple(arrows), (), False, None, "")


def answer(world: World, data: st.DataObject) -> DiagramAnswer:
    layout, arrows, _ = drawn(world, wanted_of(data, world), 1 << 20)
    targets = [each.arrow.target for each in arrows]
    return answer_of(layout, [target.process if target is not None else 2 for target in targets])


@given(worlds(), st.data())
def test_all_events_have_a_line_or_share_one(world: World, data: st.DataObject) -> None:
    shown = answer(world, data)
    drawing = DiagramText(shown, UNICODE)
    texts = [row.text for row in drawing.rows()]

    assert texts[drawing.line].endswith("  cut")
    assert texts[drawing.line].index("cut") == drawing.first_cell + drawing.width * len(shown.processes) + 2
    for event, row in enumerate(shown.rows):
        # In its own line, or at the point of an arrow in that of its send.
        lane = drawing.at(row.process)
        assert any(row.label in text and text[drawing.first_cell + lane] in "●▶◀" for text in texts), event


@given(worlds(), st.data())
def test_messages_in_flight_cross_the_line(world: World, data: st.DataObject) -> None:
    shown = answer(world, data)
    flying = sum(each.is_in_flight for each in shown.arrows)
    drawing = DiagramText(shown, UNICODE)

    line = drawing.rows()[drawing.line].text

    # Of very many at once, some have no cell: the texts beside their ends name them.
    assert line.count(UNICODE.crossing) == flying or len(shown.arrows) > 8
    assert line.count(UNICODE.crossing) <= flying
    assert line.count(UNICODE.cut_lane) == len(shown.processes)


@given(worlds(), st.data())
def test_ascii_is_ascii(world: World, data: st.DataObject) -> None:
    drawing = DiagramText(answer(world, data), ASCII)

    assert drawing.head.isascii()
    assert all(row.text.isascii() for row in drawing.rows())


def test_more_messages_than_a_column_has_cells() -> None:
    rows = [DiagramRow(1, at + 1, f"1@{at + 1}", "") for at in range(30)]
    rows += [DiagramRow(40, at + 1, f"40@{at + 1}", "") for at in range(30)]
    arrows = [DiagramArrowRow(at, 30 + at, 40, "8 bytes", is_start=False, is_in_flight=True) for at in range(30)]
    shown = DiagramAnswer("", tuple(range(1, 41)), 1, tuple(rows), 30, tuple(arrows), (), False, None, "")
    drawing = DiagramText(shown, UNICODE)

    texts = [row.text for row in drawing.rows()]

    assert len(texts) == 61
    assert 0 < texts[drawing.line].count(UNICODE.crossing) < 30
    assert texts[29].endswith("to 40@30  8 bytes")
    assert texts[60].endswith("from 1@30  8 bytes")


@given(st.integers(1, 40), st.integers(20, 120))
def test_columns_around_the_cursor_are_shown_if_there_is_no_room_for_all(process: int, room: int) -> None:
    rows = tuple(DiagramRow(each, 1, f"{each}@1", "here") for each in range(1, 41))
    shown = DiagramAnswer("", tuple(range(1, 41)), process, rows, 20, (), (), False, None, "")
    drawing = DiagramText(shown, UNICODE, room)

    own = next(row.text for row in drawing.rows() if row.text.startswith(f"{process}@1 "))

    assert f"[{process}]" in drawing.head
    assert own.count("●") == 1
    assert own.endswith("  here")
    assert len(own) <= max(room, drawing.first_cell + 3 * drawing.width + len("  here"))


def test_nothing_at_all() -> None:
    drawing = DiagramText(DiagramAnswer("", (1,), 1, (), 0, (), (), False, None, ""), UNICODE)

    assert [row.text.strip() for row in drawing.rows()] == ["════════╪═══════  cut"]
