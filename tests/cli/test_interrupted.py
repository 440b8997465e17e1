"""A command that replays ends promptly when it is interrupted: no divergence, no traceback, nothing left running.

Ctrl-C at a terminal goes to the command and to its replay; a supervisor, or the end of a terminal, signals the command
alone.
"""

import os
import signal
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.record import record
from tests.harness.interrupted import Command, Seen, command
from tests.harness.process import run

pytestmark = pytest.mark.slow

PROMPTLY = 5.0
"""Seconds: a command that continued would take much longer."""

_LONG = """import sys, time
print("begun", flush=True)
def run():
    total = 0
    for number in range(12_000_000):
        total += number
    return total
begun = time.time()
run()
assert time.time() < begun or "passes" in sys.argv
"""

COMMANDS = {
    "replay": ("replay", "FAILED"),
    "replay to": ("replay", "--to", "LAST_EVENT", "FAILED"),
    "until outcome": ("replay", "--current-source", "--until-outcome", "FAILED"),
    "hits": ("hits", "FAILED"),
    "check": ("check", "FAILED"),
    "why": ("why", "FAILED", "begun"),
    "seek": ("seek", "FAILED", "@end"),
    "export": ("export", "FAILED", "begun", "-o", "FAILED.pkl"),
    "log": ("log", "FAILED", "long.py:6", "number"),
    "exceptions": ("exceptions", "FAILED"),
    "watch": ("watch", "FAILED", "begun"),
    "heap": ("heap", "FAILED"),
    "diff": ("diff", "FAILED", "0:1", "@end"),
    "bisect snapshots": ("bisect", "snapshots", "FAILED", "--bad", "begun"),
    "bisect recordings": ("bisect", "recordings", "PASSED", "FAILED"),
    "debug": ("debug", "FAILED"),
    "debug batch": ("debug", "FAILED", "--batch", "-c", "c", "-c", "p begun"),
    "tui": ("tui", "FAILED"),
    "hunt": ("hunt", "--until", "pass", "PROGRAM"),
    "doctor": ("doctor", "--trace", "PROGRAM", "passes"),
}
"""Words of each command that replays; the names of files are replaced by those of `Long`."""


class Long(NamedTuple):
    """A program that computes for more than a second in any replay, and recordings of it."""

    PROGRAM: Path
    FAILED: Path
    PASSED: Path
    LAST_EVENT: int
    """The event after its computation."""

    def words(self, name: str) -> list[str]:
        """Return the command line."""
        words = list(COMMANDS[name])
        for file, path in self._asdict().items():
            words = [word.replace(file, str(path)) for word in words]
        return words


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Long:
    """Record them."""
    directory = tmp_path_factory.mktemp("long")
    program = directory / "long.py"
    program.write_text(_LONG)
    failed = record([str(program)], output=directory / "failed.rdbg").path
    passed = record([str(program), "passes"], output=directory / "passed.rdbg").path
    with open_recording(failed) as recording:
        asked = [each.number for each in recording.events() if isinstance(each, Event) and each.gate == "time.time"]
    return Long(program, failed, passed, asked[1])


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command_that_replays(name: str, long: Long) -> None:
    with command(*long.words(name)) as running:
        _wait_until_replaying(running, name)
        began = time.monotonic()
        running.press()
        seen = running.end(began)

    _has_ended_by(seen, signal.SIGINT)


_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_ALONE = [
    *((name, each) for name in ("replay", "hits") for each in _SIGNALS),
    *zip(COMMANDS, cycle(_SIGNALS), strict=False),
]


@pytest.mark.parametrize(("name", "number"), dict.fromkeys(_ALONE))
def test_a_signal_for_the_command_alone_ends_its_replay(name: str, number: int, long: Long) -> None:
    with command(*long.words(name)) as running:
        _wait_until_replaying(running, name)
        began = time.monotonic()
        running.process.send_signal(number)
        seen = running.end(began)

    _has_ended_by(seen, number)


_INTERRUPTED_WHILE_IMPORTING = """\
import os, signal, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("name", ["replaydbg.cli.main", "replaydbg.launch.interruption", "replaydbg.cli.recordings.ls"])
@pytest.mark.parametrize("form", ["-m", "script"])
def test_ctrl_c_while_the_command_is_imported_leaves_no_traceback(tmp_path: Path, name: str, form: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(_INTERRUPTED_WHILE_IMPORTING.format(name=name))
    how = ["-m", "replaydbg"] if form == "-m" else ["-c", "from replaydbg.__main__ import run; raise SystemExit(run())"]
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = run([sys.executable, *how, "ls"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, timeout=60)

    assert (done.status, done.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize("name", ["replay", "hits", "check", "seek", "bisect recordings", "debug", "tui", "hunt"])
def test_a_second_ctrl_c_makes_no_mess(name: str, long: Long) -> None:
    with command(*long.words(name)) as running:
        _wait_until_replaying(running, name)
        began = time.monotonic()
        running.press(b"\x03\x03")
        running.press()
        seen = running.end(began)

    _has_ended_by(seen, signal.SIGINT)


@pytest.mark.parametrize("name", ["replay", "hits", "check", "seek", "bisect recordings"])
def test_a_killed_command_leaves_no_replay(name: str, long: Long) -> None:
    with command(*long.words(name)) as running:
        _wait_until_replaying(running, name)
        began = time.monotonic()
        running.process.kill()
        seen = running.end(began)

    assert seen.left == []


def _wait_until_replaying(running: Command, name: str) -> None:
    if name == "doctor":
        # Before that it records, and signals that end the program do not end the command.
        running.wait_until_printed("; replaying")
    running.wait_until_busy()


def _has_ended_by(seen: Seen, number: int) -> None:
    assert seen.left == []
    assert "Traceback" not in seen.text
    assert "diverged" not in seen.text
    assert seen.status == 128 + number, seen.text
    assert seen.text.rpartition("; replaying")[2].count("replaydbg:") <= 1
    assert seen.seconds < PROMPTLY
