"""A memory limit for replays, set from outside, since a recording may claim or do anything."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.reader import Recording

_OWN = 1 << 30
"""Size in bytes of the replay's own tables: counts of lines, activations, an index of the log."""

_SESSION = 7 << 30
"""Address space that a process of the debugger reserves and hardly uses, in bytes."""

_UNKNOWN = 4 << 30
"""For recordings without the peak: the program was killed, or recorded by an older version."""

_LARGEST = 1 << 46
"""More address space than a process can have."""


def memory_limit(recording: Recording, logs: int, *, is_session: bool) -> int:
    """Return the largest address space, in bytes, that a replay of `recording` may have.

    `logs` is the size of the parts of the log, which are mapped as a whole; `is_session` is for processes of the
    debugger.
    """
    header = recording.log_header
    peak = header.memory_mb << 20 if header is not None else 0
    program = peak + peak // 4 if peak else _UNKNOWN + 64 * logs
    return min(program + _OWN + 8 * logs + (_SESSION if is_session else 0), _LARGEST)
