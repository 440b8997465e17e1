"""The launcher forwards a signal that a supervisor sends only to it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.surroundings import without_steering

pytestmark = pytest.mark.slow

PROGRAM = """import os, signal, sys
ended = []
signal.signal(signal.SIGCHLD, lambda *_: ended.append(os.wait()))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
if os.fork() == 0:
    os._exit(0)
while not ended:
    signal.pause()
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_a_program_whose_children_have_ended_gets_it(tmp_path: Path) -> None:
    """It handles a signal for each of them, which the launcher does not take for the one that it got itself."""
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, "-m", "replaydbg", "record", "-q", "program.py"]
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}
    with subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.PIPE) as recorder:
        assert recorder.stdout is not None and recorder.stdout.readline() == b"ready\n"

        recorder.send_signal(signal.SIGTERM)

        try:
            assert recorder.wait(30) == 7
        finally:
            if recorder.poll() is None:
                recorder.send_signal(signal.SIGTERM)  # the second one is forwarded in any case
