"""Answers about the whole run name the asyncio task that ran, with its thread."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.calls import running_tasks
from replaydbg.render import texts
from replaydbg.render.json_data.writes_json import change_facts, last_write_facts
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = TRAVEL / "tasks_lose_an_update.py"
WRITING = next(n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if "written by a task" in line)
TASKS = ["carpenter", "roofer", "carpenter", "roofer"]


@pytest.fixture(params=[running_tasks.FEW, 0], ids=["asked", "followed"])
def session(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setattr(running_tasks, "FEW", request.param)
    with Session(record_file(PROGRAM, tmp_path)) as opened:
        opened.seek("@exc")
        yield opened


def test_changes_of_a_value(session: Session) -> None:
    changes = list(session.run.history("stock['nails']"))

    named = [change_facts(session, each)["task"] for each in changes if each.line == WRITING]
    assert named == TASKS
    assert [texts.runner_text(session, each.count, each.lane) for each in changes] == [
        "thread 0",
        *(f"thread 0 task {each}" for each in TASKS),
    ]


def test_the_last_write(session: Session) -> None:
    session.seek("@exc")
    why = session.run.why("stock['nails']")

    assert last_write_facts(session, why)["task"] is None
    assert why.changed is not None
    assert last_write_facts(session, why.changed)["task"] == "roofer"
    assert any("thread 0 task roofer" in each.text for each in texts.why_report(session, why))


def test_lines_of_a_log(session: Session) -> None:
    logged = list(session.run.log(str(PROGRAM), WRITING, "left"))

    lines = [texts.logged_text(session, each) for each in logged]
    assert [line.split("task ")[1].split()[0] for line in lines] == TASKS


def test_a_program_without_an_event_loop(tmp_path: Path) -> None:
    program = tmp_path / "plain.py"
    program.write_text("value = 1\nvalue = 2\nraise SystemExit(0)\n")
    with Session(record_file(program, tmp_path)) as opened:
        opened.seek("@exc")
        assert [texts.change_text(opened, each).count("task") for each in opened.run.history("value")] == [0, 0]
