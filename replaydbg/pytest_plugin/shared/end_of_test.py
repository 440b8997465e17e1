"""The parts of a test's `end.json` that the plugin writes, and reads again when it makes the recording smaller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from replaydbg.classes import dataclass
from replaydbg.errors import Corrupt
from replaydbg.log.json_data import NoteData, SnapshotData, SnapshotsData
from replaydbg.pytest_plugin.shared.results import Failure


class MomentEntry(TypedDict):
    """A named moment."""

    name: str
    event: int
    """Number of events before it."""
    is_called: bool
    """Whether the test itself named it."""


class FailureEntry(TypedDict):
    """The fields of `results.Failure`."""

    type: str
    message: str
    file: str
    line: int
    own_file: str
    own_line: int
    phase: str
    event: int


class TestEntry(TypedDict):
    """The test of the recording."""

    nodeid: str
    outcome: str
    attempt: int
    began: int
    failure: FailureEntry | None


class TestEnd(TypedDict):
    """`end.json`, except for what the sources add to it."""

    status: int
    seconds: float
    cpu_seconds: float
    reason: str
    events: int
    notes: list[NoteData]
    ok: bool
    marks: list[MomentEntry]
    test: TestEntry
    snapshots: SnapshotsData | None


def failure_entry(failure: Failure) -> FailureEntry:
    """Return the entry of a failure."""
    return {
        "type": failure.type,
        "message": failure.message,
        "file": failure.file,
        "line": failure.line,
        "own_file": failure.own_file,
        "own_line": failure.own_line,
        "phase": failure.phase,
        "event": failure.event,
    }


def snapshots_entry(listed: list[SnapshotData], bases: list[int]) -> SnapshotsData:
    """Return the entry of snapshots; the session's counts are not those of a test."""
    entry: SnapshotsData = {
        "failed": 0,
        "left_out": 0,
        "pause_ns": 0,
        "longest_pause_ns": 0,
        "copies_ns": 0,
        "listed": listed,
    }
    if bases:
        entry["bases"] = bases
    return entry


@dataclass(frozen=True, slots=True)
class _Moment:
    """An entry with a number of events; its other fields are kept as they are."""

    event: int


@dataclass(frozen=True, slots=True)
class _Test:
    failure: _Moment | None = None


@dataclass(frozen=True, slots=True)
class _Snapshots:
    listed: tuple[_Moment, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    test: _Test
    marks: tuple[_Moment, ...] = ()
    snapshots: _Snapshots | None = None


class RecordedEnd:
    """The end of a test's recording, whose numbers of events change when earlier ones are left out."""

    def __init__(self, raw: Mapping[str, Any], path: str) -> None:
        """`raw` is `end.json` of the recording at `path`. Raises Corrupt if it has not the form of a test's."""
        # Imported here: writing an end does not need it.
        from replaydbg.pytest_plugin.shared.json_reader import fields_as

        try:
            self._shape = fields_as(_Shape, raw)
        except ValueError as error:
            raise Corrupt(path, f"its end is not that of a test: {error}") from error
        self.raw = raw
        """The whole end."""

    @property
    def failed(self) -> int:
        """Number of events when the test failed; 0: it did not fail."""
        return self._shape.test.failure.event if self._shape.test.failure is not None else 0

    def moved(self, number: Callable[[int], int], *, events: int, began: int) -> dict[str, Any]:
        """Return `end.json` without some events: `number` returns the new number for one; it ends after `events`.

        `began`: the number of events, with those dropped, before the test. Earlier names are not needed.
        """

        def moved(entry: dict[str, Any]) -> dict[str, Any]:
            return entry | {"event": number(entry["event"])}

        end = dict(self.raw) | {"events": events}
        if self._shape.test.failure is not None:
            end["test"] = end["test"] | {"failure": moved(end["test"]["failure"])}
        marks = [moved(each) for each in end.get("marks", ()) if each["event"] >= began]
        end["marks"] = [each for each in marks if each["event"] <= events]
        if self._shape.snapshots is not None:
            end["snapshots"] = end["snapshots"] | {"listed": [moved(each) for each in end["snapshots"]["listed"]]}
        return end
