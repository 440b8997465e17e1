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
from replaydbg.resources.kinds import OpenedFile, OpenResource
from replaydbg.resume.conversation import CoreAnswer, Due, Settled
from replaydbg.resume.going_live import GoingLive, Listener, ResumeChoices
from replaydbg.resume.hooks import Hooks
from replaydbg.resume.reopening.patience import Waits
from replaydbg.resume.restore import Restorer
from replaydbg.resume.settle import REPEAT
from replaydbg.resume.written import ends_with_last_write

_WRITES = frozenset(f"posix.{name}" for name in ("write", "writev", "pwrite", "pwritev", "sendfile")) | {
    "_io.FileIO.write"
}


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
        own = ResumeChoices(member.position + 1, REPEAT, choices.force)
        super().__init__(plan, own, Listener(waits=waits), hooks, stack)
        self.member = member
        self.table = group.shared.tables[member.number]
        self._made, self._line, self._group = made, group.line, group
        self._restorer = _MemberRestorer(self, stack, kept_children)

    def reopen(self, opened: OpenResource) -> int | None:
        """Return a copy of what the process has in common with others, or what a hook has; None: there is none."""
        fd = self._made.copy(self.table.get(min(opened.handle.numbers)), opened)
        return fd if fd is not None else self._hooks.reopen(opened)

    def is_made(self, number: int) -> bool:
        """Whether a descriptor is one of what processes have in common."""
        return self.table.get(number) in self._made.fds

    def kept(self, real: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of the replay's own pipes that the program keeps."""
        return tuple(each for each in real if not self.is_made(each))

    def decide(self, due: Due) -> list[Settled]:
        """Let all calls be made again that are in the log: so is everything after them. Of others it is found out."""
        if self.member.position >= self._line.opened.member(self.member.number).events:
            return super().decide(due)
        super().decide(_without_calls(due))
        return [Settled(each.thread, is_done=False) for each in due.calls]

    def is_growth_known(self, opened: OpenedFile) -> bool:
        """Whether what a file has at its end is truncated, or another process that appends to it wrote that last.

        Not if any of them has written after the cut: that is written again.
        """
        if any(each.path == opened.absolute for each in self._group.leftovers):
            return True
        if any(act.gate in _WRITES for act in self._group.acts):
            return False
        others = (each for number, each in self._group.plans.items() if number != self.member.number)
        return any(
            isinstance(each, OpenedFile)
            and each.absolute == opened.absolute
            and each.last_write is not None
            and ends_with_last_write(each)
            for other in others
            for each in other.resources.opened
        )

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
