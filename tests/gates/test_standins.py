"""C code that cannot be recorded: Python code runs in its place, or the recording ends there and reports it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("standins", "uvloop_loops"))
def test_a_loop_of_uvloop_is_asyncios_own(case: Case) -> None:
    pytest.importorskip("uvloop")

    case.check()


def test_the_recording_ends_before_gevent_begins(tmp_path: Path) -> None:
    pytest.importorskip("gevent")
    program = "import gevent; gevent.joinall([gevent.spawn(print, 'inside')]); print('done')"
    command = [sys.executable, "-m", "replaydbg", "record", "-o", str(tmp_path / "r.rdbg"), "-c", program]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout) == (0, "inside\ndone\n")
    assert "gevent, whose event loop waits in C" in done.stderr
