"""An interpreter that was linked for fixed addresses, as Debian's and Ubuntu's are, has its heap below 4 GiB.

There an address is as small as a number that a program may count to. A replay must not take one for the other when it
looks for the place of a signal in pure computation.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replays import passed_on, run

PYTHON = Path(f"/usr/bin/python3.{sys.version_info[1]}")
"""The distribution's interpreter of this version."""
_FIXED = 2
"""`ET_EXEC` of elf.h."""
# `threading` counts its threads with an iterator that refers to an object of the heap, and the loop can reach it.
PROGRAM = """import signal, threading
caught = []
def handler(number, frame):
    caught.append(rounds)
unused = threading.Thread(target=handler)
signal.signal(signal.SIGALRM, handler)
rounds = 0
signal.setitimer(signal.ITIMER_REAL, 0.03)
while not caught:
    rounds += 1
print(rounds, caught)
"""


def _is_fixed(python: Path) -> bool:
    if not python.is_file():
        return False
    magic, kind = struct.unpack("<4s12xH", python.read_bytes()[:18])
    return bool(magic == b"\x7fELF" and kind == _FIXED)


def test_a_signal_comes_in_the_same_round(tmp_path: Path) -> None:
    if not _is_fixed(PYTHON):
        pytest.skip(f"there is no {PYTHON} that was linked for fixed addresses")
    (tmp_path / "prog.py").write_text(PROGRAM)
    env = {**passed_on(), "HOME": str(tmp_path), "PATH": os.defpath}
    recording = tmp_path / "a.rdbg"

    recorded = run(tool.record(sys.executable, recording, [str(PYTHON), "prog.py"]), cwd=tmp_path, env=env)
    replayed = [run(tool.replay(sys.executable, recording), cwd=tmp_path, env=env) for _ in range(2)]

    assert recorded.status == 0, recorded
    assert [each.stdout for each in replayed] == [recorded.stdout] * 2
    assert [each.status for each in replayed] == [0, 0]
