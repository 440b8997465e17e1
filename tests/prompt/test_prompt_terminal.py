"""The debugger as a command: in a terminal, with Ctrl-C, and without one; and the commands that answer one question."""

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replaydbg.commands.completion.completer import complete
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.errors import Cancelled
from replaydbg.prompt.terminal import Interrupts, ProgressLine
from tests.harness.recording import record_file
from tests.harness.surroundings import without_steering
from tests.harness.typed import TRAVEL, Typed


def debug(recording: Path, *words: str, stdin: str = "", status: int | None = 0) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "replaydbg", "debug", str(recording), *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=without_steering(os.environ),
        cwd=recording.parent,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert status is None or done.returncode == status, done
    return done.stdout, done.stderr


def test_commands_come_from_options_files_and_stdin_in_turn(recordings: dict[str, Path], tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("# a comment\np 'two'\n\n")

    out, _ = debug(recordings["fails"], "-c", "p 'one'", "-x", str(script), "-c", "p 'three'", stdin="p 'four'\nq\np 5")

    assert re.findall(r"^'(\w+)'$", out, re.M) == ["one", "two", "three", "four"]
    assert "'5'" not in out


def test_batch_ends_by_itself_and_tells_how_the_last_command_went(recordings: dict[str, Path]) -> None:
    out, err = debug(recordings["fails"], "--batch", "-c", "nonsense", "-c", "p 1", stdin="p 2\n")
    assert "Unknown command 'nonsense'" in err
    assert out.endswith("1\n")

    debug(recordings["fails"], "--batch", "-c", "nonsense", status=1)
    _, err = debug(recordings["fails"], "-x", "/nowhere/at/all", status=2)
    assert "cannot be read" in err


def test_colours_come_only_where_they_are_wanted(recordings: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    plain, _ = debug(recordings["fails"], "--batch")
    assert "\x1b" not in plain

    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured, _ = debug(recordings["fails"], "--batch")
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == plain.split()


def command(recording: Path, name: str, *words: str, status: int = 0) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "replaydbg", name, str(recording), *words, "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done
    facts = json.loads(done.stdout)
    assert facts["schema_version"] == 2
    return facts


def test_why_as_a_command(recordings: dict[str, Path], there: str) -> None:
    told = command(recordings["fails"], "why", "started")
    assert (told["line"], told["events"][0]["callee"]) == (20, "time.time")
    again = command(recordings["fails"], "why", "n", "--at", there)
    assert again["is_argument"] is True
    assert command(recordings["fails"], "why", "nothing", status=2)["error"]["slug"] == "usage"
    assert command(recordings["fails"], "why", "results", "--frame", "9", status=2)["error"]["slug"] == "usage"
    assert command(recordings["fails"], "why", "results", "--at", "@x", status=2)["error"]["slug"] == "no-such-moment"


def test_watch_log_and_seek_as_commands(recordings: dict[str, Path]) -> None:
    told = command(recordings["fails"], "watch", "account.balance")
    assert [(each["line"], each["value"]) for each in told["changes"]] == [(23, "10"), (27, "7")]
    assert told["is_more"] is False
    told = command(recordings["fails"], "watch", "account.balance", "--limit", "1")
    assert (len(told["changes"]), told["is_more"]) == (1, True)
    told = command(recordings["fails"], "log", "ends_by_an_exception.py:12", "n", "--if", "n > 2")
    assert [each["text"] for each in told["lines"]] == ["3", "4"]
    told = command(recordings["fails"], "seek", told["lines"][0]["moment"])
    assert (told["stack"][0]["line"], told["stack"][1]["line"]) == (12, 22)
    assert told["locals"] == [{"name": "n", "type": "int", "text": "3", "parts": 0}]
    assert told["link"].startswith("rdbg://ends_by_an_exception@")


# ---- Ctrl-C, and a terminal ----


def test_progress_is_shown_only_when_it_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    err = io.StringIO()
    line = ProgressLine(err, lambda: None)

    line(WorkProgress("replaying", 0.5, 0.1))
    assert err.getvalue() == ""
    line(WorkProgress("replaying", 0.5, 0.3))
    line(WorkProgress("replaying", 0.6, 0.4))
    line.clear()
    assert err.getvalue() == "replaydbg: replaying ...\n"


def test_progress_that_is_not_on_a_terminal_takes_few_lines() -> None:
    """However many operations one command consists of."""
    err = io.StringIO()
    now = [100.0]
    line = ProgressLine(err, lambda: None, clock=lambda: now[0])

    for number in range(4000):
        now[0] = 100 + number / 100
        line(WorkProgress("replaying" if number % 3 else "searching", 0.5, 5.0))
        line.clear()
    assert err.getvalue() == "replaydbg: searching ...\nreplaydbg: replaying ...\n"

    now[0] = 200
    line(WorkProgress("replaying", 0.5, 5.0))
    assert err.getvalue().count("replaying") == 2


def test_completion_of_arguments(typed: Typed) -> None:
    def words(line: str) -> tuple[str, ...]:
        return complete(typed.prompt, line, len(line)).words

    assert words("reverse-f") == ("reverse-finish",)
    assert words("p resu") == ("results",)
    assert words("p account.b") == ("balance",)
    assert "@exc" in words("seek @e")
    assert "ends_by_an_exception.py:" in words("b ends")
    assert "twice" in words("b tw")
    assert "locals" in words("info lo")
    assert "RuntimeError" in words("catch Run")
    assert words("help longl") == ("longlist",)
    assert words("nonsense nothing_like_this") == ()


class Terminal:
    """A terminal in which the debugger runs."""

    def __init__(self, recording: Path, home: Path) -> None:
        self._ours, its = pty.openpty()
        env = without_steering(os.environ) | {"HOME": str(home), "XDG_STATE_HOME": str(home), "TERM": "xterm"}
        # A session of its own, whose terminal this is: so Ctrl-C is a signal.
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_A_SESSION, "debug", str(recording)], stdin=its, stdout=its, stderr=its, env=env
        )
        os.close(its)
        self.seen = ""

    def type(self, text: str, until: str) -> str:
        """Type `text`, and return the output until `until`, without colours."""
        os.write(self._ours, text.encode())
        return self.read(until)

    def read(self, until: str) -> str:
        seen = ""
        begun = len(self.seen)
        limit = time.monotonic() + 60
        while until not in seen:
            assert select.select([self._ours], [], [], max(0, limit - time.monotonic()))[0], (until, self.seen)
            try:
                self.seen += re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", os.read(self._ours, 65536).decode(errors="replace"))
            except OSError as error:
                raise AssertionError(f"the terminal was closed after {self.seen!r}") from error
            seen = self.seen[begun:]
        return seen

    def interrupt(self) -> str:
        """Press Ctrl-C, and return the output until the next prompt.

        Repeat it if nothing happens: the interpreter ignores a signal while readline processes a character.
        """
        os.write(self._ours, b"\x03")
        while not select.select([self._ours], [], [], 2)[0]:
            os.write(self._ours, b"\x03")
        return self.read("(replaydbg) ")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


