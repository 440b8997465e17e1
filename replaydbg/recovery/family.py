"""Start the processes of a group that goes on: each as a child of the process whose child it was.

A process that is to become a replay first forks those of its children, and then replaces itself. So its program is the
parent of the same processes as before, can wait for them, and gets SIGCHLD. In the place of a child that has ended, and
that nobody has waited for, there is a process that ends in the same way.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from replaydbg.launch.process import become, reset_signals
from replaydbg.replay.launcher import ReplayStart

_RECORD = struct.Struct("<ii")
"""A process and its process id, as it reports them."""


@dataclass(frozen=True, slots=True)
class Relative:
    """One process to start."""

    parent: int
    """The number of its parent; 0: the launcher."""
    start: ReplayStart | None
    """Of a replay; None: it has ended, and is only to be waited for."""
    status: int = 0
    """How one that has ended ended: exit code, or minus the number of a signal."""


class Family:
    """The processes of a group, as they are started."""

    def __init__(self, relatives: Mapping[int, Relative]) -> None:
        """`relatives` has each process by its number; a parent that is not among them is the launcher."""
        self._relatives = relatives
        self._children: defaultdict[int, list[int]] = defaultdict(list)
        for number, each in sorted(relatives.items()):
            self._children[each.parent if each.parent in relatives else 0].append(number)
        self._reader, self._writer = os.pipe()
        self._held, self._holder = os.pipe()
        self.pids: dict[int, int] = {}
        """The process id of each."""
        self.own: list[int] = list(self._children[0])
        """Those that are our children."""

    def start(self) -> None:
        """Start all of them. Raises OSError."""
        for number in self._children[0]:
            self._start(number)
        os.close(self._writer)
        self._writer = -1
        data = b""
        while len(data) < _RECORD.size * len(self._relatives):
            piece = os.read(self._reader, 4096)
            if not piece:  # some could not be started; their replays never ask
                break
            data += piece
        self.pids.update(_RECORD.iter_unpack(data[: len(data) // _RECORD.size * _RECORD.size]))

    def let_end(self) -> None:
        """Let those end that had ended before the cut."""
        if self._holder >= 0:
            os.close(self._holder)
            self._holder = -1

    def close(self) -> None:
        """Close our descriptors."""
        self.let_end()
        for fd in (self._reader, self._writer, self._held):
            if fd >= 0:
                os.close(fd)
        self._reader = self._writer = self._held = -1

    def _start(self, number: int) -> None:
        if os.fork():
            return
        try:
            os.write(self._writer, _RECORD.pack(number, os.getpid()))
            for child in self._children[number]:
                self._start(child)
            relative = self._relatives[number]
            if relative.start is None:
                self._end_later(relative.status)
            else:
                start = relative.start
                become(start.command, start.env, start.streams, start.ignored)
        finally:
            os._exit(126)

    def _end_later(self, status: int) -> None:
        """End as `status` says, once the launcher lets us."""
        reset_signals(())
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(self._held, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))
        os.read(0, 1)
        if status < 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
            os.kill(os.getpid(), -status)
        os._exit(status & 0xFF)
