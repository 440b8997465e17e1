"""The header of a log file (`log`, `world`), section 2 of format.md."""

from __future__ import annotations

import struct

from replaydbg.classes import NamedTuple
from replaydbg.events.stops import StopReason

LOG_MAGIC = b"RDBGLOG\0"
LOG_HEADER = 64
"""Size of the header; the first record follows."""

_HEADER = struct.Struct("<8sIIQQQIIQII")


class LogHeader(NamedTuple):
    """The header fields of a log file. Recording loads this: a named tuple, see config.py."""

    format: int
    """The format number."""
    stopped: StopReason
    """Why logging stopped before the program's end."""
    committed: int
    """The end of the last complete record, in bytes from the beginning of the file."""
    crossings: int
    """Number of events in the log."""
    start_ns: int
    """When the program started: nanoseconds since the epoch."""
    signals: int = 0
    """Number of signals that the program has handled."""
    longest_ms: int = 0
    """The most CPU time between two records, in milliseconds; below 50 it is not measured."""
    last_ns: int = 0
    """When the last record was written, by the monotonic clock; 0: unknown."""
    cpu_ms: int = 0
    """CPU time until then, of the program and the children that it waited for; 0: unknown."""
    memory_mb: int = 0
    """The largest address space that the program had, in MiB; 0: unknown."""


def read_log_header(data: bytes) -> LogHeader | None:
    """Parse the first 64 bytes of a log file; None if they are not such a header."""
    if len(data) < LOG_HEADER or not data.startswith(LOG_MAGIC):
        return None
    _, number, stopped, committed, *rest = _HEADER.unpack_from(data)
    try:
        reason = StopReason(stopped)
    except ValueError:
        return None
    return LogHeader(number, reason, committed, *rest) if committed >= LOG_HEADER else None


def pack_log_header(header: LogHeader) -> bytes:
    """Return the 64 bytes that begin a log file."""
    return _HEADER.pack(LOG_MAGIC, header.format, header.stopped.value, *header[2:])


TRANSFERS_MAGIC = b"RDBGXFR\0"
TRANSFERS_HEADER = 64
"""Size of the header of a file `transfers`."""

_TRANSFERS = struct.Struct("<8sIIQ")


def transfers_end(data: bytes) -> int:
    """Return where the last complete record of a file `transfers` ends; 0 if its first 64 bytes are not its header."""
    if len(data) < TRANSFERS_HEADER or not data.startswith(TRANSFERS_MAGIC):
        return 0
    end: int = _TRANSFERS.unpack_from(data)[3]
    return max(end, TRANSFERS_HEADER)
