"""Facts about a run as a whole, and the commands that open its recording."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from replaydbg.errors import quoted
from replaydbg.events.show import show_status
from replaydbg.log.reader import Recording
from replaydbg.pages.facts.page_facts import OpeningCommand
from replaydbg.render.measures import show_seconds

MOST_WORDS = 2_000
"""Characters of a command line."""


def run_facts(recording: Recording, *, nodeid: str = "") -> tuple[tuple[str, str], ...]:
    """Return labels and texts about a run; `nodeid`: the test that it is of."""
    header, end = recording.header, recording.end
    found = [("test", nodeid)] if nodeid else []
    found.append(("command", shlex.join(header.command)[:MOST_WORDS]))
    found.append(("recorded", f"{header.created[:19].replace('T', ' ')} UTC"))
    found.append(("Python", f"{header.python.version}, {header.platform}"))
    events = end.events if end is not None else recording.log_header.crossings if recording.log_header else 0
    found.append(("events", f"{events:,}"))
    if end is not None:
        found.append(("ended", f"{show_status(end.status)}, after {show_seconds(end.seconds)}"))
        found += [("note", f"{note.text} ({note.kind})") for note in end.notes[:5]]
    else:
        found.append(("ended", "not sealed: the program was killed, or still runs"))
    return tuple(found)


def opening_commands(
    name: str,
    *,
    place: tuple[str, int] | None = None,
    expression: str = "",
    is_failure: bool = False,
    is_test: bool = False,
) -> Iterator[OpeningCommand]:
    """Yield the commands; `place`: file and line of the failure, `expression`: a name in it that can be followed."""
    word = quoted(name)
    yield OpeningCommand(f"replaydbg debug {word}", "open it here at a prompt, and step backwards")
    yield OpeningCommand(f"replaydbg tui {word}", "the same in the terminal UI")
    if expression:
        yield OpeningCommand(f"replaydbg why {word} {quoted(expression)}", "find the last write of a value")
    if place is not None and expression:
        where = quoted(f"{place[0]}:{place[1]}")
        yield OpeningCommand(
            f"replaydbg log {word} {where} {quoted(expression)}", "print a value each time that the line ran"
        )
    if is_failure and is_test:
        yield OpeningCommand(f"replaydbg bisect snapshots {word}", "find the line after which the assertion was false")
    yield OpeningCommand(f"replaydbg replay {word}", "run it again, and check that it does the same")
    if is_failure:
        yield OpeningCommand(f"replaydbg check {word}", "test whether today's code still fails")
