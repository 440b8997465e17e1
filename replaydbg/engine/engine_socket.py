"""A connection to a process that runs the recorded program; everything that it sends is checked."""

from __future__ import annotations

import math
import os
import select
import socket
import stat
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from replaydbg.errors import EngineLost, ForgedMessage

MOST_MESSAGE = 16 << 20
"""Bytes of a message: the longest that the engine sends has 1,000 frames with long names, and all threads."""

ANSWER_SECONDS = 60.0
"""A stopped process answers in a fraction of a second, or in a few seconds with a very large program."""

_HEAD = struct.Struct("<I")
_MOST_WAITING = 4
"""Descriptors that may wait for the rest of their messages; the engine sends one at a time."""

_IDLE = 0.05
"""Seconds between two calls of `idle`."""


class Received(NamedTuple):
    """A message."""

    kind: str
    """Its letter: see protocol.py."""
    payload: bytes
    fd: int | None
    """The descriptor that came with it, which is the receiver's now."""


class EngineSocket:
    """The debugger's end of a socket. Not for several threads at once."""

    def __init__(self, fd: int) -> None:
        """Take the socket `fd`."""
        self._socket = socket.socket(fileno=fd)
        self._buffer = bytearray()
        self._passed: deque[int] = deque()

    @classmethod
    def received(cls, fd: int) -> EngineSocket:
        """Take a descriptor that a process has sent. Raises ForgedMessage, and closes it, if it is of another kind."""
        if not _is_connection(fd):
            os.close(fd)
            raise ForgedMessage("it sent a descriptor that is not a socket of the replay")
        os.set_blocking(fd, True)
        return cls(fd)

    def close(self) -> None:
        """Close the socket, and what came through it and was not wanted; again is harmless."""
        self._socket.close()
        while self._passed:
            os.close(self._passed.popleft())

    def fileno(self) -> int:
        """Return the descriptor of the socket; -1 if it is closed."""
        return self._socket.fileno()

    @property
    def has_gone(self) -> bool:
        """Whether the other end is closed, or this one."""
        return self._socket.fileno() < 0 or bool(_events(self._socket, 0))  # a hang-up is reported in any case

    @property
    def is_silent(self) -> bool:
        """Whether the other end is open and nothing waits to be read."""
        return self._socket.fileno() >= 0 and not self._buffer and not _events(self._socket, select.POLLIN)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Send a message. Raises EngineLost, also if the other end does not read it."""
        left = memoryview(_HEAD.pack(len(payload) + 1) + kind + payload)
        until = time.monotonic() + ANSWER_SECONDS
        poll = select.poll()  # select() knows no descriptors from 1,024 on
        try:
            poll.register(self._socket, select.POLLOUT)
            while left:
                try:
                    left = left[self._socket.send(left, socket.MSG_DONTWAIT) :]
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise EngineLost(f"it read nothing for {ANSWER_SECONDS:.0f} s") from None
                    poll.poll(1000)
        except (OSError, ValueError):  # it is closed, at either end
            raise EngineLost("it has ended") from None

    def send_descriptors(self, fds: Sequence[int]) -> None:
        """Send copies of descriptors, with one byte. Raises EngineLost."""
        try:
            socket.send_fds(self._socket, [b"F"], fds)
        except (OSError, ValueError):  # it is closed, at either end
            raise EngineLost("it has ended") from None

    def receive(
        self, idle: Callable[[], None] | None = None, *, most: int = MOST_MESSAGE, seconds: float = math.inf
    ) -> Received:
        """Return the next message, of at most `most` bytes.

        `idle` is called now and then, and may raise to cancel. Raises EngineLost, also if nothing comes for `seconds`,
        and ForgedMessage.
        """
        until = time.monotonic() + seconds
        size = _HEAD.unpack(self._take(_HEAD.size, idle, until))[0]
        if not 1 <= size <= most:
            raise ForgedMessage(f"it sent a message of {size:,} bytes, but at most {most:,} are allowed")
        body = self._take(size, idle, until)
        fd = self._passed.popleft() if self._passed else None
        if self._passed and not self._buffer:
            raise ForgedMessage("it sent more descriptors than messages")
        return Received(chr(body[0]), body[1:], fd)

    def _take(self, n: int, idle: Callable[[], None] | None, until: float) -> bytes:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        is_bounded = idle is not None or until < math.inf
        looked_at = time.monotonic()
        while len(self._buffer) < n:
            is_there = poll.poll(_IDLE * 1000 if is_bounded else None)
            # By the clock, not by silence alone: a process that sends byte by byte must time out, too.
            if is_bounded and (now := time.monotonic()) >= looked_at + _IDLE:
                looked_at = now
                if now > until:
                    raise EngineLost("it did not answer in time")
                if idle is not None:
                    idle()
            if is_there:
                self._read()
        taken = bytes(memoryview(self._buffer)[:n])
        del self._buffer[:n]
        return taken

    def _read(self) -> None:
        how = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
        flags = 0
        try:
            data, fds, flags, _ = socket.recv_fds(self._socket, 1 << 16, 1, how)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        self._passed.extend(fds)
        if not data:
            raise EngineLost("it has ended")
        if flags & socket.MSG_CTRUNC or len(self._passed) > _MOST_WAITING:
            raise ForgedMessage("it sent more descriptors than a message has")
        self._buffer += data


def _events(of: socket.socket, wanted: int) -> list[tuple[int, int]]:
    poll = select.poll()
    poll.register(of, wanted)
    return poll.poll(0)


def _is_connection(fd: int) -> bool:
    """Whether `fd` is a local stream socket that does not listen, as socketpair() makes them."""
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        return False
    with socket.socket(fileno=os.dup(fd)) as found:
        is_stream = found.family == socket.AF_UNIX and found.type == socket.SOCK_STREAM
        return is_stream and not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
