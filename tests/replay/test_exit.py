"""A replay ends exactly as the program did: exit code, signal, traceback, handlers, late crossings."""

import os
import sys
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replay_cases import Case, cases
from tests.harness.replays import passed_on, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("exit"))
def test_end_replays(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("broken", ["program.py", "module.py"])
def test_a_syntax_error_shows_the_line_that_was_compiled(broken: str, tmp_path: Path) -> None:
    """The parser opens the file again to show the line; it has changed since."""
    recording, env = tmp_path / "r.rdbg", {**passed_on(), "PATH": os.defpath}
    (tmp_path / "program.py").write_text("import module\n")
    (tmp_path / broken).write_text("fine = 1\nthis one is not\n")

    recorded = run(tool.record(sys.executable, recording, ["program.py"]), cwd=tmp_path, env=env)
    (tmp_path / broken).write_text("fine = 1\nanother line\n")
    replayed = run(tool.replay(sys.executable, recording), cwd=tmp_path, env=env)

    assert "this one is not" in recorded.stderr
    assert recorded.stderr == replayed.stderr
    assert (recorded.status, replayed.status) == (1, 1)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="sys.remote_exec() is of CPython 3.14")
def test_nobody_runs_scripts_in_a_recorded_program(tmp_path: Path) -> None:
    recording, env = tmp_path / "r.rdbg", {**passed_on(), "PATH": os.defpath}
    (tmp_path / "script.py").write_text("print('from outside', flush=True)\n")
    (tmp_path / "program.py").write_text(
        "import os, sys\n"
        "try:\n"
        "    sys.remote_exec(os.getpid(), 'script.py')\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )

    recorded = run(tool.record(sys.executable, recording, ["program.py"]), cwd=tmp_path, env=env)
    replayed = run(tool.replay(sys.executable, recording), cwd=tmp_path, env=env)

    assert recorded.stdout == replayed.stdout == "Remote debugging is not enabled\n"
