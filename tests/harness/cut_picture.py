"""The documentation's picture of a cut: three banks that pass money on, drawn by `cut --svg` from a recording.

`python -m tests.harness.cut_picture` draws it anew.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from pathlib import Path

from replaydbg.cli.main import main as replaydbg
from tests.harness.recorded_group import record_program
from tests.harness.screens import PICTURES

PICTURE = PICTURES / "cut.svg"

BANKS = """\
import os

first, second, last = os.pipe(), os.pipe(), os.pipe()


def bank(source, target):
    for _ in range(2):
        amount = int(os.read(source, 8))
        os.write(target, b"%07d\\n" % (amount - 1))
    os._exit(0)


if not os.fork():
    bank(first[0], second[1])
if not os.fork():
    bank(second[0], last[1])
os.write(first[1], b"%07d\\n" % 50)
os.write(first[1], b"%07d\\n" % 30)
total = 0
for _ in range(2):
    total += int(os.read(last[0], 8))
os.wait()
os.wait()
print(total)
"""
"""Each amount goes from the first process to the second, from there to the third, and back; each takes a fee."""


def draw(folder: Path, picture: Path) -> None:
    """Record the program in a directory, and draw the cut in which one message is in flight on each of two channels."""
    group = record_program(folder, BANKS, name="banks.py")
    sent = {process: _writes(group, process) for process in (1, 2, 3)}
    # The first bank has sent both amounts, the second one has passed one on, and the third one has received nothing.
    moments = [f"1@{sent[1][1]}", f"2@{sent[2][0]}", f"3@{sent[3][0] - 2}"]
    _run("cut", str(group), *moments, "--svg", str(picture))
    picture.chmod(0o644)


def _writes(group: Path, process: int) -> list[int]:
    """Return the events at which a process wrote to a pipe."""
    lines = _run("events", str(group / f"{process}.rdbg"), "--call", "posix.write").splitlines()
    return [int(line.split()[0]) for line in lines]


def _run(*words: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = replaydbg(list(words))
    assert code == 0, printed.getvalue()
    return printed.getvalue()


def normal(svg: str) -> list[str]:
    """Return what all drawings of the program have in common: the numbers of events depend on the interpreter.

    So does the order of what was not ordered by messages, and with it all places.
    """
    return sorted(re.sub(r"[0-9][0-9,.]*", "0", line) for line in re.split(r"\. |\.</|\n", svg))


def main() -> None:
    """Draw the picture."""
    with tempfile.TemporaryDirectory() as folder:
        draw(Path(folder), PICTURE)


if __name__ == "__main__":
    main()
