"""The processes of a group as text, each with its position in the debugger."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from replaydbg.events.show import printable, show_status
from replaydbg.groups.group_session import GroupSession
from replaydbg.log.group import GroupProcess
from replaydbg.render import texts


def started_text(process: GroupProcess) -> str:
    """Return how a process was started, such as `fork of 1 at 58`."""
    if not process.parent:
        return process.how
    # A parent that is not recorded has no events.
    return f"{process.how} of {process.parent}" + (f" at {process.event}" if process.event else "")


def ended_text(process: GroupProcess) -> str:
    """Return how a process ended; `may be running` if its end was not seen: it may have been killed."""
    if process.status is not None:
        return show_status(process.status)
    return "unknown" if process.has_ended else "may be running"


def command_text(process: GroupProcess) -> str:
    """Return the command line of a process; empty: unknown."""
    return printable(shlex.join(process.argv)) if process.argv is not None else ""


def process_heading(group: GroupSession, number: int) -> str:
    """Return a process in one line."""
    process = group.process(number)
    facts = [started_text(process), command_text(process)] if process is not None else []
    return "  ".join(each for each in (f"process {number} of {group.name}", *facts) if each)


def process_rows(group: GroupSession) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the number of each process with its cells: how it was started, and where its session is."""
    processes, sessions = group.group.processes, group.sessions
    started = {each.number: started_text(each) for each in processes}
    number_width = len(str(processes[-1].number)) if processes else 0
    width = max((len(each) for each in started.values()), default=0)
    for each in processes:
        session = sessions.get(each.number)
        if session is not None:
            state = texts.here_text(session, session.here)
        elif each.recording is None:
            state = f"(not recorded: {each.why_not})"
        else:
            state = "(not opened)  " + command_text(each)
        yield each.number, (f"{each.number:>{number_width}}", f"{started[each.number]:<{width}}", state.rstrip())
