"""`replaydbg ls`: list the recordings in the store, oldest first."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from dataclasses import asdict, dataclass

from replaydbg.cli.common.output import add_json, print_json, print_table, the_store
from replaydbg.errors import ReplaydbgError
from replaydbg.events.show import printable, show_status
from replaydbg.log.group import size_of_group
from replaydbg.log.reader import Recording, open_recording
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.measures import show_seconds, show_size
from replaydbg.store.directory import StoredRecording

_COLUMNS = ("name", "created", "ended", "events", "size", "time", "command")


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts about a recorded run that are listed."""

    created: str
    """The time of the recording: ISO 8601, UTC."""
    size: int
    """Size of the recording on disk in bytes."""
    command: list[str]
    """The program and its arguments as they were given."""
    status: int | None
    """The program's exit code, or minus the number of the signal that ended it; None: the recording is not sealed."""
    seconds: float | None
    """The run's duration; None: the recording is not sealed."""
    events: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """List the recordings."""
    store = the_store()
    found = [(each, _run_facts(each)) for each in store.list()]
    if args.json:
        print_json({"store": str(store.directory), "recordings": [_facts(*each) for each in found]})
        return 0
    if not found:
        print(f"No recordings in {store.directory}. `replaydbg record prog.py` makes one.", file=sys.stderr)
        return 0
    print_table(_COLUMNS, [_row(*each) for each in found], right=("events", "size", "time"))
    return 0


def _run_facts(stored: StoredRecording) -> RunFacts | ReplaydbgError:
    """Return the facts about a run, or why its recording cannot be read: one bad recording must not hide the others."""
    try:
        with open_recording(stored.path) as recording:
            return _read(recording, _size(stored))
    except ReplaydbgError as error:
        return error


def _read(recording: Recording, size: int) -> RunFacts:
    end, log = recording.end, recording.log_header
    return RunFacts(
        created=recording.header.created,
        size=size,
        command=list(recording.header.command),
        status=None if end is None else end.status,
        seconds=None if end is None else end.seconds,
        events=end.events if end is not None else log.crossings if log is not None else 0,
    )


def _size(stored: StoredRecording) -> int:
    """Return the size of a recording on disk; 0 if it has been removed meanwhile."""
    try:
        if stored.group is not None:
            return size_of_group(stored.group)
        if not stored.is_live:
            return stored.path.lstat().st_size
        with os.scandir(stored.path) as entries:
            return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in entries)
    except OSError:
        return 0


def _facts(stored: StoredRecording, found: RunFacts | ReplaydbgError) -> JsonObject:
    facts: JsonObject = {"name": stored.name, "path": str(stored.path), "sealed": not stored.is_live}
    if isinstance(found, ReplaydbgError):
        return facts | {"size": _size(stored), "problem": str(found)}
    return facts | asdict(found) | {"problem": None}


def _row(stored: StoredRecording, found: RunFacts | ReplaydbgError) -> tuple[str, ...]:
    if isinstance(found, ReplaydbgError):
        return (printable(stored.name), "", "unreadable", "", show_size(_size(stored)), "", printable(str(found)))
    return (
        printable(stored.name),
        printable(found.created[:19].replace("T", " ")),
        "not sealed" if found.status is None else show_status(found.status),
        f"{found.events:,}",
        show_size(found.size),
        "" if found.seconds is None else show_seconds(found.seconds),
        printable(shlex.join(found.command)),
    )
