"""The line of the program that a refusal names."""

from __future__ import annotations

from replaydbg.errors import Divergence
from replaydbg.events.records import Event
from replaydbg.log.reader import Recording
from replaydbg.redaction.told import ToldEnd, ToldPlace


def line_of_divergence(divergence: Divergence, end: ToldEnd | None, recording: Recording) -> str:
    """Return the innermost line of the program, or else of a library, at which a replay differed or ended.

    `end` is what the replay told of its end.
    """
    own = [each for each in divergence.stack if "<frozen" not in each and "/lib/python" not in each]
    if own:
        return own[-1].strip()
    return (end.place if end is not None else "") or divergence.where or _line_before(recording)


def line_of_event(recording: Recording, number: int, end: ToldEnd | None) -> str:
    """Return the line at which an event was; empty if none is known.

    The interpreter writes without a line when the program has ended: a traceback (from Python 3.13 on, by its module
    `traceback`), and what is left in buffers. Then it is the line of the exception, or else the last one before.
    """
    raised = end is not None and bool(end.raised.places)
    for entry in recording.events():
        if isinstance(entry, Event) and entry.number == number and entry.site.line:
            if raised and (entry.site.file or "").endswith("/traceback.py"):
                break
            return f'File "{entry.site.file}", line {entry.site.line}'
    return end.place if end is not None and raised else _line_before(recording, number)


def _line_before(recording: Recording, number: int = 1 << 63) -> str:
    """Return the program's last line with an event before event `number`; empty if there is none."""
    found = ""
    for entry in recording.events():
        if isinstance(entry, Event) and entry.number < number:
            site = entry.site
            place = ToldPlace(site.file or "", site.line or 0, site.function or "")
            found = f"after {place}" if place.is_own else found
    return found
