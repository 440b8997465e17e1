"""replaydbg: record a run of a Python program once, then replay it exactly, as often as you like."""

__version__ = "0.1.0"
