"""Moments that can be found in the event log alone: numbers of events, the ends of the run, and times."""

from __future__ import annotations

import re

from replaydbg.errors import NoSuchMoment
from replaydbg.events.records import Event
from replaydbg.heap.storage.recorded_snapshots import stored_snapshots
from replaydbg.log.reader import Recording
from replaydbg.resources.kinds import EventNumber

_NUMBERS = re.compile(r"(\d+)(?::\d*(?:\.\d+)?)?\Z", re.ASCII)
_TIME = re.compile(r"@t\+?(\d+(?:\.\d+)?)(ms|s|m)?\Z")
_UNITS = {"ms": 1e6, "s": 1e9, "m": 60e9, None: 1e9}


def event_of(recording: Recording, text: str) -> EventNumber | None:
    """Return the last event before a moment; None: the moment can be found by a replay only.

    `120` and `120:35` are after event 120, `@start` is before the first one. `@end` is where the program's code ended,
    before the interpreter shut down; of a recording that ends early, the last event. `@#3` is where a snapshot in the
    recording was taken. Raises NoSuchMoment.
    """
    word = text.strip()
    if word in ("@start", "@0"):
        return 0
    if word == "@end":
        return _end(recording)
    if word.startswith("@#"):
        return _snapshot(recording, word)
    if (match := _TIME.match(word)) is not None:
        return _last_before(recording, word, float(match[1]) * _UNITS[match[2]])
    match = _NUMBERS.match(word)
    if match is None:
        return None
    number = int(match[1])
    last = _last(recording, number)
    if number > last:
        raise NoSuchMoment(text, f"the recording has {last:,} events")
    return number


def _snapshot(recording: Recording, word: str) -> EventNumber:
    known = stored_snapshots(recording)
    found = next((each for each in known if word[2:] in (str(each.number), each.name)), None)
    if found is None:
        last = f"it has @#1 to @#{known[-1].number}" if known else "it has none; `record --snapshot-every` takes them"
        raise NoSuchMoment(word, f"the recording has no such snapshot; {last}")
    return found.event


def _last(recording: Recording, enough: int) -> EventNumber:
    """Return the number of the last event; reading stops at `enough`."""
    last = 0
    for entry in recording.events(controls=False):
        if isinstance(entry, Event):
            last = entry.number
            if last >= enough:
                break
    return last


def _last_before(recording: Recording, word: str, nanoseconds: float) -> EventNumber:
    last = time_ns = 0
    for entry in recording.events(controls=False):
        if isinstance(entry, Event):
            if entry.time_ns > nanoseconds:
                return last
            last, time_ns = entry.number, entry.time_ns
    if nanoseconds > time_ns:  # it may be any time after the run
        raise NoSuchMoment(word, "the last event was before that time")
    return last


def _end(recording: Recording) -> EventNumber:
    """Return the last event of the program's code.

    At the exit the interpreter prints an uncaught exception, runs what was registered for the exit, and closes what is
    left. The first of these calls that it makes from C has no Python frame; while the program runs, each has one.
    """
    last = 0
    for entry in recording.events(controls=False):
        if isinstance(entry, Event):
            if entry.site.file is None and entry.lane == 0 and last:
                break
            last = entry.number
    return last
