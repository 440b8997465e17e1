"""Recordings of groups that the tests of the debugger share: small programs whose messages have one possible order."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.harness import tool
from tests.harness.children import CHILDREN, completed
from tests.harness.process import run

BANK = """\
import os

asked, ask = os.pipe()
answered, answer = os.pipe()


def bank():
    balance = 100
    for _ in range(3):
        amount = int(os.read(asked, 8))
        balance -= amount
        os.write(answer, b"%07d\\n" % balance)


if not os.fork():
    bank()
    os._exit(0)
total = 0
for amount in (10, 20, 30):
    os.write(ask, b"%07d\\n" % amount)
    reply = os.read(answered, 8)
    total += int(reply)
os.wait()
print(total)
"""
"""A parent that asks its child three times."""

ANSWERS, READS_REPLY, ADDS = 12, 21, 22
"""Lines of it."""


def record_program(tmp_path: Path, source: str, *, name: str = "prog.py", options: Sequence[str] = CHILDREN) -> Path:
    """Record a program with the children that it forks; return the directory of the group when all are sealed.

    With `PROGRAMS` as options, those that it starts are recorded, too.
    """
    (tmp_path / name).write_text(source)
    command = tool.record(sys.executable, tmp_path / "made", [name], options=options)
    done = run(command, cwd=tmp_path, env=dict(os.environ), timeout=100)
    assert done.status == 0, done.stderr
    completed(tmp_path / "made.rdbgs")
    return tmp_path / "made.rdbgs"
