"""Whose turn it is among the processes of a future: the page that they share with us, see `native/future/turns.h`."""

from __future__ import annotations

import os
import random
import signal
import struct
from contextlib import ExitStack
from mmap import mmap

from replaydbg.replay.unpacked_logs import memory_file

_HEAD = struct.Struct("<6I6Q")
_MEMBER = struct.Struct("<IiQQQQQ")
_CHANGED = struct.Struct("<QII")
_COUNT, _ARRIVED, _CHANCE, _IS_HUNG, _CHOOSES, _UNUSED, _NOW, _RANDOM, _CHANGES, _ENDS = range(10)
_HAS_ENDED = 4
MOST_MEMBERS = 64
_MOST_CHANGED = 4096
MOST_SEMAPHORES = 256
_SEMAPHORE, _BOARD, _READINGS = 32, 8192, 128
"""Bytes of a `sem_t`, of what new connections need, and of the readings of clocks."""
_CHANCES = (0, 64, 256, 512)
"""Of 1,024: how often a process lets another one run at an event. One of these is drawn for each future."""


class TurnPage:
    """The page and the eventfds of one future; closed with `stack`."""

    def __init__(self, count: int, seed: int, stack: ExitStack) -> None:
        """`count` processes take turns; their order is drawn from `seed`."""
        draw = random.Random(f"turns {seed}")
        file = stack.enter_context(memory_file("turns"))
        rest = _MOST_CHANGED * _CHANGED.size + MOST_SEMAPHORES * _SEMAPHORE + _BOARD + _READINGS
        file.truncate(_HEAD.size + MOST_MEMBERS * _MEMBER.size + rest)
        self.fd = file.fileno()
        self._page = stack.enter_context(mmap(self.fd, 0))
        head = (count, 0, draw.choice(_CHANCES), 0, 0, 0, 0, draw.getrandbits(64), 1, 0, 0, 0)
        _HEAD.pack_into(self._page, 0, *head)
        self.turns = [os.eventfd(0, os.EFD_CLOEXEC) for _ in range(count)]
        """One for each process, in their order: it can be read when the turn is passed on to it."""
        for fd in self.turns:
            stack.callback(os.close, fd)

    def has_ended(self, index: int, status: int, parent: int) -> None:
        """Note that the process with the turn has ended, `status` as `waitpid` has it, and let the others go on.

        `parent` is the index of its parent, which gets SIGCHLD; -1: that does not run.
        """
        head = list(_HEAD.unpack_from(self._page))
        head[_ENDS] += 1
        head[_CHANGES] += 1
        head[_CHOOSES] = 1
        _HEAD.pack_into(self._page, 0, *head)
        _, _, deadline, looked, _, signals, sent = self._member(index)
        self._write(index, _HAS_ENDED, status, deadline, looked, head[_ENDS], signals, sent)
        if parent >= 0:
            *facts, signals, sent = self._member(parent)
            bit = 1 << signal.SIGCHLD - 1
            self._write(parent, *facts, signals | bit, sent | bit)
        left = [each for each in range(head[_COUNT]) if self._member(each)[0] != _HAS_ENDED]
        if left:
            os.eventfd_write(self.turns[left[0]], 1)  # it chooses who goes on

    @property
    def is_hung(self) -> bool:
        """Whether all processes wait, and none for a time."""
        return bool(_HEAD.unpack_from(self._page)[_IS_HUNG])

    def was_sent(self, index: int, number: int) -> bool:
        """Whether another process has sent a signal to one."""
        return bool(self._member(index)[-1] >> (number - 1) & 1)

    def _write(self, index: int, *facts: int) -> None:
        _MEMBER.pack_into(self._page, _HEAD.size + index * _MEMBER.size, *facts)

    def _member(self, index: int) -> tuple[int, ...]:
        return _MEMBER.unpack_from(self._page, _HEAD.size + index * _MEMBER.size)
