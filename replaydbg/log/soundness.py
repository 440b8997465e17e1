"""Check that a recording is complete and undamaged by reading all of it, as `replaydbg verify` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replaydbg.errors import ReplaydbgError

if TYPE_CHECKING:
    from replaydbg.log.reader import Recording


def is_sound(recording: Recording) -> bool:
    """Return whether nothing in `recording` is damaged or missing. Executes nothing."""
    try:
        recording.check()
    except ReplaydbgError:
        return False
    return not recording.damage
