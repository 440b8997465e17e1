"""The orders to the core for the trace."""

from __future__ import annotations

import os
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


class TraceOrders(NamedTuple):
    """Where a run writes its trace."""

    directory: Path
    """An existing directory; the files in it are overwritten."""
    limit: int
    """Maximum size of each file, in bytes; the trace ends there, and the program goes on."""

    def as_boot(self) -> dict[str, object]:
        """Return the fields for the core."""
        return {"directory": os.fsencode(self.directory), "limit": self.limit}
