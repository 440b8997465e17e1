"""A log that is read for few gates shows the same past and resources as one of which all events are built."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydbg.events.records import Entry, Event
from replaydbg.log.entries.selected_events import PassedEvents
from replaydbg.log.reader import open_recording
from replaydbg.resources.follow import resources_at
from replaydbg.resume.past import read_past
from replaydbg.resume.preparation import _read_whole
from tests.harness.recording import record_file

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
RESOURCES = ROOT / "tests" / "resources" / "programs"
PROGRAMS = (
    FIXTURES / "lanes" / "signal_to_a_lane.py",
    FIXTURES / "lanes" / "signal_rules.py",
    FIXTURES / "lanes" / "select_in_lanes.py",
    FIXTURES / "lanes" / "daemon_waits_at_exit.py",
    FIXTURES / "lanes" / "async_subprocesses.py",
    FIXTURES / "clocks" / "setting_and_threads.py",
    RESOURCES / "descriptors_at_random.py",
    RESOURCES / "descriptors_in_threads.py",
)


@pytest.fixture(params=PROGRAMS, ids=lambda path: path.stem)
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return record_file(request.param, tmp_path, *(["3"] if request.param.parent == RESOURCES else []))


def test_the_past_and_the_resources_are_the_same(recorded: Path) -> None:
    with open_recording(recorded) as recording:
        past, resources = _read_whole(recording)

        assert past == read_past(recording, None)
        assert resources == resources_at(recording)


@pytest.mark.parametrize("chosen", ["", "posix.", "time."])
def test_what_is_not_wanted_is_counted(recorded: Path, chosen: str) -> None:
    """The entries are those of the whole log; in the place of the others there is their last one of each thread."""
    with open_recording(recorded) as recording:
        entries = list(recording.events())
        found = list(recording.selected_events(lambda gate: bool(chosen) and gate.startswith(chosen)))

    wanted = [each for each in entries if not isinstance(each, Event) or (chosen and each.gate.startswith(chosen))]
    assert [each for each in found if not isinstance(each, PassedEvents)] == wanted
    assert _passed(found) == _expected(entries, chosen)


def _passed(found: list[Entry | PassedEvents]) -> list[tuple[object, ...]]:
    return [(each.last, each.time_ns, each.by_lane) for each in found if isinstance(each, PassedEvents)]


def _expected(entries: list[Entry], chosen: str) -> list[tuple[object, ...]]:
    groups: list[list[Event]] = [[]]
    for entry in entries:
        if isinstance(entry, Event) and not (chosen and entry.gate.startswith(chosen)):
            groups[-1].append(entry)
        elif groups[-1]:
            groups.append([])
    return [
        (group[-1].number, group[-1].time_ns, {each.lane: (each.number, each.site) for each in group})
        for group in groups
        if group
    ]
