"""Memory that another process writes: unseen changes are noted, or reported where a replay diverges."""

import os
import sys
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

# The parent reads again and again while it computes, until the child has written: no gate sees anything between. In a
# replay it reads until it gives up. The sleep lets it compute first: from outside, nothing shows that it does.
_RACE = """import mmap, os, time
shared = mmap.mmap(-1, 100)
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, b"x")
    time.sleep(0.05)
    shared[0] = 1
    os._exit(0)
os.read(reading, 1)
for seen in range(200_000_000):
    if shared[0] or seen > REPLAYED:
        break
print("seen after", seen)
"""
_LARGE = """from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=65 << 20)
block.close()
block.unlink()
"""


def test_a_divergence_names_a_write_while_the_program_computed(tmp_path: Path) -> None:
    recorded = _record(tmp_path, _RACE.replace("REPLAYED", "20_000_000"))

    replayed = run(tool.replay(sys.executable, tmp_path / "r.rdbg"), cwd=tmp_path, env=_env())

    assert recorded.status == 0, recorded.stderr
    assert replayed.status == tool.DIVERGED
    assert "another process wrote into shared memory while the program computed" in replayed.stderr


def test_very_large_shared_memory_is_noted_and_takes_no_room(tmp_path: Path) -> None:
    recorded = _record(tmp_path, _LARGE)

    assert recorded.status == 0
    assert "shared memory of more than 64 MiB" in recorded.stderr
    assert (tmp_path / "r.rdbg").stat().st_size < 3_000_000


def _record(directory: Path, program: str) -> Outcome:
    (directory / "program.py").write_text(program)
    command = tool.record(sys.executable, directory / "r.rdbg", ["program.py"])
    return run([part for part in command if part != "-q"], cwd=directory, env=_env())


def _env() -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
