"""Which asyncio task ran when, over a whole run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.calls import task_runs
from replaydbg.debugger.calls.task_runs import TaskFollower, TaskRuns
from replaydbg.errors import Cancelled
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    recording = record_file(TRAVEL / "tasks_take_turns.py", tmp_path_factory.mktemp("tasks"), status=24)
    with Session(recording) as session:
        yield session


def found(session: Session) -> TaskRuns:
    (runs,) = [each for each in TaskFollower(session).steps() if each is not None]
    return runs


def test_every_task_with_its_beginning_and_end(session: Session) -> None:
    runs = found(session)

    tasks = {each.name: each for each in runs.tasks}
    assert {"consumer", "never", *(f"producer-{number}" for number in range(8))} < tasks.keys()
    assert not tasks["consumer"].is_done or tasks["consumer"].ended < session.index.total
    assert [each.name for each in runs.tasks if not each.is_done] == []
    producers = [tasks[f"producer-{number}"] for number in range(8)]
    assert all(one.ended < other.begun for one, other in pairwise(producers))
    assert tasks["consumer"].begun < producers[0].begun
    assert tasks["consumer"].ended > producers[-1].begun
    assert len({each.lane for each in runs.tasks}) == 2


def test_tasks_are_the_same_ones_from_process_to_process(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Python 3.14 the program asks for no id of a task, so each process gives it another one."""
    whole, total = found(session), session.index.total
    monkeypatch.setattr(session.travel.timeline, "counts", lambda: range(total * 9 // 10, total, total // 150))

    assert found(session) == whole


def test_a_task_is_followed_into_the_next_process_at_each_line_of_its_last_step(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is done before that step is."""
    whole = found(session)
    last = next(each for each in whole.tasks if each.name == "producer-5").ended
    monkeypatch.setattr(session.travel.timeline, "counts", lambda: range(last - 12, last + 2))

    assert found(session) == whole


def test_the_running_task_is_the_one_that_the_program_says(session: Session) -> None:
    """At the beginning and in the middle of each step the program is asked itself."""
    runs = found(session)
    steps = [turn for turns in runs.turns.values() for turn in turns]
    assert len(steps) > 30

    for turn in steps[:: len(steps) // 12]:
        is_last = turn.last == runs.tasks[turn.task].ended
        # At the end of its last step a task is done already.
        for count in (turn.first + 1, turn.first + 1 if is_last else (turn.first + turn.last) // 2):
            session.seek(count)
            running = [each.name for each in session.ask.tasks() if each.is_running]
            assert runs.tasks[turn.task].name in running


def test_a_search_that_was_cancelled_goes_on_where_it_was(session: Session) -> None:
    follower = TaskFollower(session)
    first = follower.steps()
    assert next(first) is None
    session.work.begin("something else")
    session.work.cancel()
    with pytest.raises(Cancelled):
        list(TaskFollower(session).steps())
    session.work.begin("going on")
    known = len(follower._found)

    again = list(follower.steps())

    assert again[-1] == found(session)
    assert known + len(again) - 1 == len(follower._found)


def test_nothing_is_searched_for_in_a_run_with_too_many_steps(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_runs, "MOST_STEPS", 3)

    assert list(TaskFollower(session).steps()) == []


def test_a_program_without_tasks_has_none(tmp_path: Path) -> None:
    with Session(record_file(TRAVEL / "long_loop.py", tmp_path)) as session:
        assert list(TaskFollower(session).steps()) == []
