"""The plan of resuming a group: the recovery line, what becomes of each process, and what is in flight."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from replaydbg.events.show import show_status
from replaydbg.launch.processors import processors
from replaydbg.log.reader import Recording, open_recording
from replaydbg.recovery.common_appends import common_appends
from replaydbg.recovery.common_input import with_common_input
from replaydbg.recovery.later_appends import later_appends, writes_after
from replaydbg.recovery.recovery_line import LineMember, RecoveryLine
from replaydbg.recovery.shared_ends import FIFO, SharedChannel, SharedEnds
from replaydbg.resources.kinds import (
    ChildProcess,
    FileMapping,
    OpenedFile,
    OpenedPidFd,
    OpenedPipe,
    OpenedSocket,
    OpenResource,
    Resources,
)
from replaydbg.resume.checks.continuations import Continuation
from replaydbg.resume.outside_acts import OutsideAct
from replaydbg.resume.past import read_acts, read_past
from replaydbg.resume.plan import Plan, RecoveryCost
from replaydbg.resume.plan_rows import Fate, PlanRow
from replaydbg.resume.power_loss.recovered_files import Leftover
from replaydbg.resume.preparation import check_running, first_plan, plan_of
from replaydbg.resume.reopening.rules import RULES
from replaydbg.store.directory import member_path

_MAKES_PROCESSES = frozenset({"posix.fork", "posix.forkpty", "_posixsubprocess.fork_exec", "posix.posix_spawn"})


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The plan for a group that goes on from a recovery line."""

    line: RecoveryLine
    shared: SharedEnds
    plans: dict[int, Plan]
    """Of each process that goes on, by its number."""
    acts: tuple[OutsideAct, ...]
    """The acts of all processes outside of the group after the cut; of each process the newest first."""
    leftovers: tuple[Leftover, ...]
    """The files that are truncated, since what they have after their ends in the cut is written again."""
    continuation: Continuation | None = None
    """The newest group in which it was already resumed; None: it was not."""
    is_replayed: bool = False
    """Whether the plans of the processes have their calls in flight, which only a replay shows."""

    def goes_on_from_end(self, member: LineMember) -> bool:
        """Whether a process goes on from the end of its log: its calls in flight are in no log."""
        return member.position >= self.line.opened.member(member.number).events

    @property
    def name(self) -> str:
        """The group's name in commands."""
        return self.line.name

    @property
    def flying(self) -> list[SharedChannel]:
        """The channels with bytes in flight."""
        return [each for each in self.shared.channels if each.count()]

    @property
    def recovery(self) -> RecoveryCost:
        """How much is replayed of all processes together."""
        return total_cost([each.recovery for each in self.plans.values()])

    @property
    def seconds(self) -> float:
        """The expected time until the programs are live."""
        return seconds_together([each.recovery for each in self.plans.values()], processors())


def total_cost(costs: Sequence[RecoveryCost]) -> RecoveryCost:
    """Return the work of several processes as that of one."""
    return RecoveryCost(
        sum(each.events for each in costs),
        sum(each.cpu_ms for each in costs),
        sum(each.log_bytes for each in costs),
    )


def seconds_together(costs: Sequence[RecoveryCost], processors: int) -> float:
    """Return the expected time until all are live: the logs are read one by one, then all replays run at once."""
    replays = [each.replay_seconds for each in costs]
    return sum(each.reading_seconds for each in costs) + max(*replays, sum(replays) / processors, 0.0)


def plan_group(line: RecoveryLine) -> GroupPlan:
    """Return the plan of a group; no process is replayed. Raises CannotResume."""
    _check_ended(line)
    plans = {}
    for member in line.running:
        with open_recording(member_path(line.directory, member.number)) as recording:
            plans[member.number] = first_plan(recording, _name(line, member), member.position + 1, is_member=True)
    later = writes_after(line)
    common = common_appends(line, {number: each.resources for number, each in plans.items()}, later)
    plans = {number: _with_ends(each, common.resources[number], common.differences) for number, each in plans.items()}
    resources = common.resources
    shared = SharedEnds(line, resources)
    plans = {number: _with_group(each, line, shared, number) for number, each in plans.items()}
    plans = {number: _with_maps(each, number, plans) for number, each in plans.items()}
    plans = with_common_input(line, plans)
    return GroupPlan(line, shared, plans, tuple(_acts(line, plans)), later_appends(resources, later))