_IN_A_SESSION = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from replaydbg.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def terminal(recordings: dict[str, Path], tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(recordings["long"], tmp_path)
    terminal.read("(replaydbg) ")
    yield terminal
    terminal.close()


def test_a_terminal_with_history_and_completion(terminal: Terminal, tmp_path: Path) -> None:
    assert "p total\r\n179994" in terminal.type("p to\t\n", "(replaydbg) ")
    assert "p total\r\n179994" in terminal.type("\x1b[A\n", "(replaydbg) ")
    terminal.type("no_such_th", "no_such_th")
    terminal.interrupt()
    assert "42" in terminal.type("p 6 * 7\n", "(replaydbg) ")
    terminal.type("\x04", "\n")

    assert terminal.process.wait(timeout=30) == 0
    assert "p 6 * 7" in (tmp_path / "replaydbg" / "history").read_text()


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "values_to_complete.py", tmp_path_factory.mktemp("values"), status=1)


def test_a_terminal_completes_python(values: Path, tmp_path: Path) -> None:
    terminal = Terminal(values, tmp_path)
    try:
        terminal.read("(replaydbg) ")
        assert "p account.balance\r\n10" in terminal.type("p account.bal\t\n", "(replaydbg) ")
        assert "p [account.name]\r\n['Ann']" in terminal.type("p [account.na\t]\n", "(replaydbg) ")
        assert "p table['name']\r\n1" in terminal.type("p table['nam\t\n", "(replaydbg) ")
        assert "p table['na me'].kind\r\n'record'" in terminal.type("p table['na \t.ki\t\n", "(replaydbg) ")
        assert "p len(table)\r\n10" in terminal.type("p le\t(tab\t)\n", "(replaydbg) ")
        # Of several words the common beginning is inserted, and a list follows.
        assert "balance  kind     name" in terminal.type("p account.\t\t", "(replaydbg) p account.")
    finally:
        terminal.close()


