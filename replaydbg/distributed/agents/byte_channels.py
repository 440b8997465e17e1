"""Channels over byte streams: a pair of connected sockets, or the two ends of a pipe."""

from __future__ import annotations

import os
import select

from replaydbg.distributed.agents.marker import from_bytes, to_bytes
from replaydbg.distributed.agents.transports import Transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class HasFileno(Protocol):
        """A socket, or a file."""

        def fileno(self) -> int:
            """Return the descriptor."""
            ...


_LENGTH = 4
"""Bytes of the length before each item, big-endian."""
_MOST = (1 << 8 * _LENGTH) - 1
_READ = 1 << 16


class Stream(Transport):
    """Carries items over a byte stream, each with its length in front, so that one arrives for each that was sent.

    `sending` and `receiving` are the two ends: sockets, files or descriptors. They stay the program's, which closes
    them. Messages are bytes, unless `encode` turns them into bytes and `decode` back.
    """

    def __init__(
        self,
        sending: HasFileno | int,
        receiving: HasFileno | int,
        *,
        encode: Callable[[Any], bytes] | None = None,
        decode: Callable[[bytes], Any] | None = None,
    ) -> None:
        self._sending, self._receiving = sending, receiving
        self._encode, self._decode = encode, decode
        self._read = bytearray()

    def ends(self) -> tuple[object, object]:
        """Return both ends."""
        return self._sending, self._receiving

    def send(self, item: Any) -> None:
        """Write an item; wait if there is no room. Raises OSError."""
        content = to_bytes(item, self._encode)
        if len(content) > _MOST:
            raise ValueError(f"a message in a stream has at most {_MOST - 1} bytes (got {len(content) - 1})")
        rest = memoryview(len(content).to_bytes(_LENGTH, "big") + content)
        descriptor = _descriptor(self._sending)
        while rest:
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:
                _wait(descriptor, select.POLLOUT, None)

    def try_send(self, item: Any) -> bool:
        """Write a marker if there is room: it is shorter than what a writable stream takes at once."""
        if not _wait(_descriptor(self._sending), select.POLLOUT, 0):
            return False
        self.send(item)
        return True

    def receive(self, timeout: float | None) -> Any:
        """Return the next item. Raises OSError, TimeoutError, and EOFError at the end of the stream.

        Each read of a part may wait for `timeout` seconds.
        """
        while (content := self._take()) is None:
            self._fill(timeout)
        return from_bytes(content, self._decode)

    def _take(self) -> bytes | None:
        end = _LENGTH + int.from_bytes(self._read[:_LENGTH], "big")
        if len(self._read) < _LENGTH or len(self._read) < end:
            return None
        content = bytes(self._read[_LENGTH:end])
        del self._read[:end]
        return content

    def _fill(self, timeout: float | None) -> None:
        descriptor = _descriptor(self._receiving)
        if timeout is not None and not _wait(descriptor, select.POLLIN, timeout):
            raise TimeoutError
        try:
            data = os.read(descriptor, _READ)
        except BlockingIOError:
            _wait(descriptor, select.POLLIN, timeout)
            return
        if not data:
            raise EOFError("the stream ended within a message" if self._read else "the stream has ended")
        self._read += data


def _descriptor(end: HasFileno | int) -> int:
    return end if isinstance(end, int) else end.fileno()


def _wait(descriptor: int, event: int, timeout: float | None) -> bool:
    """Wait until a descriptor can be read or written, at most `timeout` seconds; return whether it can."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(None if timeout is None else timeout * 1000))
