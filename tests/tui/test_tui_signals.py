"""A signal ends the terminal UI, whatever it shows: nothing is left behind, and the terminal is as it was."""

import re
import signal
import sys
from pathlib import Path

import pytest

from tests.harness.pseudo_terminal import PseudoTerminal, plain_text
from tests.harness.waiting import wait_until
from tests.monkey import visit as visits
from tests.monkey.recordings import RECORDINGS

pytestmark = pytest.mark.slow

PATIENCE = 60.0
READING = """
import sys
from replaydbg import native
from replaydbg.cli.exploring import tui
from replaydbg.cli.main import main
from replaydbg.errors import NotBuilt

def check_core():
    raise NotBuilt("not built here")

tui.check_core = check_core
sys.exit(main(["tui", sys.argv[1]]))
"""
OPENED = visits._OPENED.pattern


def opened(what: str, folder: Path) -> PseudoTerminal:
    """Return a terminal in which the UI shows something."""
    words = RECORDINGS["pair" if what == "pair" else "loop"](folder)
    (folder / "reading.py").write_text(READING)
    command = {
        "recording": [sys.executable, "-m", "replaydbg", "tui", *words],
        "pair": [sys.executable, "-m", "replaydbg", "tui", *words],
        "list": [sys.executable, "-m", "replaydbg", "tui"],
        "reading": [sys.executable, "reading.py", *words],
    }[what]
    terminal = PseudoTerminal(command, cwd=folder, environ=visits._environ(folder))
    sign = re.compile({"list": "Recordings", "reading": "not built here"}.get(what, OPENED))
    assert terminal.wait_for(lambda seen: sign.search(plain_text(seen)), PATIENCE)
    terminal.drain(0.5)
    return terminal


@pytest.mark.parametrize("what", ["recording", "pair", "list", "reading"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.timeout(300)
def test_a_signal_ends_it(what: str, number: signal.Signals, tmp_path: Path) -> None:
    terminal = opened(what, tmp_path)
    try:
        mine = visits._descendants(terminal.process.pid)
        terminal.process.send_signal(number)
        wait_until(lambda: terminal.read(0.05) == b"" and terminal.is_over, PATIENCE)

        assert terminal.process.returncode == 128 + number
        assert terminal.is_as_before
        assert b"\x1b[?1049l" in terminal.output  # the screen from before is shown
        wait_until(lambda: not [each for each in mine if visits._is_alive(*each)])
    finally:
        terminal.close()


@pytest.mark.parametrize("what", ["recording", "pair", "list", "reading"])
@pytest.mark.timeout(300)
def test_a_terminal_that_is_closed_ends_it(what: str, tmp_path: Path) -> None:
    """It draws all the time, and its output goes nowhere: see tui/apps/ending_signals.py."""
    terminal = opened(what, tmp_path)
    try:
        mine = visits._descendants(terminal.process.pid)
        terminal.send(b"nsNS" * 200)
        terminal.hang_up()

        assert terminal.process.wait(PATIENCE) == 129
        wait_until(lambda: not [each for each in mine if visits._is_alive(*each)])
    finally:
        terminal.close()
