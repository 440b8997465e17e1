"""One process of a group that is resumed: what it has open, and its calls in flight."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from replaydbg.classes import replace
from replaydbg.events.transfers import Endpoint
from replaydbg.record.kept_names import KeptName
from replaydbg.recovery.group_plan import GroupPlan
from replaydbg.recovery.made_ends import MadeEnds
from replaydbg.recovery.recovery_line import LineMember
from replaydbg.recovery.written_files import is_growth_known
from replaydbg.resources.kinds import OpenedFile, OpenResource
from replaydbg.resume.calls.situation import Situation
from replaydbg.resume.checks.files_in_flight import appends_in_flight
from replaydbg.resume.conversation import CallInFlight, CoreAnswer, Due, Settled
from replaydbg.resume.findings import repeat
from replaydbg.resume.going_live import GoingLive, Listener, ResumeChoices
from replaydbg.resume.hooks import Hooks
from replaydbg.resume.reopening.patience import Waits
from replaydbg.resume.restore import Restorer
from replaydbg.resume.settle import REPEAT, SKIP


class MemberRun(GoingLive):
    """One process of the group from the start of its replay to the moment at which it goes live."""

    def __init__(
        self,
        group: GroupPlan,
        member: LineMember,
        made: MadeEnds,
        wanted: tuple[ResumeChoices, Hooks, Waits | None],
        kept_children: frozenset[int],
        stack: ExitStack,
    ) -> None:
        """`made`: what it has in common with others; `kept_children`: those that go on, or can be waited for."""
        choices, hooks, waits = wanted
        plan = group.plans[member.number]
        # Nobody is asked: the programs wait for each other.
        policy = SKIP if choices.policy == SKIP else REPEAT
        own = ResumeChoices(member.position + 1, policy, choices.force)
        super().__init__(plan, own, Listener(waits=waits), hooks, stack)
        self.member = member
        self.table = group.shared.tables[member.number]
        self._made, self._line, self._group = made, group.line, group
        self.appended: dict[str, list[CallInFlight]] = {}
        """The writes in flight of all processes to files that they append to, by path: each can be before the others.
        """
        self._restorer = _MemberRestorer(self, stack, kept_children)

    def reopen(self, opened: OpenResource) -> int | None:
        """Return a copy of what the process has in common with others, or what a hook has; None: there is none."""
        fd = self._made.copy(self.table.get(min(opened.handle.numbers)), opened)
        return fd if fd is not None else self._hooks.reopen(opened)

    def is_common(self, number: int) -> bool:
        """Whether other processes of the group have the same open file or socket at a descriptor."""
        end = self.table.get(number)
        return any(
            end in table.values() for other, table in self._group.shared.tables.items() if other != self.member.number
        )

    def is_made(self, number: int) -> bool:
        """Whether a descriptor is one of what processes have in common."""
        return self.table.get(number) in self._made.fds

    def kept(self, real: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of the replay's own pipes that the program keeps."""
        return tuple(each for each in real if not self.is_made(each))

    def decide(self, due: Due) -> list[Settled]:
        """Let all calls be made again that are in the log: so is everything after them. Of others it is found out."""
        if self._group.goes_on_from_end(self.member):
            return super().decide(due)
        super().decide(_without_calls(due))
        made = tuple(repeat(each, "made after the recovery line, and made again") for each in due.calls)
        self.plan = replace(self.plan, in_flight=made)
        return [Settled(each.thread, is_done=False) for each in due.calls]

    @property
    def is_compensated(self) -> bool:
        """Whether hooks undo what was done after the line, by any process of the group."""
        return bool(self._group.acts and self._hooks.compensators)

    def situation(self) -> Situation:
        """Return the state of the program, with the writes in flight of the others."""
        truncated = frozenset(each.path for each in self._group.leftovers)
        return replace(super().situation(), appended=self.appended, truncated=truncated)

    def appends_in_flight(self, due: Due) -> list[tuple[str, CallInFlight]]:
        """Return its writes in flight to files that it appends to, by path; they are not in its log."""
        if not self._group.goes_on_from_end(self.member):
            return []
        return list(appends_in_flight(due.calls, super().situation()))

    def is_growth_known(self, opened: OpenedFile) -> bool:
        """Whether what a file has at its end is known to be of the group.

        A write in flight of another process is compared with the disk when that one's calls are decided.
        """
        return opened.absolute in self.appended or is_growth_known(self._group, self.member.number, opened)

    def name_ends(self, answer: CoreAnswer) -> None:
        """Let the recording name channels and streams as it did before."""
        for number, endpoint in self._named_ends():
            answer.stand_for_end(number, endpoint)

    def kept_names(self, pid: int) -> Iterator[KeptName]:
        """Yield the same for programs that the process `pid`, in which everything is in its place, may start."""
        for number, endpoint in self._named_ends():
            with suppress(OSError):  # it was left closed, or the process was killed just now
                found = os.stat(f"/proc/{pid}/fd/{number}")  # noqa: PTH116 - not a path that is looked up
                if stat.S_IFMT(found.st_mode):  # the kernel's own, such as eventfds, all have one inode
                    yield KeptName(found.st_dev, found.st_ino, endpoint)

    def _named_ends(self) -> Iterator[tuple[int, Endpoint]]:
        for number, end in self.table.items():
            endpoint = self._line.endpoint(end)
            if endpoint is not None:
                yield number, endpoint


def _without_calls(due: Due) -> Due:
    return replace(due, calls=())


class _MemberRestorer(Restorer):
    """Puts what is shared in its place before anything else is looked at."""

    def __init__(self, run: MemberRun, stack: ExitStack, kept_children: frozenset[int]) -> None:
        super().__init__(run.plan.resources, stack, run.reopen, run.reopen_by_rule, kept_children)
        self._run = run

    def _add(self, opened: OpenResource) -> None:
        if self._run.is_made(min(opened.handle.numbers)):
            fd = self._run.reopen(opened)
            assert fd is not None, opened
            self._place(fd, opened)
        else:
            super()._add(opened)
