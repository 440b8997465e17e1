"""A program that was killed after its last event has nothing more to do: it ends, and its recording is whole."""

import json
import sys
from pathlib import Path

import pytest

from tests.harness import tool
from tests.resume.going_on import KILLED, own_events, record_in, resume_in, run_in

pytestmark = pytest.mark.slow

_PROGRAM = """import sys
file = open("ledger", "w")
file.write("one\\n")
file.flush()
print("done", flush=True)
sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None
sys.exit(3)
"""


def test_it_ends_as_it_would_have_done(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    record_in(tmp_path, "whole")
    last = own_events(tmp_path / "whole.rdbg")[-1] + 1
    assert record_in(tmp_path, "killed", killed_at=last).status in KILLED

    planned = run_in(tmp_path, [sys.executable, "-m", "replaydbg", "resume", "killed.rdbg", "--plan", "--json"])
    resumed = resume_in(tmp_path, "killed")
    replayed = run_in(tmp_path, tool.replay(sys.executable, tmp_path / "killed-on.rdbg"))

    assert json.loads(planned.stdout)["event"] == last
    assert (resumed.status, resumed.stdout) == (3, b""), resumed
    assert (replayed.status, replayed.stdout) == (3, b"done\n"), replayed
    assert own_events(tmp_path / "killed-on.rdbg")[-1] + 1 == last
