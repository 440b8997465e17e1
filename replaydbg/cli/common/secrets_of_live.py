"""What is masked in the sealed copy of a recording that was never sealed."""

from __future__ import annotations

from pathlib import Path

from replaydbg.errors import NotBuilt
from replaydbg.log.container import Hiding


def secrets_of_live(live: Path) -> Hiding | None:
    """Return how secrets of a live directory are masked; None: they are not. Raises NotBuilt without the core."""
    try:
        # Imported here: it is compiled code, which a machine that only reads does not have.
        from replaydbg.record.hiding import hiding_of
        from replaydbg.record.sealer.group_secrets import secrets_of_others
    except ImportError as error:
        raise NotBuilt(str(error)) from error
    return hiding_of(live, secrets_of_others(live))
