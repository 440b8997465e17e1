"""`replaydbg ls`: list the recordings in the store, oldest first."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import Any

from replaydbg.cli.common.output import add_json, print_json, print_table, the_store
from replaydbg.errors import ReplaydbgError
from replaydbg.events.show import printable
from replaydbg.log.reader import open_recording
from replaydbg.render.measures import show_seconds, show_size, show_status
from replaydbg.store.directory import StoredRecording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """List the recordings."""
    store = the_store()
    found = [_facts(stored) for stored in store.list()]
    if args.json:
        print_json({"store": str(store.directory), "recordings": found})
        return 0
    if not found:
        print(f"No recordings in {store.directory}. `replaydbg record prog.py` makes one.", file=sys.stderr)
        return 0
    columns = ("name", "created", "ended", "events", "size", "time", "command")
    print_table(columns, [_row(facts) for facts in found], right=("events", "size", "time"))
    return 0


def _facts(stored: StoredRecording) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": stored.name, "path": str(stored.path), "sealed": not stored.is_live}
    try:
        with open_recording(stored.path) as recording:
            end, log = recording.end, recording.log_header
            return facts | {
                "created": recording.header.created,
                "size": _size(stored),
                "argv": list(recording.header.argv),
                "status": None if end is None else end.status,
                "seconds": None if end is None else end.seconds,
                "events": end.events if end is not None else log.crossings if log is not None else 0,
                "problem": None,
            }
    except ReplaydbgError as error:
        # One bad recording must not hide the others.
        return facts | {"size": _size(stored), "problem": str(error)}


def _size(stored: StoredRecording) -> int:
    """Return the size of a recording on disk; 0 if it has been removed meanwhile."""
    try:
        if not stored.is_live:
            return stored.path.lstat().st_size
        with os.scandir(stored.path) as entries:
            return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in entries)
    except OSError:
        return 0


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    if facts["problem"] is not None:
        return (
            printable(facts["name"]),
            "",
            "unreadable",
            "",
            show_size(facts["size"]),
            "",
            printable(facts["problem"]),
        )
    ended = "not sealed" if facts["status"] is None else show_status(facts["status"])
    return (
        printable(facts["name"]),
        printable(facts["created"][:19].replace("T", " ")),
        ended,
        f"{facts['events']:,}",
        show_size(facts["size"]),
        "" if facts["seconds"] is None else show_seconds(facts["seconds"]),
        printable(shlex.join(facts["argv"])),
    )
