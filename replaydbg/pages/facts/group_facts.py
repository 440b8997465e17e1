"""The group of a process: its processes, and the space-time diagram around the moment that a page shows."""

from __future__ import annotations

from pathlib import Path

from replaydbg.errors import ReplaydbgError, clause
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.group_ends import require_ends
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.groups.space_time import SpaceTime
from replaydbg.log.group import read_group
from replaydbg.pages.facts.page_facts import GroupFacts, ProcessRow
from replaydbg.render.groups.cuts_text import cut_text
from replaydbg.render.groups.processes_text import command_text, ended_text, started_text
from replaydbg.render.groups.space_time_svg import space_time_svg
from replaydbg.store.directory import member_path

AROUND = (8, 4, 2, 1)
"""Events of each process that are drawn before and after the cut, in the order in which they are tried."""
MOST_DRAWN = 40
"""Processes in a drawing."""
MOST_ROWS = 100


def group_facts(directory: Path, process: int, event: int | None) -> GroupFacts:
    """Return the group in a directory at the latest consistent cut in which `process` has not passed `event`.

    None: it may have gone to its end. A group that cannot be drawn has the reason in its note.
    """
    group = read_group(directory)
    problems: dict[int, str] = {}
    drawings: tuple[bytes, ...] = ()
    try:
        opened = OpenedGroup(directory)
        problems = opened.problems
        drawings, note = _drawings(opened, process, event)
    except ReplaydbgError as error:
        note = f"There is no space-time diagram: {clause(str(error))}."
    rows = [
        ProcessRow(
            each.number,
            started_text(each),
            ended_text(each),
            command_text(each),
            each.number == process,
            problems.get(each.number, "") or ("" if each.recording is not None else f"not recorded: {each.why_not}"),
        )
        for each in group.processes
    ]
    name = directory.name.removesuffix(".rdbgs")
    return GroupFacts(name, tuple(rows[:MOST_ROWS]), max(len(rows) - MOST_ROWS, 0) + group.more, drawings, note)


def _drawings(opened: OpenedGroup, process: int, event: int | None) -> tuple[tuple[bytes, ...], str]:
    if not opened.has_transfers:
        return (), "There is no space-time diagram: the recordings contain no sends or receives."
    if len(opened.matching.members) > MOST_DRAWN:
        return (), f"There is no space-time diagram: it is drawn for at most {MOST_DRAWN} processes."
    cuts = GroupCuts(opened)
    missing = require_ends(cuts)
    wanted = {process: event} if event is not None and process in cuts.finder.last else {}
    cut = cuts.latest(wanted)
    diagrams = SpaceTime(cuts)
    found = tuple(space_time_svg(opened, diagrams.around(cut, most), is_embedded=True) for most in AROUND)
    where = "before the moment of this page" if wanted else "at the end"
    doubts = [*cut.doubts, *([f"ends of streams are not considered: {missing}"] if missing else [])]
    note = f"The latest consistent state {where}: {cut_text(cut.positions)}."
    return found, " ".join([note, *(f"{clause(each)}." for each in doubts)])


def shown_process(directory: Path) -> int:
    """Return the process of a group that a page is about: the first one that failed, or else process 1."""
    processes = [each for each in read_group(directory).processes if each.recording is not None]
    failed = [each.number for each in processes if each.status]
    first = next((each for each in processes if each.number == 1), None)
    if first is None or not first.status:
        return failed[0] if failed else processes[0].number if processes else 1
    return 1


def recordings_of(directory: Path) -> list[Path]:
    """Return the recordings in a group that exist."""
    found = [member_path(directory, each.number) for each in read_group(directory).processes if each.recording]
    return [each for each in found if each.exists()]