def _check_ended(line: RecoveryLine) -> None:
    """Raise CannotResume if a process still runs that has ended, or not begun, in the cut: it would be there twice."""
    running = {each.number for each in line.running}
    for row in line.opened.group.processes:
        if row.recording is not None and row.number not in running:
            with open_recording(member_path(line.directory, row.number)) as recording:
                check_running(recording, f"{line.name}/{row.number}")


def _name(line: RecoveryLine, member: LineMember) -> str:
    return f"{line.name}/{member.number}"


def _with_ends(plan: Plan, resources: Resources, differences: Mapping[str, str]) -> Plan:
    """Return a plan that knows the ends of files to which several processes append, and which of them differ."""
    if resources is not plan.resources:
        plan = replace(
            plan_of(plan.name, plan.event, plan.past, resources, plan.recovery),
            sources=plan.sources,
            stopped=plan.stopped,
        )
    rows = []
    for row in plan.rows:
        path = row.opened.absolute if isinstance(row.opened, OpenedFile) else None
        found = differences.get(path) if isinstance(path, str) else None
        rows.append(row if found is None else replace(row, differences=(*row.differences, found)))
    return replace(plan, rows=tuple(rows))


def _with_group(plan: Plan, line: RecoveryLine, shared: SharedEnds, process: int) -> Plan:
    """Return a plan in which what the process has in common with others is there again."""
    channels = {end: channel for channel in shared.channels for end in channel.ends}
    table = shared.tables[process]
    known = {each.known_as: each for each in line.members.values()}
    rows: list[PlanRow] = []
    children = iter([child for child in plan.resources.children if not child.is_reaped])
    for row in plan.rows:
        if row.kind == "children":
            rows.append(_child(next(children), row, known))
            continue
        end = next((table[number] for number in row.numbers if number in table), None)
        channel = channels.get(end) if end is not None else None
        opened = row.opened if row.opened is not None else _opened(plan, row)
        if isinstance(opened, OpenedPidFd) and opened.pid in known:
            rows.append(_pidfd(opened, row, known[opened.pid]))
            continue
        if channel is None and isinstance(opened, OpenedSocket) and shared.is_inside(opened):
            reason = "its peer is in the group, but cannot be determined"
            rows.append(PlanRow(row.kind, Fate.REFUSED, row.text, reason, row.numbers, (), opened))
        elif channel is None or opened is None:
            rows.append(row)
        elif channel.kind == "file":
            rows.append(_shared_row(row, channel, opened))
        else:
            kind, text = _KINDS[channel.kind], _text(channel, process)
            rows.append(PlanRow(kind, Fate.REOPENED, text, "", row.numbers, row.differences, opened))
    acts = tuple(_outside(line, process, plan.past.acts))
    past = replace(plan.past, acts=acts, act_count=len(acts))
    return replace(plan, rows=tuple(rows), past=past, differences=tuple(e for row in rows for e in row.differences))


def _with_maps(plan: Plan, process: int, plans: Mapping[int, Plan]) -> Plan:
    """Return a plan that refuses maps of files which other processes write, too.

    The replay of each process has only its own stores: the one that comes last would overwrite those of the others.
    """
    mappings = iter(plan.resources.mappings)
    rows: list[PlanRow] = []
    for row in plan.rows:
        mapping = next(mappings) if row.kind == "mappings" else None
        path = _written_path(mapping) if mapping is not None and row.fate is not Fate.REFUSED else ""
        others = [number for number, each in plans.items() if number != process and path and path in _written(each)]
        if others:
            reason = f"process {others[0]} maps it for writing, too, and stores of several processes are not restored"
            row = replace(row, fate=Fate.REFUSED, reason=reason)
        rows.append(row)
    return replace(plan, rows=tuple(rows))


def _written(plan: Plan) -> set[str]:
    return {_written_path(each) for each in plan.resources.mappings}


def _written_path(mapping: FileMapping) -> str:
    """Return the path of a file to which stores in a map are written; empty: they are not, or it is not known."""
    return os.path.realpath(mapping.path) if mapping.is_written and isinstance(mapping.path, str) else ""


_KINDS = {"pipe": "pipes", "fifo": "fifos", "pair": "sockets", "connection": "connections", "waiting": "connections"}


