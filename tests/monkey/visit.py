"""One visit: the terminal UI is opened in a terminal, and the monkey plays with it until its time is over."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tests.harness.pseudo_terminal import PseudoTerminal, plain_text
from tests.harness.surroundings import without_steering
from tests.harness.waiting import process_fields
from tests.monkey.actions import ESCAPE, USUAL, Monkey
from tests.monkey.memory import growth, open_files, resident

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds after which a screen that does not answer is dead, on a machine with other load."""

AT_ONCE = (5, 40)
"""Number of actions between two looks at the screen."""

REMEMBERED = 400
"""Number of actions that are printed with a failure."""

_ENDINGS: dict[bytes | signal.Signals, tuple[int, ...]] = {
    b"q": (0,),
    b"\x03": (0, -signal.SIGINT),  # the second one may come when the terminal makes a signal of it again
    signal.SIGTERM: (143,),
    signal.SIGHUP: (129,),
    b"": (129,),
}
"""How a visit ends, and the exit codes that belong to it; no key: the terminal is closed."""

_OPENED = re.compile(r"event [\d,]+ / [\d,]+ ")
"""The last line of the timeline, which needs a position."""

_HELP = re.compile(r"lists the commands|Two recordings side by side")
"""In the help of one recording, and of two."""

_LEFT = (0,)
"""Exit codes if a random key or line ended it."""


class MonkeyFound(Exception):
    """The terminal UI is not as it must be; the message has the finding."""


@dataclass(slots=True)
class Visit:
    """What happened in a visit."""

    name: str
    options: tuple[str, ...]
    actions: int = 0
    looks: int = 0
    resident: list[int] = field(default_factory=list)
    """Bytes, at each look."""
    files: list[int] = field(default_factory=list)
    """Open files, at each look."""
    longest: float = 0.0
    """Seconds until the screen answered, at most."""


def visit(seed: object, name: str, words: Sequence[str], seconds: float, folder: Path) -> Visit:
    """Play with `replaydbg tui *words` in `folder`. Raises MonkeyFound."""
    draw = random.Random(f"visit {seed}")
    options = _options(draw)
    done = Visit(name, options)
    report = folder / "accidents.txt"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.monkey.player", str(report), *options, *words]
    terminal = PseudoTerminal(command, cwd=folder, environ=_environ(folder), size=USUAL)
    last: deque[str] = deque(maxlen=REMEMBERED)
    try:
        _play(terminal, Monkey(seed), done, last, draw, seconds, report)
        if not terminal.is_over:
            _end(terminal, draw)
        elif terminal.process.returncode not in _LEFT:
            raise MonkeyFound(f"it ended with {terminal.process.returncode}")
        if not terminal.is_as_before:
            raise MonkeyFound("the terminal has other settings than before")
        _check(done, report)
    except MonkeyFound as found:
        terminal.drain(0.5)
        shown = plain_text(bytes(terminal.output[-6000:]))
        raise MonkeyFound(
            f"{found}\noptions: {options}\nlast actions: {' '.join(last)}\nlast output: {shown}"
        ) from None
    finally:
        terminal.close()
    return done


def _options(draw: random.Random) -> tuple[str, ...]:
    return draw.choice(((), (), (), ("--theme", "light"), ("--ascii",)))


def _environ(folder: Path) -> dict[str, str]:
    kept = without_steering(os.environ)
    own = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    path = os.pathsep.join(filter(None, (str(ROOT), kept.get("PYTHONPATH", ""))))
    return kept | own | {"REPLAYDBG_STORE": str(folder / "store"), "PYTHONPATH": path}


