"""Read the event log of a program that runs, as it grows: what it has open and has done, as of its last event."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

from replaydbg.errors import Corrupt
from replaydbg.events.stops import StopReason
from replaydbg.events.values import ContentRef
from replaydbg.log.entries.logfile import LOG_HEADER, read_log_header
from replaydbg.log.entries.stream import LogStream
from replaydbg.log.reader import Recording
from replaydbg.resources.follow import ResourceHistory
from replaydbg.resume.past import PastReader
from replaydbg.resume.plan import Plan, RecoveryCost
from replaydbg.resume.preparation import plan_of
from replaydbg.resume.reopening.compare_files import with_contents
from replaydbg.resume.reopening.continued_input import with_digests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_LONGEST = 1 << 36
"""Bytes that are followed at most (MOST_FOLLOWED in the core)."""
_PIECE = 1 << 20
"""Bytes that are read at once."""


class FollowedLog:
    """Reads a growing log, and makes the plan of going live after its last event.

    A program commits whole records only, so each stretch that is read ends with one.
    """

    def __init__(self, recording: Recording, log: BinaryIO, content_fd: int) -> None:
        """`recording` is the live directory, which must stay open. Its files may be unlinked: `log` is its event log,
        and `content_fd` the copies of large files.
        """
        self._path = str(recording.path)
        self._fd = log.fileno()
        self._content_fd = content_fd
        self._position = LOG_HEADER
        self._stream = LogStream(_Pieces(self), total=_LONGEST, stored=_LONGEST, gates=recording.header.gates)
        self._past = PastReader(recording, None)
        self._history = ResourceHistory(recording, ())

    def read(self, most: int) -> bool:
        """Read up to `most` more entries; return whether there were as many. Raises Corrupt."""
        count = 0
        for entry in islice(self._stream.entries(), most):
            self._past.add(entry)
            self._history.apply(entry)
            count += 1
        if self._stream.problem is not None:
            raise Corrupt(self._path, f"its event log {self._stream.problem}")
        return count == most

    def plan(self, name: str) -> Plan:
        """Return the plan of going live after the last event that was read; `name` is that of the recording."""
        header = read_log_header(os.pread(self._fd, LOG_HEADER, 0))
        if header is not None:  # a program that was itself a standby had none when this began
            self._past.start_ns = header.start_ns
        past = self._past.past()
        recovery = RecoveryCost(past.events, header.cpu_ms if header is not None else 0, self._position)
        resources = with_digests(with_contents(self._history.at(None), self._content), self._content)
        return plan_of(name, past.events, past, resources, recovery)

    def _content(self, ref: ContentRef) -> bytes:
        return os.pread(self._content_fd, ref.length, ref.offset)

    def has_ended(self) -> bool:
        """Whether the program had reached its end by the last entry that was read."""
        return self._past.has_ended

    def has_continued(self) -> bool:
        """Whether the program has gone on from a checkpoint, with a log of its own."""
        header = read_log_header(os.pread(self._fd, LOG_HEADER, 0))
        return header is not None and header.stopped is StopReason.CONTINUED

    def next_piece(self) -> bytes:
        """Return the bytes that follow; empty if there are none yet."""
        header = read_log_header(os.pread(self._fd, LOG_HEADER, 0))
        end = header.committed if header is not None else 0
        piece = os.pread(self._fd, max(min(_PIECE, end - self._position), 0), self._position)
        self._position += len(piece)
        return piece


class _Pieces(Iterator[bytes]):
    """Never ends: there may be more later."""

    def __init__(self, log: FollowedLog) -> None:
        self._log = log

    def __next__(self) -> bytes:
        return self._log.next_piece()
