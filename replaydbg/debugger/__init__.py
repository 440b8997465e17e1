"""The debugger of recordings; `Session` is what every front end is built on."""

from replaydbg.debugger.session import Session

__all__ = ["Session"]
