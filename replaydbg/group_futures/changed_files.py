"""Which paths each process of a group has changed: what the others read of them may be outdated."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path

from replaydbg.events.records import Event
from replaydbg.futures.mutations import changed_paths
from replaydbg.log.group import GroupProcess
from replaydbg.log.reader import open_recording
from replaydbg.resources.event_values import argument
from replaydbg.resources.follow import ResourceHistory
from replaydbg.store.directory import member_path

_OF_SQLITE = frozenset({"_sqlite3.vfs.open", "_sqlite3.vfs.delete"})
"""SQLite locks what it only reads, so an open database is one that may be changed."""


class ChangedFiles:
    """Reads the log of each process once."""

    def __init__(self, directory: Path, rows: Sequence[GroupProcess]) -> None:
        """`rows` are those of the group in `directory`. Raises Corrupt."""
        self._rows = {row.number: row for row in rows if row.recording is not None}
        self._changes = {number: _changes(member_path(directory, number)) for number in self._rows}

    def of_others(self, process: int) -> frozenset[str]:
        """Return the absolute paths that other processes have changed at any time.

        What a process did before it was forked, its parent did, and nobody else.
        """
        shared = self._lineage(process)
        found: set[str] = set()
        for number, changes in self._changes.items():
            if number != process:
                begins = max([*self._lineage(number).values(), shared.get(number, 0)], default=0)
                found.update(path for event, paths in changes.items() if event > begins for path in paths)
        return frozenset(found)

    def _lineage(self, process: int) -> Mapping[int, int]:
        """Return for each ancestor the event at which the process, or one between both, was forked from it."""
        found: dict[int, int] = {}
        row = self._rows.get(process)
        while row is not None and row.how == "fork" and row.parent not in found:
            found[row.parent] = row.event
            row = self._rows.get(row.parent)
        return found


def _changes(path: Path) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    with open_recording(path) as recording:
        history = ResourceHistory(recording, ())
        for entry in recording.events():
            history.apply(entry)
            if isinstance(entry, Event):
                absolute = [history.state.absolute(each) for each in _named(entry)]
                paths = [posixpath.normpath(each) for each in absolute if isinstance(each, str)]
                if paths:
                    found[entry.number] = paths
    return found


def _named(event: Event) -> list[str]:
    given = argument(event, 0) if event.gate in _OF_SQLITE else None
    return [given] if isinstance(given, str) else changed_paths(event)
