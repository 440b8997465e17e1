"""Which asyncio tasks await which, in each of the ways that the standard library has."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from replaydbg.commands.task_tree import task_tree
from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Task
from tests.harness.process import run
from tests.harness.recording import record_file
from tests.harness.surroundings import without_steering
from tests.harness.typed import TRAVEL, Typed

PROGRAM = TRAVEL / "tasks_await.py"
AWAITED = {
    "awaits": ["leaf-1"],
    "awaits-too": ["leaf-1"],
    "gathers": ["leaf-2", "leaf-3"],
    "waits": ["leaf-4", "leaf-5"],
    "waits-for": ["leaf-6"],
    "takes": ["leaf-7", "leaf-8"],
    "shields": ["leaf-9"],
    "groups": ["member-1", "member-2"],
    "above": ["awaits", "gathers"],
}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(PROGRAM, tmp_path_factory.mktemp("tasks"))


def test_each_way_to_await_is_found(recording: Path) -> None:
    with Session(recording) as session:
        shown = Typed.at("@start", session)("start", "advance tasks_await.py:63", "tasks")
        tasks = session.ask.tasks()

    awaited = {each.name: [tasks[number].name for number in each.awaits] for each in tasks}
    assert {name: found for name, found in awaited.items() if found} == AWAITED
    assert [each.name for each in tasks if each.is_running] == ["Task-1"]
    names = [each.name for each in tasks if each.name.startswith("leaf")]
    assert names == [f"leaf-{number}" for number in range(1, 12)]
    assert "above  awaits awaits, gathers\n" in shown
    assert "\n  gathers  awaits leaf-2, leaf-3\n" in shown
    assert "\n  leaf-1  (see above)\n" in shown


def tasks_at(recording: Path, moment: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "replaydbg", "seek", "--json", "-q", str(recording), moment]
    done = run(command, cwd=recording.parent, env=without_steering(os.environ), timeout=60)
    assert done.status == 0, done
    tasks: list[dict[str, Any]] = json.loads(done.stdout)["tasks"]
    return tasks


def test_seek_has_them_as_json(recording: Path) -> None:
    assert tasks_at(recording, "@start") == []
    with Session(recording) as session:
        Typed.at("@start", session)("start", "advance tasks_await.py:63")
        moment = f"{session.here.moment.event}:{session.here.moment.step}"

    found = tasks_at(recording, moment)

    by_name = {each["name"]: each for each in found}
    assert by_name["Task-1"]["runs"]
    assert [found[number]["name"] for number in by_name["takes"]["awaits"]] == ["leaf-7", "leaf-8"]
    assert by_name["takes"]["stack"][0]["function"] == "takes_the_first"


def task(name: str, *awaits: int) -> Task:
    return Task(name, (), "", False, awaits)


@pytest.mark.parametrize(
    ("tasks", "rows"),
    [
        ([], []),
        ([task("a", 1), task("b", 0)], ["0 a", "1 b", "2 a again"]),
        ([task("a"), task("b", 0), task("c", 0)], ["0 b", "1 a", "0 c", "1 a again"]),
        ([task("a", 1), task("b", 2), task("c")], ["0 a", "1 b", "2 c"]),
    ],
    ids=["none", "each other", "both the same", "a chain"],
)
def test_each_task_is_shown_once(tasks: list[Task], rows: list[str]) -> None:
    found = [f"{each.depth} {each.task.name}{' again' if each.is_again else ''}" for each in task_tree(tasks)]

    assert found == rows


def test_a_long_chain_of_tasks() -> None:
    found = list(task_tree([task(str(number), number + 1) for number in range(4999)] + [task("last")]))

    assert len(found) == 5000
    assert max(each.depth for each in found) == 20
