"""Find the cut from which the futures of a group begin: a consistent one from which every process can go on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path

from replaydbg.distributed.chains_of_cuts import chain_of_cuts
from replaydbg.errors import CannotResume, NoFutures, ReplaydbgError
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.recovery.recovery_line import RecoveryLine, find_line

_MOST_POSITIONS = 1_000
"""Of each process that are looked at for the first choice."""


def future_line(directory: Path, name: str, wanted: Mapping[int, int]) -> RecoveryLine:
    """Return the latest such cut at or before the positions `wanted`; without any, `first_choice()`.

    Raises NoFutures, and NoSuchMoment for a position that a process does not have.
    """
    wanted = dict(wanted or first_choice(directory))
    try:
        while True:
            line = find_line(directory, name, wanted)
            # One that was killed while it computed has no call behind its last one, and nothing would differ in it.
            used_up = [each for each in line.running if each.position >= line.opened.member(each.number).events > 0]
            if not used_up:
                return line
            wanted |= {each.number: each.position - 1 for each in used_up}
    except CannotResume as error:
        details = f": {'; '.join(error.details)}" if error.details else ""
        raise NoFutures(name, f"{error.reason}{details}") from error


def first_choice(directory: Path) -> dict[int, int]:
    """Return the positions of the first cut in which all processes have been started, and most of them live.

    Empty if there is none. Raises a ReplaydbgError if logs cannot be read.
    """
    opened = OpenedGroup(directory)
    if opened.problems or not opened.matching.members:
        return {}  # whoever looks for the cut has the reason
    cuts = GroupCuts(opened)
    try:
        thinned = {process: _thinned(positions) for process, positions in cuts.resumable.items()}
        chain = chain_of_cuts(cuts.finder, opened.matching.members, thinned)
    except ReplaydbgError:
        return {}
    return _earliest(opened, cuts, max(chain, key=lambda cut: _worth(opened, cut)))


def _earliest(opened: OpenedGroup, cuts: GroupCuts, cut: Mapping[int, int]) -> dict[int, int]:
    """Return a cut of the same worth in which each process, one after the other, is at its first position.

    Where nothing orders the events of two processes, one could else be far ahead, and a wait of the other begin anew.
    """
    worth, found = _worth(opened, cut), dict(cut)
    for process, positions in cuts.resumable.items():
        before = positions[: bisect_right(positions, found[process])]
        low, high = 0, len(before)
        while low < high:
            middle = (low + high) // 2
            is_worth_it = _worth(opened, _moved(cuts, found, process, before[middle])) >= worth
            low, high = (low, middle) if is_worth_it else (middle + 1, high)
        if low < len(before):
            found = _moved(cuts, found, process, before[low])
    return found


def _moved(cuts: GroupCuts, cut: Mapping[int, int], process: int, position: int) -> dict[int, int]:
    return cuts.finder.latest({**cut, process: position}, cuts.resumable)


def _thinned(positions: Sequence[int]) -> Sequence[int]:
    return positions[:: -(-len(positions) // _MOST_POSITIONS) or 1]


def _worth(opened: OpenedGroup, cut: Mapping[int, int]) -> tuple[int, int]:
    """Return how many processes have been started in a cut, as no future can start one, and how many of these live."""
    rows = [row for row in opened.group.processes if row.recording is not None]
    started = [row for row in rows if not row.parent or 0 < row.event <= cut.get(row.parent, 0)]
    members = opened.matching.members
    living = [each for each in members if each.branch < cut[each.process] < each.events]
    return len(started), len(living)
