"""The digests of what a process sent and received: which a replay has to compute anew, and where they go."""

from __future__ import annotations

import struct
from typing import BinaryIO

from replaydbg.log.entries.logfile import TRANSFERS_HEADER, transfers_end
from replaydbg.log.transfers import DEFINES, DEFINITION, SLOT, TRANSFER

_WANTED = struct.Struct("<QQQ")
"""Event, length, digest: replaydbg/native/files/redigest.c fills in the digest."""


def write_wanted(transfers: bytes, file: BinaryIO) -> int:
    """Write which transfers have a digest, for the replay; return how many."""
    wanted = sorted((event, length) for _, event, length in _with_digests(transfers))
    file.write(b"".join(_WANTED.pack(event, length, 0) for event, length in wanted))
    file.flush()
    return len(wanted)


def with_new_digests(transfers: bytes, file: BinaryIO) -> bytes:
    """Return the section with the digests that a replay has written into `file`.

    A transfer whose event the replay did not come to, because the process was killed, has none: its bytes are unknown.
    """
    file.seek(0)
    digests = {(event, length): digest for event, length, digest in _WANTED.iter_unpack(file.read())}
    made = bytearray(transfers)
    for at, event, length in _with_digests(transfers):
        fields = list(TRANSFER.unpack_from(made, at))
        fields[3] = digests.get((event, length), 0)
        TRANSFER.pack_into(made, at, *fields)
    return bytes(made)


def _with_digests(transfers: bytes) -> list[tuple[int, int, int]]:
    """Return offset, event and length of each transfer that has a digest."""
    found = []
    at, end = TRANSFERS_HEADER, min(transfers_end(transfers), len(transfers))
    while at + SLOT <= end:
        if transfers[at + SLOT - 1] == DEFINES:
            at += max(DEFINITION.unpack_from(transfers, at)[1], 1) * SLOT
            continue
        event, _, _, digest, length, endpoint, _ = TRANSFER.unpack_from(transfers, at)
        if event and length and digest and endpoint:
            found.append((at, event, length))
        at += SLOT
    return found
