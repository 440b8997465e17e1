"""A replay that stands at a moment, and makes a copy of itself for each future: the past is replayed once."""

from __future__ import annotations

import array
import os
import signal
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

from replaydbg.classes import dataclass
from replaydbg.errors import NoFutures
from replaydbg.futures.known import known_outside
from replaydbg.launch.interruption import postponed
from replaydbg.launch.process import start_process
from replaydbg.log.reader import Recording
from replaydbg.replay.launcher import MOST_WRITTEN, ReplayStart, inheritable, prepare
from replaydbg.replay.result import strict_result
from replaydbg.replay.unpacked_logs import memory_file
from replaydbg.resources.follow import resources_at
from replaydbg.resources.kinds import OpenedEpoll, Unknown

_ORDER = struct.Struct("=QI")
"""To the replay: the seed of a copy, and how many faults follow. The descriptors come with it."""
_ANSWER = struct.Struct("=qq")
"""From it: what it is about, and a number."""
_STANDS, _NOTHING_FOLLOWS, _COPY = 1, 2, 3
_LARGEST_LOG = 1 << 30
"""Bytes of the log of a future: it is in memory."""


@dataclass(frozen=True, slots=True)
class FutureFiles:
    """The files in memory that a future writes to, by their descriptors."""

    log: int
    world: int
    """What it imported that the recorded run did not; empty: nothing."""
    report: int
    """Why it ended without a verdict."""
    ending: int
    """The exception that ended it."""
    output: int
    errors: int
    schedule: int
    """The schedule that it is given, and behind it the decisions that it took; empty: a random one, not reported."""


@dataclass(frozen=True, slots=True)
class GroupOrders:
    """The orders for a process of a group, and the files that it shares with the others."""

    orders: Mapping[str, object]
    """Fields for the core."""
    changed: frozenset[str]
    """Absolute paths that other processes have changed: what the process read of them may be outdated."""
    numbers: frozenset[int]
    """Its descriptors of open files that other processes have as well: their offset is unknown."""


class StandingReplay:
    """A replay that has come to the moment. Close it, which ends its process; futures are children of ours."""

    def __init__(
        self,
        recording: Recording,
        name: str,
        event: int,
        stack: ExitStack,
        *,
        switches: int = 0,
        group: GroupOrders | None = None,
    ) -> None:
        """Replay `recording`, called `name` in commands, up to before `event`; everything is closed with `stack`.

        `switches`: of those switches of threads that come between the event before it and this one, how many are
        replayed, too. `group`: of a process of a group, what it shares with others.

        Raises NoFutures if the program makes no call after that moment, Divergence if its replay differs, NoFence if
        the kernel cannot enclose it, and the errors of `prepare`.
        """
        self._recording, self._name = recording, name
        ours, theirs = socket.socketpair()
        stack.callback(ours.close)
        self._socket = ours
        with ExitStack() as started:
            started.callback(theirs.close)
            self._start = _prepared(recording, event, switches, group, theirs, stack, started)
            with postponed():
                self._pid = start_process(self._start.command, self._start.env, fds=self._start.streams)
                stack.callback(self._end)
        self.event = self._await_moment()
        """The last event that is replayed."""

    def make(self, seed: int, files: FutureFiles, faults: Sequence[bytes] = (), more: Sequence[int] = ()) -> int:
        """Let a copy go on, interleaved by `seed`; return its process id. Raises NoFutures if there can be none.

        `more` are descriptors that it gets besides the files, see `native/future/group_ends.c`.
        """
        order = b"".join((_ORDER.pack(seed, len(faults)), *faults))
        written = (files.log, files.world, files.report, files.ending, files.output, files.errors, files.schedule)
        fds = array.array("i", (*written, *more))
        try:
            self._socket.sendmsg([order], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            kind, number = self._receive()
        except (OSError, struct.error) as error:
            raise NoFutures(self._name, "the process that stands at the moment has ended") from error
        if kind != _COPY or number <= 0:
            reason = os.strerror(-number) if kind == _COPY and -4096 < number < 0 else "its process cannot be copied"
            raise NoFutures(self._name, reason)
        return number

    def _receive(self) -> tuple[int, int]:
        data = b""
        while len(data) < _ANSWER.size:
            piece = self._socket.recv(_ANSWER.size - len(data))
            if not piece:
                break
            data += piece
        kind, number = _ANSWER.unpack(data)
        return kind, number

    def _await_moment(self) -> int:
        try:
            kind, number = self._receive()
        except (OSError, struct.error):
            kind, number = 0, 0
        if kind == _STANDS:
            return number
        if kind == _NOTHING_FOLLOWS:
            raise NoFutures(self._name, "its program makes no call after that moment, so nothing can differ")
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        self._start.report.seek(0)
        report, code = self._start.report.read(MOST_WRITTEN), os.waitstatus_to_exitcode(status)
        result = strict_result(self._recording, code, report, self._start.is_cut, self._name)
        if result.divergence is not None:
            raise result.divergence
        raise NoFutures(self._name, "its replay ended before it came to that moment")

    def _end(self) -> None:
        self._socket.close()
        if not self._pid:
            return
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _prepared(
    recording: Recording,
    event: int,
    switches: int,
    group: GroupOrders | None,
    theirs: socket.socket,
    stack: ExitStack,
    started: ExitStack,
) -> ReplayStart:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    stack.callback(os.close, null)
    fd = os.dup(theirs.fileno())
    os.set_inheritable(fd, True)
    started.callback(os.close, fd)  # or nobody would notice that the process has ended
    known_fd, written = _known(recording, event, group, stack)
    orders: dict[str, object] = {
        "futures_fd": fd,
        "resume_at": event,
        "resume_switches": switches,
        "epolls": _epolls(recording, event),
        "known_fd": known_fd,
        "written": written,
        "max_size": _LARGEST_LOG,
        # Nothing of a future leaves it: the fence of a replay stays up.
        "fence": True,
        **(group.orders if group is not None else {}),
    }
    return prepare(recording, stack, orders, stdout=null, stderr=null, goes_live=True)


def _known(recording: Recording, event: int, group: GroupOrders | None, stack: ExitStack) -> tuple[int, list[int]]:
    """Return the descriptor of a file in memory with what the recording knows of the outside.

    With it come the events whose bytes the replay has to keep.
    """
    file = stack.enter_context(memory_file("known"))
    data, written = known_outside(recording, event, *(() if group is None else (group.changed, group.numbers)))
    file.write(data)
    file.flush()
    return inheritable(stack, file.fileno()), written


def _epolls(recording: Recording, event: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the epoll objects at the moment: their numbers, and what each watches."""
    found = []
    for opened in resources_at(recording, event - 1).opened:
        if isinstance(opened, OpenedEpoll) and not isinstance(opened.watched, Unknown):
            watched = [(each.number, each.mask) for each in opened.watched]
            found += [(number, watched) for number in opened.handle.numbers]
    return found
