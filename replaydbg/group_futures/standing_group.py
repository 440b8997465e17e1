"""Replay each process of a group to the cut once: the futures are copies of the processes that stand there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from replaydbg.classes import dataclass
from replaydbg.distributed.descriptors import ChannelEnd
from replaydbg.errors import CannotResume, NoFutures
from replaydbg.events.transfers import KINDS, Endpoint
from replaydbg.futures.checks import check_member
from replaydbg.futures.standing import GroupOrders, StandingReplay
from replaydbg.group_futures.changed_files import ChangedFiles
from replaydbg.group_futures.future_group import MOST_DESCRIPTORS, StandingGroup, StandingMember
from replaydbg.group_futures.known_ports import address_of, with_ports
from replaydbg.group_futures.shared_semaphores import shared_semaphores
from replaydbg.group_futures.turn_page import MOST_MEMBERS
from replaydbg.log.cut_transfers import continued_transfers
from replaydbg.log.group import PAGE, continue_page, new_page
from replaydbg.log.reader import Recording, open_recording
from replaydbg.recovery.recovery_line import LineMember, RecoveryLine
from replaydbg.recovery.sent_before import sent_before
from replaydbg.recovery.shared_ends import SharedEnds
from replaydbg.resources.follow import resources_at
from replaydbg.resources.kinds import OpenedSocket, OpenResource, Resources
from replaydbg.store.directory import SEALED, member_path

_FILES = 7
"""Descriptors that each copy gets: see `FutureFiles`."""
_PER_GROUP = 4
"""Those that a copy of a process of a group gets besides: see `native/future/group_ends.c`."""
_MADE = ("pipe", "pair", "connection", "waiting")
_MOST_PAIRS = 16
"""New connections between processes of one future."""


def stand(line: RecoveryLine, stack: ExitStack) -> StandingGroup:
    """Return the processes of a group that go on, each at the cut; they end with `stack`.

    Raises NoFutures, and what `StandingReplay` does.
    """
    if len(line.running) > MOST_MEMBERS:
        raise NoFutures(line.name, f"{len(line.running):,} of its processes go on, and {MOST_MEMBERS} are the most")
    recordings = {
        member.number: stack.enter_context(open_recording(member_path(line.directory, member.number)))
        for member in line.running
    }
    resources = {
        each.number: with_ports(line, each, resources_at(recordings[each.number], each.position))
        for each in line.running
    }
    _check_maps(line, resources)
    try:
        shared = SharedEnds(line, resources)
        sent = _sent(line, shared)
    except CannotResume as error:
        raise NoFutures(line.name, error.reason) from error
    changed = ChangedFiles(line.directory, line.opened.group.processes)
    pairs = _MOST_PAIRS if _has_connections(line) else 0
    cut = _Cut(line, shared, changed, shared_semaphores(line), pairs)
    members = tuple(cut.stand(each, recordings[each.number], resources[each.number], stack) for each in line.running)
    return StandingGroup(line.name, members, shared, sent, pairs, page_of(line))


def _sent(line: RecoveryLine, shared: SharedEnds) -> dict[tuple[int, int], bytes]:
    """Return the bytes in flight that nobody received: a replay of each sender has them."""
    found = {}
    for process, events in shared.wanted().items():
        for event, data in sent_before(member_path(line.directory, process), line.name, events).items():
            found[process, event] = data
    return found


@dataclass(frozen=True, slots=True)
class _Cut:
    """The cut, and what its processes have in common there."""

    line: RecoveryLine
    shared: SharedEnds
    changed: ChangedFiles
    semaphores: list[tuple[bytes, int]]
    pairs: int
    """How many new connections there can be."""

    def stand(self, member: LineMember, recording: Recording, resources: Resources, stack: ExitStack) -> StandingMember:
        """Replay a process to the cut, where it stands until `stack` ends."""
        line, shared = self.line, self.shared
        check_member(recording, line.name)
        ends = self._ends(member, resources)
        running = [each.number for each in line.running]
        children = [each for each in line.members.values() if _is_child(line, each, member)]
        waiting = _waiting(line, shared, member)
        count = _FILES + _PER_GROUP + len(running) + len(children) + len(ends) + len(waiting) + 2 * self.pairs
        if count > MOST_DESCRIPTORS:
            raise NoFutures(line.name, f"process {member.number} has {len(ends):,} descriptors in common with others")
        transfers, endpoints, addresses = continued_transfers(recording, member.position)
        indices = tuple(running.index(each.number) if each.runs else -1 for each in children)
        table = shared.tables[member.number]
        orders = {
            "future_group": (
                running.index(member.number),
                len(running),
                member.number,
                endpoints,
                addresses,
                max((_common(line, member.number, each) for each in running if each != member.number), default=0),
                [_end(number, opened, line.endpoint(table[number])) for number, opened in ends.items()],
                [
                    (each.known_as, index, _wait_status(each.row.status))
                    for each, index in zip(children, indices, strict=True)
                ],
                self.semaphores,
                [line.members[each].known_as for each in running],
                [(number, family, peer) for number, family, peer, _ in waiting],
                self.pairs,
                _names(line, table, ends),
            )
        }
        group = GroupOrders(orders, self.changed.of_others(member.number), self._shared_files(member))
        name = f"{line.name}/{member.number}"
        standing = StandingReplay(recording, name, member.position + 1, stack, group=group)
        pending = tuple(end for *_, end in waiting)
        return StandingMember(member.number, recording, standing, ends, pending, indices, transfers)

    def _ends(self, member: LineMember, resources: Resources) -> dict[int, OpenResource]:
        """Return the descriptors that lead to pipes, pairs and connections that a future makes again."""
        made = set(chain.from_iterable(each.ends for each in self.shared.channels if each.kind in _MADE))
        by_number, table = resources.by_number(), self.shared.tables[member.number]
        return {
            number: by_number[number] for number, end in sorted(table.items()) if end in made and number in by_number
        }

    def _shared_files(self, member: LineMember) -> frozenset[int]:
        """Return the descriptors that lead to files whose positions processes share."""
        table = self.shared.tables[member.number]
        others = (each for each in self.shared.channels if each.kind not in _MADE)
        return frozenset(number for each in others for number in _numbers(table, each.ends))


def _has_connections(line: RecoveryLine) -> bool:
    """Whether any process has ever used TCP: the others need no spare pairs of sockets."""
    return any(end.kind == "tcp" for member in line.opened.matching.members for end in member.endpoints)


def _waiting(
    line: RecoveryLine, shared: SharedEnds, member: LineMember
) -> list[tuple[int, int, tuple[str, int] | None, ChannelEnd]]:
    """Return the connections that a process can accept: where it listens, and who has connected.

    Raises NoFutures if another process can accept one of them, too.
    """
    running = [each.number for each in line.running]
    found = []
    for channel in shared.channels:
        holders = [each for each in running if channel.listener in shared.tables[each].values()]
        if channel.kind != "waiting" or member.number not in holders:
            continue
        if len(holders) > 1:
            reason = f"processes {holders[0]} and {holders[1]} can both accept a connection that waits there"
            raise NoFutures(line.name, reason)
        (end,) = channel.ends
        opened = channel.opened.get(end)
        number = next(at for at, each in shared.tables[member.number].items() if each == channel.listener)
        if isinstance(opened, OpenedSocket) and isinstance(opened.family, int):
            found.append((number, opened.family, _address(opened.bound, ""), end))
    return found


def _common(line: RecoveryLine, process: int, other: int) -> int:
    """Return the last event that two processes have in common, because both were forked after it; 0: none."""
    one, two = _lineage(line, process), _lineage(line, other)
    return max((min(event, two[ancestor]) for ancestor, event in one.items() if ancestor in two), default=0)


def _lineage(line: RecoveryLine, process: int) -> dict[int, int]:
    """Return up to which event each process did what `process` did: all of it itself, its ancestors until a fork."""
    row = line.members[process].row
    found = {process: line.members[process].position}
    while row.how == "fork" and row.parent in line.members and row.parent not in found:
        found[row.parent] = row.event
        row = line.members[row.parent].row
    return found


def _check_maps(line: RecoveryLine, resources: dict[int, Resources]) -> None:
    """Raise NoFutures if two processes have mapped one file by themselves. Maps from before a fork the core knows."""
    for process, own in resources.items():
        for other, theirs in resources.items():
            shared = {each.path for each in theirs.mappings if isinstance(each.path, str)} if other > process else set()
            common = _common(line, process, other) if shared else 0
            for each in own.mappings:
                if each.path in shared and each.is_written and each.origin.event > common:
                    reason = f"processes {process} and {other} have both mapped {each.path}"
                    raise NoFutures(line.name, f"{reason}, and the recordings do not show who stored what")


def _numbers(table: object, ends: tuple[object, ...]) -> list[int]:
    assert isinstance(table, dict), table
    return [number for number, end in table.items() if end in ends]


def _is_child(line: RecoveryLine, child: LineMember, parent: LineMember) -> bool:
    """Whether a process is a child of `parent` that it has not waited for in the cut."""
    return child.row.parent == parent.number and not 0 < child.row.waited <= parent.position


def _wait_status(status: int | None) -> int:
    """Return a status as `waitpid` has it."""
    return 0 if status is None else -status if status < 0 else status << 8


def _names(
    line: RecoveryLine, table: Mapping[int, ChannelEnd], ends: Mapping[int, OpenResource]
) -> list[tuple[object, ...]]:
    """Return the names in the recordings of what else descriptors lead to, such as standard output."""
    found = []
    for number, end in table.items():
        endpoint = line.endpoint(end) if number not in ends else None
        if endpoint is not None and endpoint.kind in KINDS:
            found.append((number, 0, None, None, *_named(endpoint)))
    return found


def _end(number: int, opened: OpenResource, endpoint: Endpoint | None) -> tuple[object, ...]:
    """Return one of the ends that processes share as the core takes it."""
    family, own, peer = 0, None, None
    if isinstance(opened, OpenedSocket) and isinstance(opened.family, int):
        family = opened.family
        own = _address(opened.bound, endpoint.own if endpoint is not None else "")
        peer = _address(opened.peer, endpoint.peer if endpoint is not None else "")
    if endpoint is None or endpoint.kind not in KINDS:
        return (number, family, own, peer, 0, 0, 0, b"", b"", b"", b"")
    return (number, family, own, peer, *_named(endpoint))


def _named(endpoint: Endpoint) -> tuple[object, ...]:
    texts = (endpoint.own, endpoint.peer, endpoint.path, endpoint.peer_path)
    encoded = (each.encode("utf-8", "surrogateescape") for each in texts)
    return (KINDS.index(endpoint.kind) + 1, endpoint.cookie, endpoint.peer_pid, *encoded)


def _address(known: object, text: str) -> tuple[str, int] | None:
    """Return an address of TCP, by what is known of a socket or by the text of an endpoint; None: neither has it."""
    if isinstance(known, tuple) and len(known) >= 2:
        return (str(known[0]), int(known[1]))
    return address_of(text)


def page_of(line: RecoveryLine) -> bytes:
    """Return the group's page in the cut, as its processes map it; they are known by their recorded ids."""
    rows = []
    for each in line.members.values():
        parent = line.members.get(each.row.parent)
        is_waited = parent is not None and 0 < each.row.waited <= parent.position
        row = each.row._replace(waited=each.row.waited if is_waited else 0, pid=each.known_as)
        if each.runs:
            row = row._replace(status=None, status_from="")
        rows.append(row._replace(recording=f"{each.number}{SEALED}", why_not=""))
    rows += [row._replace(waited=min(row.waited, line.members[row.parent].position)) for row in line.others]
    tickets = max((max(each.transfers.ticket, default=0) for each in line.opened.matching.members), default=0)
    with TemporaryDirectory(prefix="replaydbg-futures-") as folder:
        new_page(Path(folder) / PAGE, 0)
        continue_page(Path(folder), rows, tickets)
        return (Path(folder) / PAGE).read_bytes()
