"""Collections, and the code that they run, occur at the same place in a replay; if not, that is reported."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.harness.replay_cases import Case, cases
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("garbage"))
def test_garbage_replays(case: Case) -> None:
    case.check()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A program that stats a thousand times and writes a line."""
    program = tmp_path / "program.py"
    program.write_text("import os\nfor _ in range(1000):\n    os.stat('.')\nprint('done')\n")
    recording = tmp_path / "recording.rdbg"
    assert _tool(tmp_path, "record", "-q", "-o", str(recording), "--", str(program)).status == 0
    return recording


def _tool(directory: Path, *words: str, orders: Mapping[str, str] | None = None) -> Outcome:
    env = {**passed_on(), **(orders or {})}
    return run([sys.executable, "-m", "replaydbg", *words], cwd=directory, env=env)


def test_a_collector_that_stands_where_it_stood_is_not_mentioned(recording: Path) -> None:
    replayed = _tool(recording.parent, "replay", str(recording))

    assert (replayed.stdout, replayed.stderr, replayed.status) == ("done\n", "", 0)


def test_a_collector_that_stands_elsewhere_is_said_at_the_end(recording: Path) -> None:
    orders = {"REPLAYDBG_TEST_DRIFT": "300"}

    replayed = _tool(recording.parent, "replay", str(recording), orders=orders)
    facts = json.loads(_tool(recording.parent, "replay", "--json", str(recording), orders=orders).stdout)

    assert (replayed.stdout, replayed.status) == ("done\n", 0)
    assert "every event matched, but the garbage collector has differed since event 513:" in replayed.stderr
    assert facts["drift"] == 513
    assert facts["divergence"] is None


def test_a_collector_that_stands_elsewhere_is_a_divergence_where_the_tests_say_so(recording: Path) -> None:
    orders = {"REPLAYDBG_TEST_DRIFT": "300", "REPLAYDBG_TEST_STRICT": "1"}

    replayed = _tool(recording.parent, "replay", str(recording), orders=orders)

    assert replayed.status == 4
    assert "divergence-collector" in replayed.stderr


def test_a_divergence_says_that_the_collector_stood_elsewhere_before(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os\n"
        "class Node:\n"
        "    def __init__(self):\n"
        "        self.me = self\n"
        "    def __del__(self):\n"
        "        os.getpid()\n"
        "for number in range(5000):\n"
        "    if number > 600:\n"
        "        Node()\n"
        "    os.stat('.')\n"
    )
    recording = tmp_path / "recording.rdbg"
    assert _tool(tmp_path, "record", "-q", "-o", str(recording), "--", str(program)).status == 0

    replayed = _tool(tmp_path, "replay", str(recording), orders={"REPLAYDBG_TEST_DRIFT": "300"})

    assert replayed.status == 4
    assert (
        "The garbage collector has differed since event 513: finalizers may have run at other points."
        in replayed.stderr
    )
