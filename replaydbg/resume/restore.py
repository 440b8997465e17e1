"""Open what a plan reopens, and tell the core which number each of it has."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.resources.kinds import (
    FileLock,
    OpenedEpoll,
    OpenedMemory,
    OpenedPidFd,
    OpenedPipe,
    OpenedSocket,
    OpenResource,
    Resources,
    Unknown,
)
from replaydbg.resume.conversation import CoreAnswer
from replaydbg.resume.plan_rows import CannotReopen, Fate, PlanRow
from replaydbg.resume.power_loss.recovered_files import Leftover
from replaydbg.resume.reopening.file_locks import find_holder, take_lock
from replaydbg.resume.reopening.patience import reopen_patiently
from replaydbg.resume.reopening.remade_memory import give_name
from replaydbg.resume.reopening.reopen_others import set_pipe_mode
from replaydbg.resume.reopening.reopen_sockets import set_mode
from replaydbg.resume.reopening.rules import is_of_core, is_standard, mapped_number, standard_number
from replaydbg.resume.reopening.truncation import Truncation

Reopen = Callable[[OpenResource], "int | None"]
"""Returns a descriptor for a resource, or None to leave it to its rule."""
ByRule = Callable[[OpenResource], int]
"""Returns a descriptor for a resource by its rule. Raises CannotReopen."""

_TIMERS = {"real": signal.ITIMER_REAL, "virtual": signal.ITIMER_VIRTUAL, "prof": signal.ITIMER_PROF}


@dataclass(frozen=True, slots=True)
class Placed:
    """A new descriptor and the numbers at which the program has it."""

    fd: int
    opened: OpenResource


class Restorer:
    """The descriptors of a program that goes live, as they are opened; all are closed with `stack`."""

    def __init__(
        self,
        resources: Resources,
        stack: ExitStack,
        reopen: Reopen,
        by_rule: ByRule = reopen_patiently,
        kept_children: frozenset[int] = frozenset(),
    ) -> None:
        """`reopen` is tried before the rule of each resource; `kept_children` are those that are not lost."""
        self._by_rule = by_rule
        self._kept_children = kept_children
        self._resources = resources
        self._stack = stack.enter_context(ExitStack())
        self._reopen = reopen
        self._by_number = resources.by_number()
        self._pairs: dict[int, tuple[int, ...]] = {}
        """Of a pipe or a pair of sockets, by the lowest number of its other end: what is made for that end."""
        self.placed: list[Placed] = []
        self._truncation = Truncation((), stack)
        self._input_position: int | None = None
        """Where our standard input continues."""
        self._directory: int | None = None
        self._umask: int | None = None
        self._mapped: list[tuple[int, int]] = []
        """Of each mapping: the event that made it, the index of what was placed, and its own descriptor."""
        self._locked_ranges: list[FileLock] = []
        """Locks that belong to the process: the core takes them."""

    def reopen_all(self, rows: Iterable[PlanRow]) -> list[tuple[PlanRow, str]]:
        """Open what the rows reopen or lose; return those that cannot be opened, each with the reason."""
        failed = []
        for row in rows:
            if row.opened is None or row.fate is Fate.REFUSED:
                continue
            if row.input_position is not None:
                self._input_position = row.input_position
            try:
                self._add(row.opened)
            except CannotReopen as error:
                failed.append((row, str(error)))
        failed += [(row, reason) for row, reason in self._take_locks(rows)]
        failed += self._find_mapped(rows)
        return failed

    def try_refused(self, rows: Iterable[PlanRow]) -> list[PlanRow]:
        """Let the hooks open what no rule can; return the rows that stay refused."""
        left = []
        for row in rows:
            if row.fate is not Fate.REFUSED:
                continue
            fd = self._reopen(row.opened) if row.opened is not None else None
            if fd is None or row.opened is None:
                left.append(row)
            else:
                self._place(fd, row.opened)
        return left

    def _add(self, opened: OpenResource) -> None:
        if is_standard(opened):
            try:
                self._place(os.dup(standard_number(opened)), opened)
            except OSError as error:  # ours is closed
                raise CannotReopen(error.strerror or str(error)) from error
            return
        fd = self._reopen(opened)
        if fd is None:
            fd = self._end_of_pair(opened)
        self._place(fd if fd is not None else self._by_rule(opened), opened)

    def _place(self, fd: int, opened: OpenResource) -> None:
        self._stack.callback(os.close, fd)
        self.placed.append(Placed(fd, opened))

    def _end_of_pair(self, opened: OpenResource) -> int | None:
        """Return one end of a new pipe or pair of sockets whose other end the program has, too; None: it has not."""
        others = opened.other_end if isinstance(opened, OpenedPipe) and opened.path is None else ()
        if isinstance(opened, OpenedSocket):
            others = opened.pair or ()
        if not others:
            return None
        made = self._pairs.pop(min(opened.handle.numbers), None)
        if made is None:
            mine, other = _new_pair(opened)
            self._pairs[min(others)] = (other,)
        else:
            (mine,) = made
        if isinstance(opened, OpenedPipe):
            set_pipe_mode(mine, opened)
        elif isinstance(opened, OpenedSocket):
            set_mode(mine, opened)
        return mine

    def open_leftovers(self, leftovers: Iterable[Leftover]) -> None:
        """Open the files that are truncated when the program goes live. Raises CannotReopen."""
        self._truncation = Truncation(leftovers, self._stack)

    def make_ready(self) -> None:
        """Do the last that can fail: truncate files, name memory that was made again, and move to where the standard
        input continues. Raises CannotReopen.
        """
        self._name_memory()
        if self._input_position is not None:
            os.lseek(0, self._input_position, os.SEEK_SET)  # the program has a copy, with the same offset
        self._truncation.perform()

    def _name_memory(self) -> None:
        """Give shared memory that was made again its name: until then nobody has seen it. Raises CannotReopen."""
        for each in self.placed:
            if isinstance(each.opened, OpenedMemory) and each.opened.is_shared_memory and not each.opened.is_unlinked:
                give_name(each.fd, each.opened)

    def close(self) -> None:
        """Close our descriptors: the program has its own, and what it closes must be closed."""
        self._stack.close()

    def _take_locks(self, rows: Iterable[PlanRow]) -> list[tuple[PlanRow, str]]:
        by_number = {number: each.fd for each in self.placed for number in each.opened.handle.numbers}
        failed = []
        planned = [row for row in rows if row.kind == "locks"]
        for lock, row in zip(self._resources.locks, planned, strict=True):
            fds = [by_number[number] for number in lock.descriptors if number in by_number]
            if row.fate is Fate.REFUSED or not fds:
                continue
            if lock.kind == "lockf":
                holder = find_holder(fds[0], lock)
                if holder is None:
                    self._locked_ranges.append(lock)
                else:
                    failed.append((row, f"{holder} holds it"))
                continue
            try:
                take_lock(fds[0], lock)
            except OSError:
                failed.append((row, "another process holds it"))
        return failed

    def _find_mapped(self, rows: Iterable[PlanRow]) -> list[tuple[PlanRow, str]]:
        failed = []
        planned = [row for row in rows if row.kind == "mappings"]
        for mapping, row in zip(self._resources.mappings, planned, strict=True):
            for each in self.placed:
                number = mapped_number(mapping, each.opened)
                if number is None or isinstance(mapping.length, Unknown) or row.fate is Fate.REFUSED:
                    continue
                if os.fstat(each.fd).st_size < mapping.offset + mapping.length:
                    failed.append((row, "the file is shorter than what was mapped"))
                else:
                    self._mapped.append((mapping.origin.event, number))
        return failed

    def enter(self, directory: str | None, umask: int | None) -> None:
        """Let the program have a working directory, and a mask for new files; None: it keeps that of its replay.

        Raises OSError if the directory cannot be opened.
        """
        if directory is not None:
            self._directory = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            self._stack.callback(os.close, self._directory)
        self._umask = umask

    def match_modes(self, pid: int, is_common: Callable[[int], bool]) -> None:
        """Let the calls of sockets wait, or not, as those of the replay `pid` do.

        A program sets that without a call that is recorded (`setblocking`); the replay does it, too, with descriptors
        that stand for the sockets. A descriptor that other processes have in common need not wait if one of them has
        said so: the replays of the others do not know of it.
        """
        for each in self.placed:
            if isinstance(each.opened, OpenedSocket):
                number = min(each.opened.handle.numbers)
                flags = _flags_of(pid, number)
                if flags is not None and (flags & os.O_NONBLOCK or not is_common(number)):
                    os.set_blocking(each.fd, not flags & os.O_NONBLOCK)

    def move(self, moved: Mapping[int, int]) -> None:
        """Move the offset of files past what was written in flight."""
        for each in self.placed:
            for number in each.opened.handle.numbers:
                if moved.get(number):
                    os.lseek(each.fd, moved[number], os.SEEK_CUR)

    def send(self, answer: CoreAnswer, fds: Sequence[int], real: Collection[int]) -> None:
        """Tell the core what is where; `fds` are the numbers that the program has open, of which `real` stay."""
        directory = [] if self._directory is None else [self._directory]
        answer.pass_descriptors([*(each.fd for each in self.placed), *directory])
        if directory:
            answer.enter(len(self.placed))
        if self._umask is not None:
            answer.set_umask(self._umask)
        self._send_children(answer)
        used = set(real)
        for index, each in enumerate(self.placed):
            for descriptor in each.opened.handle.descriptors:
                if descriptor.number in real:
                    continue
                # For a standard stream the log does not have it: it is inherited by programs that are started.
                closes = descriptor.close_on_exec is True
                answer.put(descriptor.number, index, close_on_exec=closes)
                used.add(descriptor.number)
        of_core = {number for number, opened in self._by_number.items() if is_of_core(opened)}
        for number in sorted({*fds, *self._by_number} - used - of_core):
            answer.close(number)
        for each in self.placed:
            if isinstance(each.opened, OpenedEpoll) and not isinstance(each.opened.watched, Unknown):
                for watched in each.opened.watched:
                    if watched.number in used:
                        answer.watch(min(each.opened.handle.numbers), watched.number, watched.mask)
        self._send_others(answer)

    def _send_others(self, answer: CoreAnswer) -> None:
        for timer in self._resources.timers:
            if not isinstance(timer.remaining, Unknown):
                value = max(int(timer.remaining * 1e9), 1000)  # of 0 nothing would come
                answer.set_timer(_TIMERS[timer.kind], value, int(timer.interval * 1e9))
        for event, number in self._mapped:
            answer.map_file(event, number)
        for lock in self._locked_ranges:
            name = lock.path if isinstance(lock.path, str) else "a file"
            number, is_exclusive = min(lock.descriptors), lock.is_exclusive
            answer.lock_range(number, lock.start, lock.length, name, is_exclusive=is_exclusive)

    def _send_children(self, answer: CoreAnswer) -> None:
        """Let processes stand for children, before descriptors of these are put anywhere."""
        known = set(self._kept_children)
        for child in self._resources.children:
            if not child.is_reaped and child.pid not in known:
                answer.lose_child(child.pid)
                known.add(child.pid)
        for index, each in enumerate(self.placed):
            if isinstance(each.opened, OpenedPidFd) and each.opened.pid in known:
                flags = each.opened.handle.flags
                is_nonblocking = isinstance(flags, int) and bool(flags & os.O_NONBLOCK)
                answer.follow_process(index, each.opened.pid, is_nonblocking=is_nonblocking)


def _flags_of(pid: int, number: int) -> int | None:
    """Return the flags of a descriptor of a process; None: it has none such, or they cannot be read."""
    try:
        lines = Path(f"/proc/{pid}/fdinfo/{number}").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1], 8) for line in lines if line.startswith("flags:")), None)


def _new_pair(opened: OpenResource) -> tuple[int, int]:
    """Return both ends of a new pipe or pair of sockets, that of `opened` first."""
    if isinstance(opened, OpenedSocket):
        assert isinstance(opened.family, int) and isinstance(opened.type, int)
        one, other = socket.socketpair(opened.family, opened.type)
        return one.detach(), other.detach()
    assert isinstance(opened, OpenedPipe)
    reader, writer = os.pipe()
    return (reader, writer) if opened.side == "read" else (writer, reader)
