"""A program that a signal ends has an end in the debugger and under the step clock, too, whoever sends the signal."""

import re
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from replaydbg.debugger import Session
from tests.harness.in_directory import record_in, tool_in
from tests.harness.replays import Outcome

pytestmark = pytest.mark.slow

_INTERRUPTIONS = {-signal.SIGINT, 128 + signal.SIGINT}
_INTERRUPTED = "x = 1\nraise KeyboardInterrupt\n"
_C_CODE = "x = 1\nimport ctypes, os, signal\nlibrary = ctypes.CDLL(None)\n"
_RAISES = "getattr(library, 'raise')"


class _Ending(NamedTuple):
    source: str
    status: int
    message: str


_BY_C_CODE = {
    "segmentation fault": _Ending("ctypes.string_at(0)", -11, "the program crashed: SIGSEGV (Segmentation fault)"),
    "trap": _Ending(f"{_RAISES}(5)", -5, "the program crashed: SIGTRAP (Trace/breakpoint trap)"),
    "abort": _Ending("library.abort()", -6, "the program crashed: SIGABRT (Aborted)"),
    "fatal error": _Ending(
        "import faulthandler; faulthandler._fatal_error_c_thread()", -6, "the program crashed: SIGABRT (Aborted)"
    ),
    "raise": _Ending(f"{_RAISES}(15)", -15, "the program was killed by SIGTERM (Terminated)"),
    "kill": _Ending("library.kill(os.getpid(), 15)", -15, "the program was killed by SIGTERM (Terminated)"),
    "SIGKILL": _Ending("library.kill(os.getpid(), 9)", -9, "the program was killed by SIGKILL (Killed)"),
    "default action": _Ending(
        f"library.signal(1, None); {_RAISES}(1)", -1, "the program was killed by SIGHUP (Hangup)"
    ),
    "reported": _Ending(
        "import faulthandler; faulthandler.enable(); ctypes.string_at(0)",
        -11,
        "the program crashed: SIGSEGV (Segmentation fault)",
    ),
}


@pytest.mark.parametrize("name", _BY_C_CODE)
def test_c_code_ends_it(name: str, tmp_path: Path) -> None:
    ending = _BY_C_CODE[name]
    (tmp_path / "program.py").write_text(_C_CODE + ending.source)
    recorded = record_in(tmp_path, "program.py")

    replayed = tool_in(tmp_path, "replay", "r.rdbg")
    hits = tool_in(tmp_path, "hits", "r.rdbg")

    assert {recorded.status, replayed.status} <= {ending.status, 128 - ending.status}
    assert hits.status == 0, hits.stderr
    assert _own_hits(hits, "program.py") == [1, 2, 3, 4]
    with Session(tmp_path / "r.rdbg") as session:
        assert session.here.message == ending.message
        _is_answered_everywhere(session)


@pytest.mark.parametrize("argv", [["-c", _INTERRUPTED], ["-m", "program"], ["program"], ["program/__main__.py"]])
def test_the_interpreter_ends_itself_after_a_keyboard_interrupt(argv: list[str], tmp_path: Path) -> None:
    """It does so for all but a script, by SIGINT, so that a shell knows."""
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__main__.py").write_text(_INTERRUPTED)
    recorded = record_in(tmp_path, *argv)

    replayed = tool_in(tmp_path, "replay", "r.rdbg")
    hits = tool_in(tmp_path, "hits", "r.rdbg")

    assert {recorded.status, replayed.status} <= _INTERRUPTIONS
    assert hits.status == 0, hits.stderr
    assert _own_hits(hits, "<string>" if argv[0] == "-c" else "__main__.py")[-1] == 2
    with Session(tmp_path / "r.rdbg") as session:
        assert session.here.message == "KeyboardInterrupt"
        assert session.here.top is not None
        assert session.here.top.line == 2
        _is_answered_everywhere(session)


def test_an_interrupt_that_is_sent_ends_a_command(tmp_path: Path) -> None:
    # It waits for the signal that it has asked for; the time only bounds a failure.
    program = "x = 1\nimport subprocess, time\nsubprocess.Popen(['sh', '-c', 'kill -INT $PPID'])\ntime.sleep(60)\n"
    recorded = record_in(tmp_path, "-c", program)

    hits = tool_in(tmp_path, "hits", "r.rdbg")

    assert recorded.status in _INTERRUPTIONS
    assert hits.status == 0, hits.stderr
    with Session(tmp_path / "r.rdbg") as session:
        assert session.here.message == "KeyboardInterrupt"


def test_the_outcome_of_an_interrupted_command_is_known(tmp_path: Path) -> None:
    record_in(tmp_path, "-c", _INTERRUPTED)

    checked = tool_in(tmp_path, "check", "r.rdbg")

    assert "KeyboardInterrupt" in checked.stdout + checked.stderr


def _is_answered_everywhere(session: Session) -> None:
    value = session.ask.evaluate("x").value
    assert value is not None
    assert value.text == "1"
    for count in (1, session.index.total // 2, session.index.total):
        assert session.seek(count).count == count


def _own_hits(hits: Outcome, file: str) -> list[int]:
    found = re.findall(rf"^\d+\t.*{re.escape(file)}:(\d+)\t<module>$", hits.stdout, re.MULTILINE)
    return [int(line) for line in found]
