"""Replay all processes of a group at once, each in a process of its own, and merge what they print.

No order between them is needed: each replays from its own log. The output comes in the order in which the processes
wrote it when they were recorded, by the tickets of their transfers (docs/explanation/design/groups.md).
"""

from __future__ import annotations

import heapq
import os
import selectors
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from replaydbg.classes import NamedTuple
from replaydbg.log.reader import Recording
from replaydbg.log.transfers import RECEIVES, TO_ERROR, TO_OUTPUT, read_transfers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_PIECE = 1 << 16
_IN_MEMORY = 1 << 20
"""Bytes of a stream that are kept in memory until it is their turn; more are in a file."""


class StreamWrite(NamedTuple):
    """A write to a standard stream of the whole group."""

    ticket: int
    """The clock of the group."""
    process: int
    """The number of the process."""
    stream: int
    """1: standard output, 2: standard error, of that process."""
    length: int
    """Bytes."""
    is_shown: bool
    """Whether it went to a stream of the first process; another process may have read it instead, or a file has it."""


def stream_writes(recording: Recording, process: int, outer: Sequence[str]) -> list[StreamWrite]:
    """Return what a process wrote to its standard streams, in order.

    `outer` are the identities of the streams of the first process (`Header.outputs`). Raises Corrupt.
    """
    endpoints, columns = read_transfers(recording)
    shown = [each.own in outer for each in endpoints]
    found = []
    for index, flags in enumerate(columns.flags):
        stream = 1 if flags & TO_OUTPUT else 2 if flags & TO_ERROR else 0
        if stream and not flags & RECEIVES and columns.event[index]:
            is_shown = shown[columns.endpoint[index] - 1]
            found.append(StreamWrite(columns.ticket[index], process, stream, columns.length[index], is_shown))
    return found


class _Stream:
    """Bytes that a replay has printed on one stream, and whose turn has not come."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by close()
        self._taken = self._size = 0

    @property
    def held(self) -> int:
        return self._size - self._taken

    def put(self, data: bytes) -> None:
        self._file.seek(self._size)
        self._file.write(data)
        self._size += len(data)

    def take(self, length: int) -> Iterator[bytes]:
        left = min(length, self.held)
        while left:
            self._file.seek(self._taken)
            data = self._file.read(min(left, _PIECE))
            self._taken += len(data)
            left -= len(data)
            if self._taken == self._size:
                self._file.seek(0)
                self._file.truncate()
                self._taken = self._size = 0
            yield data

    def close(self) -> None:
        self._file.close()


class OutputMerger:
    """Puts the output of several replays into the recorded order; as a context manager, it closes its files."""

    def __init__(self, writes: Sequence[Sequence[StreamWrite]], show: Callable[[int, bytes], None]) -> None:
        """`writes` has for each process what it wrote; `show` is called with 1 or 2, and bytes."""
        self._order = list(heapq.merge(*writes))
        self._at = 0
        self._show = show
        self._streams: dict[tuple[int, int], _Stream] = {}
        self._ended: set[int] = set()
        self._last_shown = {(each.process, each.stream): each.is_shown for each in self._order}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Forget what is left."""
        for each in self._streams.values():
            each.close()

    def put(self, process: int, stream: int, data: bytes) -> None:
        """Take bytes that the replay of a process has printed."""
        self._stream(process, stream).put(data)
        self._go_on()

    def ends(self, process: int) -> None:
        """Take note that the replay of a process has ended: nothing more comes from it."""
        self._ended.add(process)
        self._go_on()

    def finish(self) -> None:
        """Show what is left when all have ended: bytes of C code that no gate saw."""
        self._go_on()
        for (process, stream), each in sorted(self._streams.items()):
            if self._last_shown.get((process, stream), process == 1):
                for data in each.take(each.held):
                    self._show(stream, data)

    def _stream(self, process: int, stream: int) -> _Stream:
        if (process, stream) not in self._streams:
            self._streams[process, stream] = _Stream()
        return self._streams[process, stream]

    def _go_on(self) -> None:
        while self._at < len(self._order):
            each = self._order[self._at]
            stream = self._stream(each.process, each.stream)
            if stream.held < each.length and each.process not in self._ended:
                return
            for data in stream.take(each.length):
                if each.is_shown:
                    self._show(each.stream, data)
            self._at += 1


class _Running(NamedTuple):
    pid: int
    process: int
    report: list[bytes]


def replay_all(
    processes: Sequence[int], one: Callable[[int, int, int], bytes], merger: OutputMerger, *, width: int
) -> dict[int, bytes]:
    """Replay the processes, `width` at a time; return for each what `one` returned, empty if it was killed.

    `one` is called in a process of its own, with the number and with descriptors for standard output and error.
    """
    reports: dict[int, bytes] = {}
    waiting = list(reversed(processes))
    running: dict[int, _Running] = {}
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < width:
                    _start(waiting.pop(), one, selector, running)
                for key, _ in selector.select():
                    _read(key, selector, merger)
                for pid in [pid for pid in running if not _is_open(pid, selector)]:
                    ended = running.pop(pid)
                    os.waitpid(pid, 0)
                    reports[ended.process] = b"".join(ended.report)
                    merger.ends(ended.process)
        finally:
            for pid in running:  # a Ctrl-C
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGTERM)  # it ends its replay first
                    os.waitpid(pid, 0)
    merger.finish()
    return reports


def _start(
    process: int,
    one: Callable[[int, int, int], bytes],
    selector: selectors.BaseSelector,
    running: dict[int, _Running],
) -> None:
    pipes = [os.pipe() for _ in range(3)]
    pid = os.fork()
    if pid == 0:
        try:
            for reader, _ in pipes:
                os.close(reader)
            data = one(process, pipes[1][1], pipes[2][1])
            with os.fdopen(pipes[0][1], "wb") as report:
                report.write(data)
            os._exit(0)
        finally:
            os._exit(1)
    started = running[pid] = _Running(pid, process, [])
    for stream, (reader, writer) in enumerate(pipes):
        os.close(writer)
        selector.register(reader, selectors.EVENT_READ, (started, stream))


def _read(key: selectors.SelectorKey, selector: selectors.BaseSelector, merger: OutputMerger) -> None:
    started, stream = key.data
    data = os.read(key.fd, _PIECE)
    if not data:
        selector.unregister(key.fd)
        os.close(key.fd)
    elif stream:
        merger.put(started.process, stream, data)
    else:
        started.report.append(data)


def _is_open(pid: int, selector: selectors.BaseSelector) -> bool:
    return any(key.data[0].pid == pid for key in selector.get_map().values())
