"""A hook that fails stops the resumption with a sentence that names it."""

import re
import sys
from pathlib import Path

import pytest

from tests.harness.process import Finished
from tests.resume.going_on import KILLED, record_in, run_in

pytestmark = pytest.mark.slow

_PROGRAM = """
import os, signal, socket
listening = socket.create_server(("127.0.0.1", 0))
os.mkdir("made")
os.kill(os.getpid(), signal.SIGKILL)
"""


_WAITS = """import os, signal, threading, time
thread = threading.Thread(target=time.sleep, args=(55.5,), daemon=True)
thread.start()
time.sleep(0.1)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a recording of the program, and with an installed package that has hooks in `shop.py`."""
    (tmp_path / "program.py").write_text(_PROGRAM)
    assert record_in(tmp_path, "killed").status in KILLED
    facts = tmp_path / "packages" / "shop-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[replaydbg.resume]\nshop = shop\n")
    return tmp_path


def test_a_descriptor_that_is_not_open(folder: Path) -> None:
    refused = _resumed(folder, "def reopen(resource):\n    return 9999\n")

    _assert_refused(refused, "reopen of shop returned 9999, which is not an open descriptor, for descriptor ")


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("def reopen(resource):\n    raise SystemExit(3)\n", "reopen of shop raised SystemExit: 3"),
        ("raise SystemExit(3)\n", "the hook shop cannot be loaded: SystemExit: 3"),
    ],
)
def test_a_hook_that_exits(module: str, reason: str, folder: Path) -> None:
    _assert_refused(_resumed(folder, module), reason)


def test_compensate_that_exits(folder: Path) -> None:
    refused = _resumed(folder, "def compensate(acts):\n    raise SystemExit(3)\n", "--at=1")

    _assert_refused(refused, "compensate of shop raised SystemExit: 3")


def test_settle_gets_the_number_of_a_signal(folder: Path) -> None:
    """Python passes a member of an enumeration, which is an argument like any other number."""
    refused = _resumed(folder, "def settle(call):\n    raise SystemExit(call.args[1:])\n", "--plan")

    _assert_refused(refused, "settle of shop raised SystemExit: (9,)")


def test_the_plan_shows_what_threads_wait_for(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_WAITS)
    assert record_in(tmp_path, "killed").status in KILLED

    planned = run_in(tmp_path, [sys.executable, "-m", "replaydbg", "resume", "--plan", "killed.rdbg"]).stdout.decode()

    assert "time.sleep(55.5): repeat" in planned
    assert re.search(r"posix\.kill\([0-9]+, 9\): not known", planned), planned


def _resumed(folder: Path, module: str, *more: str) -> Finished:
    (folder / "packages" / "shop.py").write_text(module)
    words = ["env", f"PYTHONPATH={folder / 'packages'}", sys.executable, "-m", "replaydbg", "resume"]
    return run_in(folder, [*words, *more, "killed.rdbg"])


def _assert_refused(refused: Finished, reason: str) -> None:
    assert refused.status == 2, refused
    assert f"replaydbg: Cannot resume 'killed.rdbg': {reason}" in refused.stderr.decode()
