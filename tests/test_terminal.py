"""Programs that talk to a terminal: input() reads the line in C there, and streams are buffered by lines."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

from tests.harness import tool

_ASKS = """
import sys
name = input("name? ")
print("hello", name, sys.stdin.isatty(), sys.stdout.isatty())
try:
    input("more? ")
except EOFError:
    print("no more")
"""


def test_input_at_a_terminal_replays_without_one(tmp_path: Path) -> None:
    program, recording = tmp_path / "asks.py", tmp_path / "r.rdbg"
    program.write_text(_ASKS)
    ours, its = pty.openpty()
    command = tool.record(sys.executable, recording, [str(program)])

    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its)
    os.close(its)
    try:
        shown = _read_until(ours, b"name? ")
        os.write(ours, b"Ada\n")
        shown += _read_until(ours, b"more? ")
        os.write(ours, b"\x04")
        shown += _read_until(ours, b"no more\r\n")
        status = process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    program.unlink()
    replayed = subprocess.run(
        tool.replay(sys.executable, recording), stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
    )

    assert status == 0
    assert b"hello Ada True True" in shown
    assert replayed.returncode == 0
    assert replayed.stdout == b"hello Ada True True\nno more\n"
    # The interpreter asks on stderr. The terminal itself showed what was typed; the replay shows it in its place.
    assert replayed.stderr == b"name? Ada\nmore? \n"


def _read_until(fd: int, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        ready, _, _ = select.select([fd], [], [], 30)
        assert ready, f"nothing more came after {seen!r}"
        try:
            piece = os.read(fd, 1000)
        except OSError as error:
            raise AssertionError(f"the terminal was closed after {seen!r}") from error
        seen += piece
    return seen
