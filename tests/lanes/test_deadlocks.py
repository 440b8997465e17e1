"""A recording of a program that was ended because all of its threads waited replays to that end."""

import os
import sys
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.process import run
from tests.harness.surroundings import without_steering

DEADLOCK = 5


@pytest.mark.slow
@pytest.mark.parametrize("chaos", [(), ("--chaos", "3")], ids=["plain", "chaos"])
def test_a_deadlock_replays(chaos: tuple[str, ...], tmp_path: Path) -> None:
    text = """import threading
one, other = threading.Lock(), threading.Lock()
both = threading.Barrier(2)
def work(first, second):
    with first:
        both.wait()
        with second:
            pass
threads = [threading.Thread(target=work, args=each) for each in ((one, other), (other, one))]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    (tmp_path / "program.py").write_text(text)
    env = without_steering(os.environ) | {"REPLAYDBG_TEST_STRICT": "1"}
    options = ["--on-deadlock", "stop", *chaos]
    recorded = run(
        tool.record(sys.executable, Path("one.rdbg"), ["program.py"], options), cwd=tmp_path, env=env, timeout=60.0
    )

    replayed = run(tool.replay(sys.executable, Path("one.rdbg")), cwd=tmp_path, env=env, timeout=60.0)

    assert recorded.status == replayed.status == DEADLOCK, replayed
