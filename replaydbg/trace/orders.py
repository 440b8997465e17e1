"""What the core is told about the trace that it shall write."""

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
    """How large each file may become, in bytes; the trace ends there, and the program goes on."""

    def as_boot(self) -> dict[str, object]:
        """Return what the core is told."""
        return {"directory": os.fsencode(self.directory), "limit": self.limit}
