"""Report lines of the readers that run for the first time: from Python 3.12 on this is free once a line was seen."""

import sys
from pathlib import Path
from types import CodeType
from typing import Any

import replaydbg

_OURS = str(Path(replaydbg.__file__).parent)


class NewLines:
    """Counts lines that run for the first time. On Python 3.11 there are none."""

    def __init__(self) -> None:
        self.count = 0

    def install(self) -> None:
        """Begin to watch, for the life of the process."""
        # Not by its name: the types are checked for Python 3.11, which has none.
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:
            return
        disable = monitoring.DISABLE

        def seen(code: CodeType, line: int) -> object:
            if code.co_filename.startswith(_OURS):
                self.count += 1
            return disable

        monitoring.use_tool_id(monitoring.COVERAGE_ID, "replaydbg-fuzz")
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, seen)
        monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)

    def take(self) -> int:
        """Return the number of new lines since the last call."""
        count, self.count = self.count, 0
        return count
