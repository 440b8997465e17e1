"""Find the recovery line of a group: the cut from which its processes go on, and what becomes of each process.

Processes that were killed failed: no other process may have noticed that in the cut (E. N. Elnozahy et al., A Survey of
Rollback-Recovery Protocols in Message-Passing Systems, ACM Computing Surveys 34, 2002, section 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from replaydbg.distributed.cuts import Requirement
from replaydbg.distributed.descriptors import INHERITED, ChannelEnd
from replaydbg.errors import CannotResume, NoSuchMoment, ReplaydbgError
from replaydbg.events.transfers import Endpoint
from replaydbg.groups.command_lines import with_commands
from replaydbg.groups.group_cuts import GroupCut, GroupCuts
from replaydbg.groups.group_ends import GroupEnds
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.group import HAS_NOT_BEGUN, IS_OTHER, WHY_NOT, GroupProcess
from replaydbg.log.reader import open_recording
from replaydbg.store.directory import member_path

KNOWN_AS = "known_as"
"""The field of a header with the process id by which the programs of a resumed group know a process."""


@dataclass(frozen=True, slots=True)
class LineMember:
    """A process of the group that exists in the cut, or had ended before it."""

    row: GroupProcess
    position: int
    """How many of its events are in the cut; of one that has ended all of them."""
    runs: bool
    """Whether it goes on; otherwise it has ended."""
    known_as: int
    """The process id by which the programs of the group know it."""

    @property
    def number(self) -> int:
        """Its number in the group."""
        return self.row.number


@dataclass(frozen=True, slots=True)
class RecoveryLine:
    """A cut from which a group can go on."""

    name: str
    """The group's name in commands."""
    directory: Path
    opened: OpenedGroup
    cuts: GroupCuts
    ends: GroupEnds
    cut: GroupCut
    members: dict[int, LineMember]
    """The recorded processes, by number; those that were started after the cut are missing."""
    others: tuple[GroupProcess, ...]
    """Programs without a recording that were started before the cut."""

    streams: dict[ChannelEnd, Endpoint]
    """The standard output and error of the first process, as its recording names them."""

    def endpoint(self, end: ChannelEnd) -> Endpoint | None:
        """Return the name that the recordings have for an end; None: they have none."""
        found = self.ends.endpoint(end)
        if found is None and end in self.streams:
            found = self.streams[end]
        if found is not None:
            return found
        other = end._replace(side=1 - end.side)
        known = self.ends.endpoint(other) if end.kind in ("pipe", "pair") else None
        if known is None or end.kind == "pipe" or not known.peer:
            return known
        return known._replace(own=known.peer, peer=known.own, cookie=0)

    @property
    def running(self) -> list[LineMember]:
        """The processes that go on."""
        return [each for each in self.members.values() if each.runs]

    @property
    def positions(self) -> dict[int, int]:
        """The positions of all processes that exist."""
        return {number: each.position for number, each in self.members.items()}


def find_line(directory: Path, name: str, wanted: Mapping[int, int]) -> RecoveryLine:
    """Return the latest recovery line at or before the positions `wanted` (of processes that are missing: their ends).

    Reads all logs of the group. Raises CannotResume, and NoSuchMoment for a position that a process does not have.
    """
    opened = OpenedGroup(directory)
    if opened.problems:
        raise CannotResume(name, "recordings of its processes cannot be read", tuple(opened.problems.values()))
    if not opened.matching.members:
        raise CannotResume(name, "it has no recordings")
    _check_wanted(opened, wanted)
    cuts = GroupCuts(opened)
    try:
        ends = GroupEnds(cuts)
        failed = _failed(opened, ends)
        cuts.require([*ends.requirements(failed), *_unnoticed(opened, failed), *_unborn(opened)])
        cut = cuts.latest_resumable(_before_starts(opened, wanted))
    except ReplaydbgError as error:
        raise CannotResume(name, str(error)) from error
    if cut.doubts:
        raise CannotResume(name, "the cut may be inconsistent", cut.doubts)
    members = _members(opened, ends, cut)
    if not any(each.runs for each in members.values()):
        how = "--at-cut PROCESS@EVENT goes back to an earlier cut"
        raise CannotResume(name, f"all of its processes have ended, so there is nothing to continue ({how})")
    unfinished = [f"{channel.kind} {channel.name}" for channel, _ in cuts.unfinished(cut)]
    if unfinished:
        raise CannotResume(name, "sends are unfinished in the cut", tuple(unfinished))
    others = tuple(
        row
        for row in opened.group.processes
        if row.recording is None and row.parent in members and row.event <= members[row.parent].position
    )
    return RecoveryLine(name, directory, opened, cuts, ends, cut, members, others, _streams(opened))


