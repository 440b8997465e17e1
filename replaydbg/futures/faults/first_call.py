"""Where the program itself begins in its recording."""

from __future__ import annotations

from replaydbg.events.records import Event
from replaydbg.log.reader import Recording


def first_call(recording: Recording) -> int:
    """Return the event before which the program begins.

    Before it, the interpreter looks for packages (`site`), which is not the program's to get right.
    """
    last = 0
    for event in recording.events(controls=False):
        if not isinstance(event, Event):
            continue
        file = event.site.file or ""
        if file == "<frozen site>" or file.endswith("/site.py"):
            last = event.number
        elif file and not file.startswith("<frozen ") and "/lib/python3." not in file:
            break
    return last + 1
