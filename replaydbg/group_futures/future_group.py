"""One future of a group: a copy of each process, with the channels between them, and what came of all of them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from replaydbg.classes import dataclass, replace
from replaydbg.distributed.descriptors import ChannelEnd
from replaydbg.errors import NoFutures
from replaydbg.futures.future import Future, FutureVerdict, RunningFuture
from replaydbg.futures.standing import StandingReplay
from replaydbg.group_futures.turn_page import TurnPage
from replaydbg.log.reader import Recording
from replaydbg.recovery.made_ends import MadeEnds, wide_pair
from replaydbg.recovery.shared_ends import SharedEnds
from replaydbg.replay.unpacked_logs import memory_file
from replaydbg.resources.kinds import OpenResource
from replaydbg.resume.plan_rows import CannotReopen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

MOST_DESCRIPTORS = 253
"""The most that one message carries (unix(7)): those of a copy come in one."""


@dataclass(frozen=True, slots=True)
class StandingMember:
    """A process that stands at the cut."""

    number: int
    """Its number in the group."""
    recording: Recording
    standing: StandingReplay
    ends: Mapping[int, OpenResource]
    """The descriptors that lead to what it shares with others, and what it has there."""
    waiting: tuple[ChannelEnd, ...]
    """The connections that it has not accepted yet, by the ends that have connected."""
    children: tuple[int, ...]
    """For each child that it can wait for the index of its process among those that stand; -1: it had ended before."""
    transfers: bytes
    """The file of its transfers, up to the cut."""


@dataclass(frozen=True, slots=True)
class StandingGroup:
    """All processes of a group that go on, each of which stands at the cut."""

    name: str
    """The group's name in commands."""
    members: tuple[StandingMember, ...]
    shared: SharedEnds
    sent: Mapping[tuple[int, int], bytes]
    """The bytes in flight that no recording has, by process and event of the send."""
    pairs: int
    """How many new connections there can be between its processes."""
    page: bytes
    """The rows of the group, as its processes have them mapped."""


class RunningGroup:
    """A future of a group that runs. Call `look` when one of `pidfds` can be read, or `kill` it."""

    def __init__(self, group: StandingGroup, seed: int) -> None:
        """Start it. Raises NoFutures."""
        self.seed = seed
        self._group = group
        self._stack = ExitStack()
        self.members: list[RunningFuture] = []
        """The processes, in the order of those that stand."""
        self.transfers: list[BinaryIO] = []
        """Their files of transfers, in the same order."""
        self.found: dict[int, Future] = {}
        """The results of those that have ended, by their indices, in the order of their ends."""
        self.began = time.monotonic()
        try:
            self._start()
        except BaseException:
            self.kill()
            raise

    def _start(self) -> None:
        group, stack = self._group, self._stack
        self._page = TurnPage(len(group.members), self.seed, stack)
        self._rows = stack.enter_context(memory_file("rows"))
        self._rows.write(group.page)
        self._rows.flush()
        with ExitStack() as ours:
            try:
                made = MadeEnds(group.shared, ours, None, over_pairs=True)
                made.fill(group.sent)
            except CannotReopen as error:
                raise NoFutures(group.name, str(error)) from error
            lives = [os.pipe() for _ in group.members]
            for fd in (each for pair in lives for each in pair):
                ours.callback(os.close, fd)
            pairs = [ours.enter_context(each) for _ in range(group.pairs) for each in wide_pair()]
            for index, member in enumerate(group.members):
                self._start_member(index, member, made, lives, [each.fileno() for each in pairs])

    def _start_member(
        self, index: int, member: StandingMember, made: MadeEnds, lives: Sequence[tuple[int, int]], pairs: Sequence[int]
    ) -> None:
        transfers = self._stack.enter_context(memory_file("transfers"))
        transfers.write(member.transfers)
        transfers.flush()
        self.transfers.append(transfers)
        readers = [lives[each][0] if each >= 0 else lives[index][0] for each in member.children]
        with ExitStack() as copies:
            ends = []
            for number, opened in member.ends.items():
                fd = made.copy(self._group.shared.tables[member.number][number], opened)
                assert fd is not None, (member.number, number)
                copies.callback(os.close, fd)
                ends.append(fd)
            own = [self._page.fd, self._rows.fileno(), transfers.fileno(), lives[index][1]]
            waiting = [made.waiting[each] for each in member.waiting]
            more = [*own, *self._page.turns, *readers, *ends, *waiting, *pairs]
            seed = (self.seed + (index + 1) * 0x9E3779B97F4A7C15) % (1 << 63)
            self.members.append(RunningFuture(member.standing, seed, more=more))

    @property
    def pidfds(self) -> list[int]:
        """Those of the processes that run: each can be read when it has ended."""
        return [each.pidfd for index, each in enumerate(self.members) if index not in self.found]

    def is_over(self, timeout: float) -> bool:
        """Whether its processes have computed for so many seconds; on a busy machine up to ten times as long."""
        passed = time.monotonic() - self.began
        running = [each for index, each in enumerate(self.members) if index not in self.found]
        computed = sum(each.cpu_seconds for each in self.found.values()) + sum(each.computed() for each in running)
        return passed >= timeout and (passed >= 10 * timeout or computed >= timeout)

    def look(self, *, timeout: float = 0.0) -> Future | None:
        """Take what came of processes that have ended; return what came of all, None while some run.

        `timeout`: it is ended now, because it took longer than so many seconds.
        """
        for index, each in enumerate(self.members):
            if index in self.found or not (timeout or each.has_ended()):
                continue
            future = self._as_sent(index, each.finish(self._group.members[index].recording, timeout=timeout))
            self.found[index] = future
            if future.verdict is FutureVerdict.INCONCLUSIVE or future.is_deadlock:
                is_all = bool(timeout) or self._page.is_hung
                return self._outcome(index, is_all=is_all)  # the others would go on in a world that it has left
            status = future.status << 8 if future.status >= 0 else -future.status
            parents = (at for at, member in enumerate(self._group.members) if index in member.children)
            self._page.has_ended(index, status, next(parents, -1))
        return self._outcome() if len(self.found) == len(self.members) else None

    def _as_sent(self, index: int, future: Future) -> Future:
        """Return what came of a process; one that another one has ended by a signal has ended as it was to."""
        if future.ended_by and self._page.was_sent(index, future.ended_by):
            return replace(future, verdict=FutureVerdict.PASSED, status=-future.ended_by, why="")
        return future

    def _outcome(self, decides: int | None = None, *, is_all: bool = False) -> Future:
        """Return what came of all: that is decided by one process, or the first that failed, or the first of all."""
        if decides is None:
            failed = [index for index, each in self.found.items() if each.verdict is FutureVerdict.FAILED]
            decides = failed[0] if failed else 0
        future = self.found[decides]
        passed = future.verdict is FutureVerdict.PASSED
        main = self.found.get(0, future) if passed else future
        return replace(
            future,
            seed=self.seed,
            process=0 if passed or is_all else self._group.members[decides].number,
            is_of_group=True,
            last_line=main.last_line or future.last_line,
            digest=" ".join(self.found[index].digest for index in sorted(self.found)),
            events=sum(each.events for each in self.found.values()),
            cpu_seconds=sum(each.cpu_seconds for each in self.found.values()),
        )

    def rows(self) -> bytes:
        """Return the group's page, with what its processes have noted there."""
        return os.pread(self._rows.fileno(), len(self._group.page), 0)

    def kill(self) -> None:
        """End its processes, and close the files."""
        for each in self.members:
            each.kill()
        self._stack.close()