def _check_wanted(opened: OpenedGroup, wanted: Mapping[int, int]) -> None:
    """Raise NoSuchMoment for a position after the end of a process."""
    for process, position in wanted.items():
        if position > (events := opened.member(process).events):
            raise NoSuchMoment(f"{process}@{position}", f"process {process} has {events:,} events")


def _streams(opened: OpenedGroup) -> dict[ChannelEnd, Endpoint]:
    """Return the names of the first process's output streams, which need not have been used before the cut."""
    first = opened.matching.members[0].process
    with open_recording(member_path(opened.directory, first)) as recording:
        header = recording.header
    found = {}
    for number, identity in enumerate(header.outputs, 1):
        kind = {"pipe": "pipe", "socket": "unix"}.get(header.stdio[number], "output")
        if identity:
            peer = identity if kind == "pipe" else ""
            found[ChannelEnd(first, 0, number, INHERITED)] = Endpoint(0, kind, identity, peer, 0, "")
    return found


def _failed(opened: OpenedGroup, ends: GroupEnds) -> frozenset[int]:
    """Return the processes that were killed from outside of the group: they have no end, and no member ended them."""
    killed = {number for number, history in ends.histories.items() if not history.has_ended}
    return frozenset(killed - set(_signalled(opened)))


def _signalled(opened: OpenedGroup) -> Iterator[int]:
    """Yield the processes to which others of the group sent signals."""
    for member in opened.matching.members:
        for endpoint in member.endpoints:
            number = endpoint.own.partition(":")[0]
            if endpoint.kind == "signal" and number.isdecimal():
                yield int(number)


def _unnoticed(opened: OpenedGroup, failed: frozenset[int]) -> Iterator[Requirement]:
    """Yield that no parent has waited for a process that failed: it has not ended in any cut."""
    for row in opened.group.processes:
        if row.number in failed and row.waited:
            after_all = opened.member(row.number).events + 2
            yield Requirement(row.number, row.parent, (after_all,), (row.waited,))


def _unborn(opened: OpenedGroup) -> Iterator[Requirement]:
    """Yield that no process was forked of which the recording does not even have the fork: it is forked again."""
    for row in opened.group.processes:
        if row.recording is not None and (member := opened.member(row.number)).events < member.branch:
            yield Requirement(row.number, row.parent, (member.branch,), (row.event,))


def _before_starts(opened: OpenedGroup, wanted: Mapping[int, int]) -> dict[int, int]:
    """Return the positions `wanted`, or earlier ones: before the start of a Python that was killed before it began.

    There is nothing of it that could go on, so it is started again.
    """
    found = dict(wanted)
    for row in with_commands(opened.directory, opened.group).processes:
        if row.event and not row.waited and _has_not_begun(row):
            found[row.parent] = min(found.get(row.parent, row.event), row.event - 1)
    return found


def _has_not_begun(row: GroupProcess) -> bool:
    """Whether a process is a Python that was killed before its recording began."""
    if row.recording is not None or (row.status is not None and row.status >= 0):
        return False
    if row.why_not == WHY_NOT[IS_OTHER]:  # or before it was known to be a Python
        return bool(row.argv) and Path((row.argv or [""])[0]).name.startswith("python")
    return row.why_not == WHY_NOT[HAS_NOT_BEGUN]


def _members(opened: OpenedGroup, ends: GroupEnds, cut: GroupCut) -> dict[int, LineMember]:
    found: dict[int, LineMember] = {}
    for row in opened.group.processes:
        if row.recording is None:
            continue
        member = opened.member(row.number)
        position = cut.positions.get(row.number, 0)
        parent = found.get(row.parent)
        is_born = not row.parent or (parent is not None and 0 < row.event <= parent.position)
        if not position and not is_born:
            continue
        # A process that has not begun in the cut begins anew: a forked one at its fork.
        position = position or member.branch
        has_ended = position >= member.events and ends.histories[row.number].has_ended
        is_reaped = parent is not None and 0 < row.waited <= parent.position
        runs = not (has_ended or is_reaped)
        known_as = _known_as(opened, row)
        found[row.number] = LineMember(row, min(position, member.events), runs, known_as)
    return found


def _known_as(opened: OpenedGroup, row: GroupProcess) -> int:
    with open_recording(member_path(opened.directory, row.number)) as recording:
        found = recording.header.raw.get(KNOWN_AS)
    return found if type(found) is int and found > 0 else row.pid
