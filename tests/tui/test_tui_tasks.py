"""The timeline has a row for each asyncio task."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.debugger import Session
from replaydbg.debugger.calls.task_runs import TaskFollower
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.panels.timeline_rows import TimelineRows, row_cells
from replaydbg.tui.ui_messages import TasksFound
from replaydbg.tui.view_model import LaneSpans, TaskSpans, TaskTimes
from replaydbg.tui.widgets.glyphs import ASCII, UNICODE
from replaydbg.tui.worker.background_tasks import task_times
from tests.harness.recording import record_file
from tests.harness.seen import Seen, see
from tests.harness.typed import TRAVEL


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "tasks_take_turns.py", tmp_path_factory.mktemp("tui"), status=24)


def labels(seen: Seen) -> list[str]:
    """The names of the visible rows."""
    timeline = seen.app.part(TimelinePanel)
    return [timeline.rows.label(each).strip() for each in timeline.rows.shown(timeline._room)]


@pytest.fixture(scope="module")
def places(tasks: Path) -> dict[str, int]:
    """The line of the run at which each of some tasks begins."""
    with Session(tasks) as session:
        file = session.sources.file_named("tasks_take_turns.py")
        produce, consume = ([*session.run.passages(file, line)] for line in (7, 13))
        moments = {"producer-7": produce[-4], "consumer": consume[0], "producer-0": produce[0]}
        return {name: session.index.count(moment) for name, moment in moments.items()}


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
def test_the_task_of_the_position_is_on_the_timeline(
    tasks: Path, places: dict[str, int], size: tuple[int, int]
) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        timeline = seen.app.part(TimelinePanel)
        for name, count in places.items():
            seen.app.order(f"seek-ticks {count}")
            await seen.settled()
            assert name in labels(seen)
        total = len(timeline.rows.all)
        assert 1 <= len(labels(seen)) < total
        assert f"{len(labels(seen))} of {total} threads and tasks" in str(timeline.border_subtitle)

    see(tasks, look, size=size)


def test_the_other_tasks_are_reached_by_scrolling(tasks: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        await seen.press("g", "5")
        assert labels(seen)[0] == "0 main"
        timeline = seen.app.part(TimelinePanel)
        await seen.press(*["down"] * (len(timeline.rows.all) - len(labels(seen))))
        assert labels(seen)[-1] == timeline.rows.label(timeline.rows.all[-1]).strip()

    see(tasks, look)


def test_a_task_is_drawn_between_its_beginning_and_its_end(tasks: Path) -> None:
    async def look(seen: Seen) -> None:
        await seen.quiet()
        timeline = seen.app.part(TimelinePanel)
        rows = {each.name: each for each in timeline.rows.all if isinstance(each, TaskSpans)}
        _, early = timeline._row(rows["producer-0"])
        _, late = timeline._row(rows["producer-7"])
        first = [text for text, _ in early]
        last = [text for text, _ in late]

        assert UNICODE.runs in first
        assert max(at for at, each in enumerate(first) if each != " ") <= min(
            at for at, each in enumerate(last) if each != " "
        )

    see(tasks, look, size=(200, 50))


# ---- rows ----

SPANS = st.lists(st.integers(1, 400), min_size=2, max_size=8, unique=True).map(
    lambda ends: tuple(zip(sorted(ends)[::2], sorted(ends)[1::2], strict=False))
)


@given(SPANS, st.integers(1, 200), st.integers(1, 200), st.integers(1, 120))
def test_a_row_is_drawn_as_each_line_of_it_would_be(
    spans: tuple[tuple[int, int], ...], first: int, more: int, width: int
) -> None:
    task = TaskSpans("task", 0, spans, spans[-1][1])
    last = first + more
    width = min(width, more + 1)

    def column(count: int) -> int:
        return max(0, min((count - first) * width // (last - first + 1), width - 1))

    cells = [text for text, _ in row_cells(task, (first, last), column, width, ASCII)]

    expected = [" "] * width
    for count in range(first, last + 1):
        if spans[0][0] <= count <= spans[-1][1] and expected[column(count)] != ASCII.runs:
            is_on = any(begin <= count <= end for begin, end in spans)
            expected[column(count)] = ASCII.runs if is_on else ASCII.waits
    assert [each for each in cells if each == ASCII.runs] == [each for each in expected if each == ASCII.runs]
    assert all((one == " ") == (other == " ") for one, other in zip(cells, expected, strict=True))


def test_tasks_are_below_the_thread_of_their_event_loop() -> None:
    rows = TimelineRows()
    rows.set_tasks(TaskTimes((TaskSpans("b", 1, ((5, 6),), 9), TaskSpans("a", 0, ((7, 8),), 8))))
    assert [rows.label(each) for each in rows.all] == ["b", "a"]

    rows.set_lanes((LaneSpans(0, "main", ((1, 9),)), LaneSpans(1, "other", ((5, 6),))))

    assert [rows.label(each) for each in rows.all] == ["0 main", " a", "1 other", " b"]
    assert rows.hidden_text(3) == "3 of 4 threads and tasks (up down)"
    assert rows.hidden_text(4) == ""
    assert rows.hidden_text(0) == "4 threads and tasks, no room"


def test_the_running_task_is_revealed_among_thousands() -> None:
    tasks = tuple(
        TaskSpans(f"task-{number}", 0, ((number * 10, number * 10 + 5),), number * 10 + 5) for number in range(5000)
    )
    turns = {0: tuple((number * 10, number * 10 + 5, number) for number in range(5000))}
    rows = TimelineRows()
    rows.set_tasks(TaskTimes(tasks, turns))

    rows.reveal(0, 31_003, 3)
    assert "task-3100" in [each.name for each in rows.shown(3)]
    shown = rows.shown(3)
    rows.reveal(0, 31_008, 3)  # the event loop runs
    assert rows.shown(3) == shown
    rows.reveal(0, 4, 3)
    assert [each.name for each in rows.shown(3)] == ["task-0", "task-1", "task-2"]


def test_a_step_that_runs_another_loop_goes_on_behind_it() -> None:
    times = TaskTimes((), {0: ((10, 100, 0), (20, 30, 1), (40, 50, 2))})

    assert [times.running(0, count) for count in (5, 15, 25, 35, 45, 60, 100, 101)] == [None, 0, 1, 0, 2, 0, 0, None]
    assert times.running(7, 15) is None


def test_the_search_goes_on_after_each_key(tasks: Path) -> None:
    with Session(tasks) as session:
        follower = TaskFollower(session)
        results = []
        for each in task_times(session, follower):
            results += [each] if each is not None else []
            session.work.cancel()

    (found,) = results
    assert isinstance(found, TasksFound)
    assert {"consumer", "never"} <= {each.name for each in found.times.tasks}
