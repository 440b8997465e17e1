"""Futures in the terminal UI: how they end as a list, the share over the run as a curve, and an example to open."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.panels.timeline_rows import curve_cells
from replaydbg.tui.view_model import Track
from replaydbg.tui.widgets.glyphs import UNICODE
from replaydbg.tui.widgets.rows import Rows
from tests.futures.made import LOST_UPDATE, Ground
from tests.futures.test_curve import failing
from tests.harness.seen import Seen, see


@pytest.fixture
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """Return a run that has failed."""
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path / "store"))
    ground = Ground.make(tmp_path, LOST_UPDATE)
    failing(ground)
    return ground


async def rows(seen: Seen) -> list[str]:
    """Return the rows of the answer."""
    await seen.until(
        lambda: isinstance(seen.app.screen, Dialog) and any(each.rows for each in seen.app.screen.query(Rows))
    )
    return [row.text for row in seen.app.screen.query_one(Rows).rows]


@pytest.mark.slow
def test_the_groups_and_the_curve(failed: Ground) -> None:
    at = f"{failed.first_thread() - 1}:1"

    async def look(seen: Seen) -> None:
        await seen.press("U")

        found = await rows(seen)
        assert any("AssertionError" in row for row in found) and any("exit code 0" in row for row in found), found
        assert "Share of 16 futures that fail over this run" in found
        assert any(row.startswith("No return after event ") for row in found), found
        (track,) = seen.app.part(TimelinePanel).tracks
        assert track.key == "futures" and track.levels[-1][1] == 1.0 > track.levels[0][1]
        await seen.press("escape")

    see(failed.folder / "one.rdbg", look, moment=at)


@pytest.mark.slow
def test_enter_opens_an_example(failed: Ground) -> None:
    at = f"{failed.first_thread() - 1}:1"
    opened: list[Path | None] = []

    async def look(seen: Seen) -> None:
        await seen.press("U")
        await rows(seen)
        await seen.press("enter")
        await seen.until(lambda: seen.app._exit)
        opened.append(seen.app.next_path)

    code = see(failed.folder / "one.rdbg", look, moment=at)

    (path,) = opened
    assert code == 0 and path is not None
    assert failed.replay(str(path)).status == 1


def test_a_curve_is_full_where_all_fail() -> None:
    track = Track("futures", "futures", (), levels=((1, 0.0), (4, 0.5), (7, 1.0)))

    cells = curve_cells(track, (1, 10), lambda count: count - 1, 10, UNICODE)

    assert "".join(text for text, _ in cells) == "▁▁▁▅▅▅████"
    assert [style for _, style in cells] == ["warning"] * 6 + ["error"] * 4
    assert "".join(text for text, _ in curve_cells(track, (5, 6), lambda count: count - 5, 2, UNICODE)) == "▅▅"