def test_a_terminal_survives_completions_that_take_too_long(values: Path, tmp_path: Path) -> None:
    terminal = Terminal(values, tmp_path)
    try:
        terminal.read("(replaydbg) ")
        shown = terminal.type("p endless.missing.\tx\n", "(replaydbg) ")
        assert "completing" not in shown
        assert shown.startswith("p endless.missing.x\r\n") or "p endless.missing.\x07x" in shown
        assert "42" in terminal.type("p 6 * 7\n", "(replaydbg) ")
        # Ctrl-C ends what takes long, and another one the line.
        terminal.type("p endless.missing.\t", "p endless.missing.")
        os.write(terminal._ours, b"\x03")
        terminal.read("\x07")
        terminal.interrupt()
        assert "56" in terminal.type("p 7 * 8\n", "(replaydbg) ")
    finally:
        terminal.close()


def test_when_ctrl_c_is_an_exception() -> None:
    interrupts = Interrupts()

    def read() -> str:
        signal.raise_signal(signal.SIGINT)
        return "a line"

    with interrupts.installed():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with interrupts.prompting():
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                interrupts.read(read)
            signal.raise_signal(signal.SIGINT)
            with interrupts.busy():
                signal.raise_signal(signal.SIGINT)
                with pytest.raises(Cancelled):
                    interrupts.check()


def test_ctrl_c_raises_nothing_in_what_readline_calls() -> None:
    """Readline drops exceptions; then no further Ctrl-C would have had an effect on the line."""
    interrupts = Interrupts()

    def complete() -> str:
        signal.raise_signal(signal.SIGINT)
        return "completed"

    def read() -> str:
        found = complete()
        signal.raise_signal(signal.SIGINT)
        return found

    interrupts.shield(complete)
    with interrupts.installed(), interrupts.prompting():
        assert interrupts.read(complete) == "completed"
        with pytest.raises(KeyboardInterrupt):
            interrupts.read(read)


def test_ctrl_c_gives_up_what_runs_and_comes_back(terminal: Terminal) -> None:
    # Copies of the process are asked for these values, which takes long.
    terminal.type("log long_loop.py:5 locals()['number']\n", "thread 0  3")
    shown = terminal.interrupt()

    assert shown.count("Cancelled.") == 1
    assert "42" in terminal.type("p 6 * 7\n", "(replaydbg) ")
    terminal.type("b grow if locals()['number'] == 59_999\n", "(replaydbg) ")
    terminal.type("start\n", "(replaydbg) ")
    terminal.type("c\n", "running")
    assert "Cancelled." in terminal.interrupt()
    assert "42" in terminal.type("p 6 * 7\n", "(replaydbg) ")
    terminal.type("q\n", "\n")
    assert terminal.process.wait(timeout=30) == 0
