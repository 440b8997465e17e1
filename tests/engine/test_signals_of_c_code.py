"""Signals that C code of the program sends to its own process, where the program handles them."""

import signal
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from tests.harness.in_directory import record_in, tool_in

pytestmark = pytest.mark.slow

_C_CODE = "x = 1\nimport ctypes, os, signal\nlibrary = ctypes.CDLL(None)\n"
_RAISES = "getattr(library, 'raise')"


def test_a_signal_whose_handler_is_due_does_not_end_it(tmp_path: Path) -> None:
    program = f"signal.signal(10, lambda *_: None)\n{_RAISES}(10)\nctypes.string_at(0)\n"
    (tmp_path / "program.py").write_text(_C_CODE + program)
    record_in(tmp_path, "program.py")

    replayed = tool_in(tmp_path, "replay", "r.rdbg")

    assert replayed.status in (-signal.SIGSEGV, 128 + signal.SIGSEGV), replayed.stderr


def test_c_code_sends_a_signal_in_a_copy_of_the_first_process_too(tmp_path: Path) -> None:
    """The filter of system calls knows the number of the first one only."""
    program = "signal.signal(10, lambda *_: seen.append(1))\nseen = []\nlibrary.kill(os.getpid(), 10)\n"
    program += f"{_RAISES}(10)\nend = 1\n"
    (tmp_path / "program.py").write_text(_C_CODE + program)
    record_in(tmp_path, "program.py")

    with Session(tmp_path / "r.rdbg") as session:
        total = session.index.total
        session.seek(1)
        session.seek(session.index.end)
        value = session.ask.evaluate("len(seen)").value

        assert session.index.total == total
        assert value is not None
        assert value.text == "2"
