"""Who waits for whom in a cut of a group: the threads of all processes, and the processes that could let each go on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from replaydbg.distributed.cuts import Cut, Requirement
from replaydbg.distributed.descriptors import ChannelEnd
from replaydbg.distributed.edges import BareTransfer, bare_transfers
from replaydbg.distributed.happens_before import edges_without_bytes
from replaydbg.distributed.wait_graph import cores, stuck
from replaydbg.distributed.wait_history import (
    CHILD,
    EVENTFD_WRITE,
    FILE_LOCK,
    POLL,
    RECEIVE,
    SEMAPHORE,
    SEND,
    LaneWait,
    Wait,
)
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.group_ends import LOCK_OF_FILE, STREAM, GroupEnds
from replaydbg.groups.lock_waits import LockWaits
from replaydbg.log.group import GroupProcess
from replaydbg.log.transfers import PARTLY_KNOWN, RECEIVES

Node = tuple[int, int]
"""A process and one of its threads, or ANY of them."""

ANY = -1

LOCK = "lock"
"""The need of a thread that waits for another one of its process."""

_LONGEST = 10
"""Digits of the number of a process, in a text of a recording."""


class Blocked(NamedTuple):
    """A thread that waits, in a cut."""

    process: int
    lane: int
    position: int
    """The position of its process."""
    event: int
    """The event of the call in which it waits; 0: it never ended."""
    kind: str
    """LOCK, or one of `wait_history.KINDS`."""
    name: str
    """Of a channel, or a semaphore; empty: it has none."""
    holders: tuple[int, ...]
    """The processes of which one has to act."""


class WaitingCut(NamedTuple):
    """The threads of a group in a cut."""

    cut: dict[int, int]
    blocked: dict[Node, Blocked]
    """Those that wait for others."""
    stuck: set[Node]
    """Those that cannot go on, whatever the others and the outside do: a deadlock."""
    idle: set[Node]
    """Those that cannot go on unless the outside acts."""
    living: set[Node]
    """The threads of processes that had not ended; of one that had not begun the first one, which can go on."""

    @property
    def is_terminated(self) -> bool:
        """Whether nothing can happen without the outside: all wait, or have ended."""
        return self.idle == self.living

    def cores(self) -> list[set[Node]]:
        """Return the cycles and knots of a deadlock, the smallest first; the others that are stuck wait for these."""
        return cores({node: [self._needs(node)] for node in self.stuck}, self.stuck)

    def _needs(self, node: Node) -> set[Node]:
        each = self.blocked[node]
        return {other for other in self.stuck if other[0] in each.holders and not (each.kind == LOCK and other == node)}


class _Need(NamedTuple):
    """The condition under which a thread can go on."""

    kind: str
    """LOCK, or one of `wait_history.KINDS`."""
    holders: Collection[int]
    """Processes, of which one has to act."""
    name: str = ""
    by_outside: bool = False
    """Whether the outside can let it go on as well."""
    needs_all: bool = False
    """Whether all of the processes have to act, and the outside if it can."""


class GroupWaits:
    """Finds who waits for whom. One pass over the log of each process."""

    def __init__(self, cuts: GroupCuts) -> None:
        """Take the cuts of a group. Raises a ReplaydbgError."""
        self._cuts, self._opened = cuts, cuts.opened
        self._ends = GroupEnds(cuts)
        self._rows = {row.number: row for row in self._opened.group.processes}
        self.histories = self._ends.histories
        """Of each recorded process."""
        self._locks = LockWaits(self._opened, self._ends, self.has_ended)

    def at(self, cut: Cut, *, locks_wait: bool = False) -> WaitingCut:
        """Return who waits for whom in a consistent cut.

        A thread that waits for a lock of its process can go on, since its wait may have a timeout, which is not
        recorded; with `locks_wait` it waits for ever.
        """
        lanes = {
            process: history.at(cut[process])
            for process, history in self.histories.items()
            if cut.get(process, 0) and not self.has_ended(process, cut)
        }
        inside: dict[Node, list[set[Node]]] = {}
        graph: dict[Node, list[set[Node]]] = {}
        blocked = {}
        for process, lane in ((process, lane) for process, each in lanes.items() for lane in each):
            need = self._need(process, lane, cut)
            if need is None or (need.kind == LOCK and not locks_wait):
                continue
            node = process, lane.lane
            holders = tuple(sorted(need.holders))
            position = min(cut[process], self._opened.member(process).events)  # a call that never ended counts as one
            blocked[node] = Blocked(*node, position, lane.event, need.kind, need.name, holders)
            if need.kind == LOCK:
                inside[node] = [{(process, each.lane)} for each in lanes[process] if each.lane != lane.lane]
            elif need.needs_all:
                inside[node] = [{(other, ANY) for other in holders}] if not need.by_outside else []
            else:
                inside[node] = [{(other, ANY)} for other in holders]
            graph[node] = [*inside[node], set()] if need.by_outside else inside[node]
        for process, each in lanes.items():
            inside[process, ANY] = graph[process, ANY] = [{(process, lane.lane)} for lane in each]
        living = {(process, lane.lane) for process, each in lanes.items() for lane in each}
        living |= {(process, 0) for process in self.histories if not cut.get(process, 0)}
        return WaitingCut(dict(cut), blocked, _threads(stuck(graph)), _threads(stuck(inside)), living)

    def requirements(self, *, before_deaths: bool = False) -> Iterator[Requirement]:
        """Yield what cuts need besides the matching of messages; `before_deaths`: nobody has been killed in them."""
        last = self._cuts.finder.last
        killed = [each for each in self.histories if not self.has_ended(each, last)] if before_deaths else []
        yield from self._ends.requirements(killed)
        for edge in edges_without_bytes(self._opened.matching.members):
            # A wait for the end of a process, or a lock of a file that its end released.
            is_of_end = edge.kind in ("end", "lock") and edge.after == edge.event
            if is_of_end and edge.process in killed:
                yield Requirement(edge.process, edge.to_process, (last[edge.process] + 1,), (edge.to_event,))

    # ---- threads ----

    def _need(self, process: int, lane: LaneWait, cut: Cut) -> _Need | None:
        """Return what a thread needs; None: it can go on by itself, or it is not known what it waits for."""
        if lane.waits_for_lock:
            return _Need(LOCK, (process,))
        wait = lane.wait if not lane.is_open else self._open_wait(process)
        if wait is None or self._is_signalled(process, cut):
            return None
        if wait.kind in (RECEIVE, SEND) and self._locks.is_eventfd(wait.ends[0]):
            return self._eventfd(wait, cut)
        if wait.kind == FILE_LOCK and (holders := self._locks.holders(process, wait, cut)):
            return _Need(FILE_LOCK, holders, needs_all=True)
        if wait.kind == CHILD:
            return self._child(process, wait, cut)
        if wait.kind == SEMAPHORE:
            return self._semaphore(process, wait, cut)
        if wait.kind in (RECEIVE, SEND, POLL):
            return self._channels(process, wait, cut)
        return _Need(wait.kind, (), by_outside=True)

    def _is_signalled(self, process: int, cut: Cut) -> bool:
        """Whether a signal lets a process go on, or ends it: one that was sent to it, a timer's, or a child's."""
        history, position = self.histories[process], cut[process]
        if history.has_timer(position, self._opened.member(process).branch):
            return True
        sent = sum(row.begun < cut.get(row.process, 0) for row in self._sent.get(process, ()))
        handled = sum(0 < row.event <= position for row in self._handled.get(process, ()))
        if sent > handled:
            return True
        return history.handles_children(position) and any(
            row.parent == process and 0 < row.event <= position and not 0 < row.waited <= position
            for row in self._rows.values()
        )

    @cached_property
    def _signals(self) -> tuple[dict[int, list[BareTransfer]], dict[int, list[BareTransfer]]]:
        sent: defaultdict[int, list[BareTransfer]] = defaultdict(list)
        handled: defaultdict[int, list[BareTransfer]] = defaultdict(list)
        for row in bare_transfers(self._opened.matching.members, "signal"):
            target, _, signum = row.end.own.partition(":")
            if row.is_receive:
                handled[row.process].append(row)
            elif signum != "0" and (known := self._process(target)) is not None:
                sent[known.number].append(row)
        return sent, handled

    @property
    def _sent(self) -> dict[int, list[BareTransfer]]:
        """For each process the calls that sent a signal to it."""
        return self._signals[0]

    @property
    def _handled(self) -> dict[int, list[BareTransfer]]:
        """For each process the handlers of such signals."""
        return self._signals[1]

    def _open_wait(self, process: int) -> Wait | None:
        """Return what a process waits for in the call that never ended, if it is the only one."""
        member = self._opened.member(process)
        columns = member.transfers
        rows = [row for row, event in enumerate(columns.event) if not event]
        if len(rows) == 2:  # one call gives a lock up in order to get another one
            kinds = [member.endpoints[columns.endpoint[row] - 1].kind for row in rows]
            rows = rows[1:] if kinds == [LOCK_OF_FILE] * 2 else rows
        if len(rows) != 1 or columns.begun[rows[0]] != member.events:
            return None
        number, flags = columns.endpoint[rows[0]], columns.flags[rows[0]]
        endpoint = member.endpoints[number - 1]
        if endpoint.kind == "call":  # with a timeout it ends by itself
            return self.histories[process].open_call(endpoint.own) if not endpoint.peer else None
        if endpoint.kind == "process":
            known = self._process(endpoint.own)
            return Wait(CHILD, child=known.pid if known is not None else 0)
        if endpoint.kind == SEMAPHORE:
            return Wait(SEMAPHORE, semaphore=number)
        kind = RECEIVE if flags & RECEIVES else SEND
        descriptor = dict(columns.descriptors).get(rows[0], -1)
        ends = (self.histories[process].table.ends.get(descriptor),)
        if endpoint.kind == LOCK_OF_FILE:
            return Wait(FILE_LOCK, ends, lock=number)
        if endpoint.kind == STREAM:  # a close
            return None
        return Wait(kind, ends, is_to_the_end=bool(flags & PARTLY_KNOWN))

    def _eventfd(self, wait: Wait, cut: Cut) -> _Need | None:
        writers = self._locks.writers(wait.ends[0], cut) if wait.kind == RECEIVE and wait.ends[0] is not None else set()
        return _Need(EVENTFD_WRITE, writers) if writers else None

    def _process(self, text: str) -> GroupProcess | None:
        """Return the process whose number a text has."""
        return self._rows.get(int(text)) if text.isdecimal() and len(text) < _LONGEST else None

    def _channels(self, process: int, wait: Wait, cut: Cut) -> _Need | None:
        holders: set[int] = set()
        by_outside = False
        for end in wait.ends:
            others = self._ends.others(end) if end is not None else None
            if end is None or others is None:
                by_outside = True
                continue
            if wait.kind != SEND and not wait.is_to_the_end and self._ends.has_bytes(end, process, cut):
                return None
            found = self._holders(others, cut)
            if not found:
                return None  # it is the end of the stream, or a broken pipe
            if 0 in found:
                return None  # a program without a recording has it, and can act
            holders |= (found | self._holders(others, cut, perhaps=True)) - {0}
        name = self._ends.name(wait.ends[0]) if len(wait.ends) == 1 and wait.ends[0] is not None else ""
        return _Need(wait.kind, holders, name, by_outside, wait.is_to_the_end)

    def _holders(self, ends: Collection[ChannelEnd], cut: Cut, *, perhaps: bool = False) -> set[int]:
        """Return the processes that hold any of some ends in a cut, or perhaps do; 0: one without a recording."""

        def has_ended(number: int) -> bool:
            return self.has_ended(number, cut)

        return {each for end in ends for each in self._ends.holders(end, cut, has_ended, perhaps=perhaps)}

    # ---- processes ----

    def has_ended(self, process: int, cut: Cut) -> bool:
        """Whether a process had ended in a cut: by itself, by a signal of another one, or by becoming another one."""
        if cut.get(process, 0) < self._cuts.finder.last[process]:
            return False
        if self.histories[process].has_ended or process in self._images:
            return True
        return any(cut.get(row.process, 0) > row.begun for row in self._ends.kills.get(process, ()))

    @cached_property
    def _images(self) -> dict[int, int]:
        """The processes that replaced themselves, each with what it became."""
        return {row.parent: row.number for row in self._rows.values() if row.how == "exec" and row.parent < row.number}

    def kills(self) -> Iterator[tuple[int, int]]:
        """Yield the processes that killed others, each with its position before that."""
        for row in (row for rows in self._ends.kills.values() for row in rows):
            yield row.process, row.begun

    def _child(self, process: int, wait: Wait, cut: Cut) -> _Need | None:
        holders = []
        for row in self._rows.values():
            is_child = row.parent == process and row.how != "exec" and 0 < row.event <= cut[process]
            if not is_child or (wait.child and row.pid != wait.child) or 0 < row.waited <= cut[process]:
                continue
            number = row.number
            while number in self._images and cut.get(self._images[number], 0):
                number = self._images[number]
            if number not in self.histories or not cut.get(number, 0) or self.has_ended(number, cut):
                return None  # it is not known when it ends, it begins, or it has ended
            holders.append(number)
        return _Need(CHILD, holders) if holders else None

    # ---- semaphores ----

    @cached_property
    def _semaphores(self) -> dict[str, list[BareTransfer]]:
        found: defaultdict[str, list[BareTransfer]] = defaultdict(list)
        for row in bare_transfers(self._opened.matching.members, SEMAPHORE):
            found[row.end.own].append(row)
        return found

    def _semaphore(self, process: int, wait: Wait, cut: Cut) -> _Need | None:
        if not wait.semaphore:
            return None
        name = self._opened.member(process).endpoints[wait.semaphore - 1].own
        made_with = next((each.semaphores[name] for each in self.histories.values() if name in each.semaphores), None)
        if made_with is None:
            return None
        value, has = _uses(self._semaphores.get(name, ()), made_with, cut)
        if value > 0:
            return None
        if made_with == 1 and all(count >= 0 for count in has.values()):  # a lock: who has it releases it
            return _Need(SEMAPHORE, [each for each, count in has.items() if count > 0], name)
        return _Need(SEMAPHORE, [each for each in self.histories if not self.has_ended(each, cut)], name)


def _threads(nodes: set[Node]) -> set[Node]:
    return {node for node in nodes if node[1] != ANY}


def _uses(rows: Sequence[BareTransfer], made_with: int, cut: Cut) -> tuple[int, dict[int, int]]:
    """Return the value of a semaphore in a cut, and how often each process had acquired it and not released it."""
    value = made_with
    has: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        position = cut.get(row.process, 0)
        if row.is_receive and 0 < row.event <= position:
            value, has[row.process] = value - 1, has[row.process] + 1
        elif not row.is_receive and row.begun < position:
            value, has[row.process] = value + 1, has[row.process] - 1
    return value, has