def _play(
    terminal: PseudoTerminal,
    monkey: Monkey,
    done: Visit,
    last: deque[str],
    draw: random.Random,
    seconds: float,
    report: Path,
) -> None:
    # Before that, Escape would give up opening it.
    if not terminal.wait_for(lambda seen: _OPENED.search(plain_text(seen)), PATIENCE) and not terminal.is_over:
        raise MonkeyFound(f"it did not open within {PATIENCE:g} s")
    actions = monkey.actions()
    until = time.monotonic() + seconds
    while time.monotonic() < until and not terminal.is_over:
        for action in islice(actions, draw.randint(*AT_ONCE)):
            last.append(str(action))
            if action.data:
                terminal.send(action.data)
            else:
                terminal.resize(*action.size)
            terminal.drain(action.pause)
            done.actions += 1
        _look(terminal, done, report)
        last.append("<look>")
        _check(done, report)


def _look(terminal: PseudoTerminal, done: Visit, report: Path) -> None:
    """Close what is open, ask for the help, and measure. Raises MonkeyFound if nothing comes."""
    began = time.monotonic()
    while not _answers(terminal):
        if terminal.is_over:
            return
        if time.monotonic() > began + PATIENCE:
            terminal.process.send_signal(signal.SIGUSR1)
            terminal.drain(2.0)
            tasks = report.read_text(encoding="utf-8") if report.exists() else ""
            raise MonkeyFound(f"the screen is dead: no help within {PATIENCE:g} s\n{tasks}")
    done.longest = max(done.longest, time.monotonic() - began)
    terminal.send(ESCAPE)
    terminal.drain(0.2)
    done.looks += 1
    done.resident.append(resident(terminal.process.pid))
    done.files.append(open_files(terminal.process.pid))


def _answers(terminal: PseudoTerminal) -> bool:
    """Whether the help opens. Escape closes what is open; it is a key of its own only if no other one follows soon."""
    width, height = USUAL
    terminal.resize(width + 1, height)
    for _ in range(3):
        terminal.send(ESCAPE)
        terminal.drain(0.15)
    terminal.resize(width, height)
    terminal.send(b"?")
    return bool(terminal.wait_for(lambda seen: _HELP.search(plain_text(seen)), 5.0))


def _check(done: Visit, report: Path) -> None:
    if report.exists():
        raise MonkeyFound(report.read_text(encoding="utf-8"))
    if found := growth(done.resident):
        raise MonkeyFound(found)


def _end(terminal: PseudoTerminal, draw: random.Random) -> None:
    """Leave in one of the ways that there are. Raises MonkeyFound if it does not end, or leaves processes behind."""
    mine = _descendants(terminal.process.pid)
    how = draw.choice(list(_ENDINGS))
    if isinstance(how, signal.Signals):
        terminal.process.send_signal(how)
    elif not how:
        # It is in the middle of drawing.
        terminal.send(b"nsNS" * 20)
        terminal.hang_up()
    until = time.monotonic() + PATIENCE
    while not terminal.is_over:
        if isinstance(how, bytes) and how:
            # The first one may cancel what runs, or close a list that came late.
            terminal.send(how)
        terminal.drain(1.0)
        if time.monotonic() > until:
            raise MonkeyFound(f"it does not end after {how!r}")
    if terminal.process.returncode not in _ENDINGS[how]:
        raise MonkeyFound(f"it ended with {terminal.process.returncode} after {how!r}")
    while left := {each for each in mine if _is_alive(*each)}:
        if time.monotonic() > until:
            raise MonkeyFound(f"it left processes behind: {sorted(left)}")
        time.sleep(0.05)


def _descendants(pid: int) -> set[tuple[int, str]]:
    """Return the descendants of a process, each with the time of its start: a number may be used again."""
    parents: dict[int, int] = {}
    starts: dict[int, str] = {}
    for each in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        try:
            fields = process_fields(each)
        except OSError:
            continue  # it has ended meanwhile
        parents[each], starts[each] = int(fields[1]), fields[19]
    found = {pid}
    while more := {each for each, parent in parents.items() if parent in found} - found:
        found |= more
    return {(each, starts[each]) for each in found - {pid}}


def _is_alive(pid: int, start: str) -> bool:
    try:
        fields = process_fields(pid)
    except OSError:
        return False
    return fields[19] == start and fields[0] != "Z"
