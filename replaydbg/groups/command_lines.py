"""The command lines of the processes of a group."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.events.records import Event
from replaydbg.log.group import Group
from replaydbg.log.reader import open_recording
from replaydbg.store.directory import member_path


def with_commands(directory: Path, group: Group) -> Group:
    """Return the group with the command lines of programs that are not recorded: their parents' events have them."""
    wanted: dict[int, set[int]] = {}
    for each in group.processes:
        if each.argv is None and each.event:
            wanted.setdefault(each.parent, set()).add(each.event)
    commands: dict[tuple[int, int], list[str]] = {}
    for parent, events in wanted.items():
        # A recording that is damaged is reported with its own row.
        with suppress(ReplaydbgError), open_recording(member_path(directory, parent)) as recording:
            for event in recording.events(first=min(events), last=max(events), controls=False):
                if isinstance(event, Event) and event.number in events:
                    commands[parent, event.number] = _command(event.gate, event.arguments)
    return group._replace(
        processes=[
            each._replace(argv=each.argv or commands.get((each.parent, each.event)) or None) for each in group.processes
        ]
    )


def _command(gate: str, arguments: object) -> list[str]:
    """Return the command line that was started by a call; empty if its arguments do not have it."""
    given = list(arguments) if isinstance(arguments, tuple) else []
    place = {"_posixsubprocess.fork_exec": 0, "posix.posix_spawn": 1, "posix.posix_spawnp": 1}.get(gate)
    if gate == "posix.system" and given and isinstance(given[0], str):
        return ["sh", "-c", given[0]]
    words = given[place] if place is not None and len(given) > place else ()
    if not isinstance(words, list | tuple):
        return []
    return [os.fsdecode(word) for word in words if isinstance(word, str | bytes)]
