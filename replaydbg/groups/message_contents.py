"""The bytes of messages, as they were received."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replaydbg.events.records import Event
from replaydbg.groups.group_cuts import FlyingMessage, WholeMessage
from replaydbg.groups.opened_group import OpenedGroup, received_bytes
from replaydbg.log.reader import open_recording
from replaydbg.store.directory import member_path

MOST_KEPT = 64 << 20
"""Bytes that are kept for later questions."""


class MessageContents:
    """Reads what events received: one pass over the log of each process for all that are asked for at once."""

    def __init__(self, opened: OpenedGroup) -> None:
        """Take an opened group."""
        self._opened = opened
        self._received: dict[tuple[int, int], bytes] = {}
        self._kept = 0

    def of(self, messages: Sequence[FlyingMessage | WholeMessage]) -> list[bytes | None]:
        """Return the bytes of messages; None: nobody received them, or they are not recorded.

        Raises a ReplaydbgError."""
        wanted: dict[int, set[int]] = {}
        for message in messages:
            for piece in message.taken:
                if (piece.process, piece.event) not in self._received:
                    wanted.setdefault(piece.process, set()).add(piece.event)
        for process, events in wanted.items():
            self._read(process, events)
        found = [self._joined(message) for message in messages]
        if self._kept > MOST_KEPT:
            self._received.clear()
            self._kept = 0
        return found

    def _read(self, process: int, events: Iterable[int]) -> None:
        wanted = set(events)
        with open_recording(member_path(self._opened.directory, process)) as recording:
            for entry in recording.events(first=min(wanted), last=max(wanted), controls=False):
                if isinstance(entry, Event) and entry.number in wanted:
                    data = received_bytes(recording, entry)
                    self._received[process, entry.number] = data
                    self._kept += len(data)

    def _joined(self, message: FlyingMessage | WholeMessage) -> bytes | None:
        pieces = []
        for piece in message.taken:
            data = self._received.get((piece.process, piece.event), b"")
            pieces.append(data[piece.offset : piece.offset + piece.length])
        found = b"".join(pieces)
        return found if len(found) == message.length else None
