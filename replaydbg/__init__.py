"""replaydbg: record a run of a Python program once, then replay it exactly, as often as you like."""

import sys

__version__ = "0.1.0"


def snapshot(name: str = "") -> None:
    """Keep a picture of the program's objects in its recording, called `name`; do nothing if it is not recorded.

    A copy of the process takes it while the program goes on.
    """
    # Whoever records the program hears of it; nothing else of replaydbg is in its process.
    sys.audit("replaydbg.snapshot", name)
