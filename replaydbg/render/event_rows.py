"""Entries of the event log as rows of a table."""

from __future__ import annotations

from replaydbg.events.records import Control, Entry
from replaydbg.events.show import printable, show_call, show_outcome

COLUMNS = ("event", "time", "thread", "what", "outcome", "where")


def entry_row(entry: Entry, directory: str = "") -> tuple[str, ...]:
    """Return the cells of an entry, printable; files in `directory` have no path."""
    # The log has a clock mark every few hundred events: before the first one the time is unknown.
    time = f"{entry.time_ns / 1e9:.3f}" if entry.time_ns else "-"
    if isinstance(entry, Control):
        return "", time, str(entry.lane), _control(entry), "", ""
    place = printable(str(entry.site).removeprefix(f"{directory}/" if directory else ""))
    return str(entry.number), time, str(entry.lane), show_call(entry), show_outcome(entry), place


def _control(entry: Control) -> str:
    if entry.why is not None:
        return f"-- thread {entry.number} continues: thread {entry.lane} {entry.why.value}"
    parts = [entry.kind.value]
    if entry.note is not None:
        parts.append(f"{printable(entry.note[1])} ({printable(entry.note[0])})")
    elif entry.number is not None:
        parts.append(str(entry.number))
    if entry.name is not None:
        parts.append(printable(entry.name))
    return "-- " + ": ".join(parts)
