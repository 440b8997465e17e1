"""The shell in which the commands of a page run: a directory, a home and a store of their own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.surroundings import without_steering
from tests.pages.blocks import ROOT
from tests.pages.comparison import without_progress
from tests.pages.standin import make_index

LONGEST = 300.0
"""Seconds that one command may take."""
_PROMPT = re.compile(r"(?:^|\n|\r)(?:\x1b\[\?\d+h)?(\(replaydbg(?: \d+)?\)) $")
_ROWS, _COLUMNS = 48, 120
HOME = "/home/ann"
"""The home of the pages' reader."""
_PYTHON3 = """#!/bin/sh
if [ "$1 $2" = "-m pip" ]; then
    [ -x {top}/env/bin/python ] || {python} -m venv {top}/env
    exec {top}/env/bin/python "$@"
fi
exec {python} "$@"
"""
"""A system's Python, into whose environment a page may install something."""
_PIP = """#!/bin/sh
exec {top}/bin/python3 -m pip "$@"
"""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    status: int
    output: str
    """Both streams, in the order in which they were written."""


@dataclass(slots=True)
class Shell:
    """Runs commands in the directory of a page."""

    top: Path
    """What is below is the page's alone."""
    background: list[subprocess.Popen[bytes]] = field(default_factory=list)
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("home/project", "tmp", "bin"):
            (self.top / name).mkdir(parents=True)
        for name, text in (("python3", _PYTHON3), ("pip", _PIP)):
            (self.top / "bin" / name).write_text(text.format(top=self.top, python=sys.executable))
            (self.top / "bin" / name).chmod(0o755)
        (self.top / "home" / ".gitconfig").write_text(
            "[user]\nname = Ann\nemail = ann@example.org\n[init]\ndefaultBranch = main\n"
        )
        kept = {
            name: value for name, value in without_steering(os.environ).items() if name.startswith(("PYTHON", "LD_"))
        }
        self.environment = kept | make_index(self.top / "index") | {
            "HOME": str(self.top / "home"),
            "LANG": "C.UTF-8",
            "REPOSITORY": str(ROOT),
            "PATH": f"{self.work}/bin:{self.top}/bin:{Path(sys.executable).parent}:{os.defpath}",
            "TMPDIR": str(self.top / "tmp"),
            "USER": "ann",
        }  # fmt: skip

    @property
    def work(self) -> Path:
        """The directory of the page's files."""
        return self.top / "home" / "project"

    def run(self, command: str) -> Done:
        """Run a command to its end, at a terminal on which nobody types."""
        assert not re.search(r"(?<![\w./])python -m pip", command), (
            "that would install into the environment of the tests"
        )
        if command.startswith("pytest "):
            command = f"set -o pipefail; {command} | cat"  # as in CI
        terminal, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        running = subprocess.Popen(
            ["bash", "-c", self.here(command)], cwd=self.work,
            env=self.environment | {"TERM": "xterm-256color"}, stdin=subprocess.DEVNULL,
            stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.background.append(running)
        begin, received = time.monotonic(), b""
        while some := _some_of(terminal, running):
            received += some
            assert time.monotonic() < begin + LONGEST, f"{command} takes too long:\n{received.decode(errors='replace')}"
        os.close(terminal)
        status = running.wait()
        return Done(
            status if status >= 0 else 128 - status, self.there(without_progress(received.decode(errors="replace")))
        )

    def here(self, command: str) -> str:
        """Return a command of a page with the home that the shell has in place of the page's."""
        return command.replace(HOME, str(self.top / "home"))

    def there(self, output: str) -> str:
        """Return an output with the home of the page's reader, and the usual directory of temporary files."""
        return output.replace(str(self.top / "home"), HOME).replace(str(self.top / "tmp"), "/tmp")

    def start(self, command: str) -> None:
        """Start a command that goes on while the page does."""
        words = ["bash", "-c", f"exec {self.here(command)}"]
        with (self.top / "background.txt").open("wb") as out:
            started = subprocess.Popen(
                words, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.background.append(started)
        self.environment["BACKGROUND"] = str(started.pid)

    def close(self) -> None:
        """End what still runs."""
        for each in self.background:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def _some_of(terminal: int, running: subprocess.Popen[bytes]) -> bytes:
    """Return what comes next from a terminal; empty: the command has ended, even if its children hold the terminal."""
    while not select.select([terminal], [], [], 0.05)[0]:
        if running.poll() is not None and not select.select([terminal], [], [], 0)[0]:
            return b""
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody holds it
        return b""


class Conversation:
    """A command at a terminal that reads lines at a prompt, or keys."""

    def __init__(self, shell: Shell, command: str, *, columns: int = _COLUMNS, is_coloured: bool = False) -> None:
        """Start it; a terminal of another kind than the simplest one is needed for colours."""
        self.command, self._shell = command, shell
        self._terminal, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
        kind = "xterm-256color" if is_coloured or command.startswith("replaydbg tui") else "dumb"
        self._process = subprocess.Popen(
            ["bash", "-c", shell.here(command)], cwd=shell.work, env=shell.environment | {"TERM": kind},
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.prompt = ""
        """The prompt that is shown; empty: the command has ended."""

    def read_raw(self, until: re.Pattern[str] = _PROMPT) -> str:
        """Return what is printed up to the next prompt, or the end."""
        begin, received, text = time.monotonic(), b"", ""
        while time.monotonic() < begin + LONGEST:
            if not select.select([self._terminal], [], [], 1)[0]:
                continue
            try:
                some = os.read(self._terminal, 65536)
            except OSError:  # the command has closed its terminal
                some = b""
            received += some
            text = received.decode(errors="replace")
            found = until.search(text)
            if found is not None or not some:
                self.prompt = found[1] if found is not None and found.groups() else ""
                return text[: found.start()] if found is not None else text
        raise AssertionError(f"{self.command}: no prompt after {text!r}")

    def read(self, until: re.Pattern[str] = _PROMPT) -> str:
        """Return the same as a terminal shows it, without colours."""
        return self._shell.there(without_progress(self.read_raw(until)))

    def type_raw(self, line: str) -> str:
        """Type a line, and return what is printed after it."""
        os.write(self._terminal, f"{line}\n".encode())
        # The terminal repeats what is typed.
        return self.read_raw().partition("\n")[2]

    def type(self, line: str) -> str:
        """Return the same as a terminal shows it, without colours."""
        return self._shell.there(without_progress(self.type_raw(self._shell.here(line))))

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._terminal, key.encode())

    def end(self) -> int:
        """Close the terminal's input, and return the exit code."""
        if self.prompt:
            os.write(self._terminal, b"\x04")
        while self.read(re.compile("(?!)")):
            pass
        status = self._process.wait(timeout=LONGEST)
        os.close(self._terminal)
        return status
