"""`replaydbg events`: print the event log, one line for each entry."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator

from replaydbg.cli.common.output import add_json, add_recording, is_terminal, open_named, print_problems, print_table
from replaydbg.cli.common.schema import SCHEMA_VERSION
from replaydbg.errors import UsageError
from replaydbg.events.records import Entry
from replaydbg.log.reader import Recording
from replaydbg.render.event_rows import COLUMNS, entry_row
from replaydbg.render.json_data.events_json import entry_facts

ON_A_TERMINAL = 200
"""Number of entries that a terminal gets without `--limit`: a table is laid out as a whole."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument(
        "--call", dest="gate", metavar="PATTERN", help="only calls whose name matches, such as 'time.*'"
    )
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="N", help="the first event")
    parser.add_argument("--to", dest="last", type=int, metavar="N", help="the last event")
    parser.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help=f"print at most N lines (default: {ON_A_TERMINAL} at a terminal, otherwise all)",
    )
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
            rows = (entry_row(entry) for entry in itertools.islice(entries, limit))
            print_table(COLUMNS, rows, right=("event", "time"))
            if args.limit is None and limit is not None and next(entries, None) is not None:
                print(f"Only the first {limit} are shown; --limit and --from show others.", file=sys.stderr)
        print_problems(recording)
        return 1 if recording.damage else 0


def _print_json(recording: Recording, entries: Iterator[Entry]) -> None:
    """Print one object, an entry a line: a log of any size is written without being held in memory."""
    print(f'{{"schema_version": {SCHEMA_VERSION}, "recording": {json.dumps(recording.name)}, "entries": [')
    before = ""
    for entry in entries:
        print(before + json.dumps(entry_facts(entry)), end="")
        before = ",\n"
    print(f'\n], "problems": {json.dumps(recording.problems)}}}')