def _shared_row(row: PlanRow, channel: SharedChannel, opened: OpenResource) -> PlanRow:
    """Return the row of an open file of several processes: one that knows all of it lets each of them have it."""
    (known,) = channel.opened.values()
    made = RULES[type(known)].plan(known)
    if made.fate is Fate.REFUSED:
        return row if row.fate is Fate.REFUSED else replace(row, fate=Fate.REFUSED, reason=made.reason)
    if row.fate is not Fate.REFUSED:
        return replace(row, fate=Fate.REOPENED, reason="", opened=opened)
    return replace(made, numbers=row.numbers, opened=opened)


def _opened(plan: Plan, row: PlanRow) -> OpenResource | None:
    by_number = plan.resources.by_number()
    return next((by_number[number] for number in row.numbers if number in by_number), None)


def _text(channel: SharedChannel, process: int) -> str:
    others = sorted({each for holders in channel.holders.values() for each in holders} - {process})
    name = {"pipe": "a pipe", "pair": "a socket pair", "connection": "a connection"}.get(channel.kind)
    if channel.kind == FIFO:
        name = next(each.path for each in channel.opened.values() if isinstance(each, OpenedPipe))
    if name is None:
        return "a connection that the group has not accepted yet"
    count = channel.count()
    shared = f"shared with process{'es' * (len(others) > 1)} {', '.join(map(str, others))}"
    whom = shared if others else "whose other end is closed"
    return f"{name}, {whom}{f', {count:,} bytes in flight' if count else ''}"


def _child(child: ChildProcess, row: PlanRow, known: Mapping[int, LineMember]) -> PlanRow:
    member = known.get(child.pid)
    if member is None:
        return row
    if member.runs:
        return PlanRow("children", Fate.REOPENED, f"process {member.number} of the group, which goes on")
    status = member.row.status
    how = "" if status is None else f" ({show_status(status)})"
    return PlanRow("children", Fate.REOPENED, f"process {member.number} of the group, which had ended{how}")


def _pidfd(opened: OpenedPidFd, row: PlanRow, member: LineMember) -> PlanRow:
    how = "goes on" if member.runs else "had ended"
    text = f"a pidfd of process {member.number} of the group, which {how}"
    return PlanRow(row.kind, Fate.REOPENED, text, "", row.numbers, (), opened)


def _acts(line: RecoveryLine, plans: Mapping[int, Plan]) -> list[OutsideAct]:
    """Return what all processes did outside after the cut, also those that were started after it."""
    found: list[OutsideAct] = []
    for row in line.opened.group.processes:
        if row.recording is None:
            continue
        if row.number in plans:
            found += plans[row.number].past.acts
        elif row.number not in line.members:
            with open_recording(member_path(line.directory, row.number)) as recording:
                found += _outside(line, row.number, read_past(recording, _first_event(recording)).acts)
    return found


def _first_event(recording: Recording) -> int:
    branch = recording.header.branch
    return branch.event if branch is not None else 0


def all_acts(line: RecoveryLine) -> list[OutsideAct]:
    """Return the acts of all processes outside of the group after the cut, however many: a plan has the newest ones."""
    found: list[OutsideAct] = []
    for row in line.opened.group.processes:
        member = line.members.get(row.number)
        if row.recording is None or (member is not None and not member.runs):
            continue
        with open_recording(member_path(line.directory, row.number)) as recording:
            position = member.position if member is not None else _first_event(recording)
            found += _outside(line, row.number, read_acts(recording, position))
    return found


def _outside(line: RecoveryLine, process: int, acts: tuple[OutsideAct, ...]) -> list[OutsideAct]:
    """Return the acts that reach outside of the group: not what went to other processes of it, or made them."""
    member = line.opened.member(process)
    inside = {
        (index, row)
        for history in line.cuts.histories
        if history.found.channel.receivers
        for part in history.found.channel.sends
        for index, row in ((part.member, row) for row in part.rows)
    }
    own = line.opened.index_of(process)
    events = {member.transfers.event[row] for index, row in inside if index == own}
    born = {row.event for row in line.opened.group.processes if row.parent == process and row.recording is not None}
    return [
        replace(each, process=process)
        for each in acts
        if each.event not in events and not (each.call in _MAKES_PROCESSES and each.event in born)
    ]
