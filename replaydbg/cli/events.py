"""`replaydbg events`: print the event log, one line for each entry."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

from replaydbg.cli.main import SCHEMA_VERSION
from replaydbg.cli.output import add_json, add_recording, is_terminal, open_named, print_problems, print_table
from replaydbg.errors import UsageError
from replaydbg.events.records import Control, Entry, Event
from replaydbg.events.show import printable, show_call, show_outcome, to_json
from replaydbg.log.reader import Recording

ON_A_TERMINAL = 200
"""Number of entries that a terminal gets without `--limit`: a table is laid out as a whole."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("--gate", metavar="PATTERN", help="only calls whose name matches, such as 'time.*'")
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="N", help="the first event")
    parser.add_argument("--to", dest="last", type=int, metavar="N", help="the last event")
    parser.add_argument("--limit", type=int, metavar="N", help="print at most N lines")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the events; 1 if the recording is damaged."""
    if args.limit is not None and args.limit < 0:
        raise UsageError(f"--limit must be at least 0 (got {args.limit}).")
    with open_named(args.recording) as recording:
        entries = recording.events(gate=args.gate, first=args.first, last=args.last)
        limit: int | None = args.limit
        if args.json:
            _print_json(recording, itertools.islice(entries, limit))
        else:
            if limit is None and is_terminal():
                limit = ON_A_TERMINAL
            rows = (_row(entry) for entry in itertools.islice(entries, limit))
            print_table(("event", "time", "lane", "what", "outcome", "where"), rows, right=("event", "time"))
            if args.limit is None and limit is not None and next(entries, None) is not None:
                print(f"Only the first {limit} are shown; --limit and --from show others.", file=sys.stderr)
        print_problems(recording)
        return 1 if recording.damage else 0


def _row(entry: Entry) -> tuple[str, ...]:
    # The log has a clock mark every few hundred events: before the first one the time is unknown.
    time = f"{entry.time_ns / 1e9:.3f}" if entry.time_ns else "-"
    if isinstance(entry, Control):
        return "", time, str(entry.lane), _control(entry), "", ""
    return str(entry.number), time, str(entry.lane), show_call(entry), show_outcome(entry), printable(str(entry.site))


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


def _print_json(recording: Recording, entries: Iterator[Entry]) -> None:
    """Print one object, an entry a line: a log of any size is written without being held in memory."""
    print(f'{{"schema_version": {SCHEMA_VERSION}, "recording": {json.dumps(recording.name)}, "entries": [')
    before = ""
    for entry in entries:
        print(before + json.dumps(_facts(entry)), end="")
        before = ",\n"
    print(f'\n], "problems": {json.dumps(recording.problems)}}}')


def _facts(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Control):
        return {
            "control": entry.kind.name.lower(),
            "after": entry.after,
            "lane": entry.lane,
            "time_ns": entry.time_ns,
            "number": entry.number,
            "name": entry.name,
            "why": None if entry.why is None else entry.why.name.lower(),
            "ticks": entry.ticks,
            "note": None if entry.note is None else {"kind": entry.note[0], "text": entry.note[1]},
        }
    return event_facts(entry)


def event_facts(event: Event) -> dict[str, Any]:
    """Return an event as data."""
    site = event.site
    return {
        "event": event.number,
        "lane": event.lane,
        "time_ns": event.time_ns,
        "gate": event.gate,
        "file": site.file,
        "function": site.function,
        "line": site.line,
        "arguments": None if event.arguments is None else [to_json(argument) for argument in event.arguments],
        "raised": event.raised,
        "outcome": to_json(event.outcome),
        "filled": to_json(event.filled),
        "digest": None if event.digest is None else event.digest.hex(),
    }
