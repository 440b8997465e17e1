"""The section `transfers` up to a moment: that of a cut recording, or of a process that goes on from there."""

from __future__ import annotations

from replaydbg.log.entries.logfile import TRANSFERS_HEADER, TRANSFERS_MAGIC, transfers_end
from replaydbg.log.transfers import (
    ADDRESS,
    DEFINES,
    DEFINITION,
    PASSED,
    SECTION,
    SECTION_HEADER,
    SLOT,
    TRANSFER,
    TRANSFERS_FORMAT,
    HasSections,
)


def transfers_before(data: bytes, events: int) -> bytes:
    """Return the section without the transfers that began when there were `events` events, or later."""
    end = min(transfers_end(data), len(data))
    at = TRANSFERS_HEADER
    while at + SLOT <= end:
        if data[at + SLOT - 1] == DEFINES:
            at += max(DEFINITION.unpack_from(data, at)[1], 1) * SLOT
        elif int.from_bytes(data[at + 8 : at + 16], "little") < events:
            at += SLOT
        else:
            break
    if at <= TRANSFERS_HEADER or at > end:
        return b""
    return SECTION_HEADER.pack(TRANSFERS_MAGIC, TRANSFERS_FORMAT, 0, at) + data[TRANSFERS_HEADER:at]


def continued_transfers(recording: HasSections, position: int) -> tuple[bytes, int, int]:
    """Return the section up to a position, with the numbers of its endpoints and addresses.

    Transfers that had not ended at the position are void: their calls are made again.
    """
    whole = b"".join(recording.pieces(SECTION)) if recording.size(SECTION) else b""
    data = bytearray(transfers_before(whole, max(position, 1)) if whole else b"")
    if not data:
        data = bytearray(SECTION_HEADER.pack(TRANSFERS_MAGIC, TRANSFERS_FORMAT, 0, TRANSFERS_HEADER))
    endpoints = addresses = 0
    at = TRANSFERS_HEADER
    while at < len(data):
        if data[at + SLOT - 1] == DEFINES:
            kind, slots, number, *_ = DEFINITION.unpack_from(data, at)
            if kind == ADDRESS:
                addresses = max(addresses, number)
            elif kind != PASSED:
                endpoints = max(endpoints, number)
            at += max(slots, 1) * SLOT
            continue
        event, begun, ticket, _, length, _, address = TRANSFER.unpack_from(data, at)
        if not 1 <= event <= position:
            TRANSFER.pack_into(data, at, event, begun, ticket, 0, length, 0, address)
        at += SLOT
    return bytes(data), endpoints, addresses
