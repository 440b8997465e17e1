"""Raft of three processes: in all quiet cuts each term has one leader, and committed logs are prefixes of one."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from tests.harness import tool
from tests.harness.children import CHILDREN, completed
from tests.harness.process import run
from tests.harness.sanitizer import IS_SANITIZED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(IS_SANITIZED, reason="four sessions under the sanitizer take minutes, and no C code is theirs"),
]

PROGRAM = Path(__file__).parents[2] / "fixtures" / "cuts" / "raft.py"
LEADS = 1 + PROGRAM.read_text().splitlines().index("                self.led.append(self.term)")
ONE_LEADER = "len({term for led in locals.values() for term in led}) == sum(map(len, locals.values()))"
PREFIXES = "all(one[:len(other)] == other[:len(one)] for one in locals.values() for other in locals.values())"

Bisect = Callable[..., Any]


@pytest.fixture
def bisect(capsys: pytest.CaptureFixture[str]) -> Bisect:
    def bisected(group: Path, local: str, holds: str, *options: str) -> Any:
        capsys.readouterr()
        code = main(["bisect", "cuts", "-q", "--json", str(group), "--local", local, "--holds", holds, *options])
        return code, json.loads(capsys.readouterr().out)

    return bisected


def record(folder: Path, *fault: str) -> Path:
    command = tool.record(sys.executable, folder / "made", [str(PROGRAM), "12", *fault], options=CHILDREN)
    done = run(command, cwd=folder, env=dict(os.environ), timeout=100)
    assert done.status == 0, done.stderr
    completed(folder / "made.rdbgs")
    return folder / "made.rdbgs"


def locals_of(evaluated: Any) -> list[Any]:
    return [ast.literal_eval(text) for text in evaluated["locals"].values()]


def test_each_term_has_one_leader_and_logs_are_prefixes(tmp_path: Path, bisect: Bisect) -> None:
    group = record(tmp_path)

    for local, holds in (("node.led", ONE_LEADER), ("node.log[:node.committed]", PREFIXES)):
        code, data = bisect(group, local, holds, "--all")

        verdicts = [each["verdict"] for each in data["evaluated"]]
        assert (code, data["answer"]) == (3, "never")
        assert "bad" not in verdicts
        assert verdicts.count("good") > 20
    # There were several terms, and all have the whole log at the end.
    logs = locals_of(data["evaluated"][-1])
    assert [len(each) for each in logs] == [12, 12, 12]
    assert len({term for term, _ in logs[0]}) > 1


def test_a_node_that_votes_twice_makes_two_leaders(tmp_path: Path, bisect: Bisect) -> None:
    code, data = bisect(record(tmp_path, "twice"), "node.led", ONE_LEADER)

    assert (code, data["answer"], data["unfit"]) == (1, "found", [])
    values = {each["place"]: locals_of(each) for each in data["evaluated"]}
    good, bad = values[data["last_good"]], values[data["first_bad"]]
    assert sum(1 in each for each in bad) == 2
    assert sum(1 in each for each in good) < 2
    assert LEADS in [each["line"] for each in data["changes"]]
