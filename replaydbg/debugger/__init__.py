"""Travelling through a recording: `Session` is what every view of the debugger is made of."""

from replaydbg.debugger.session import Session

__all__ = ["Session"]
