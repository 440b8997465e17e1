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
from replaydbg.events.records import Entry, Event
from replaydbg.installed import is_installed
from replaydbg.log.reader import Recording
from replaydbg.render.event_rows import COLUMNS, entry_row
from replaydbg.render.json_data.events_json import entry_facts

ON_A_TERMINAL = 200
"""Number of entries that a terminal gets without `--limit`: a table is laid out as a whole."""

MOST_STARTING = 5_000
"""The most entries among which the end of the interpreter's start is searched for: it has some 70 events."""

_SITE = ("<frozen site>", "/site.py")
"""How the names of the file end whose code runs last before the program."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument(
        "--call", dest="gate", metavar="PATTERN", help="only calls whose name matches, such as 'time.*'"
    )
    parser.add_argument("--from", dest="first", type=int, metavar="N", help="the first event")
    parser.add_argument("--to", dest="last", type=int, metavar="N", help="the last event")
    parser.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help=f"print at most N lines (default: {ON_A_TERMINAL} at a terminal, otherwise all)",
    )
    parser.add_argument(
        "--all", action="store_true", help="at a terminal, also list the events of the interpreter's start one by one"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the events; 1 if the recording is damaged."""
    if args.limit is not None and args.limit < 0:
        raise UsageError(f"--limit must be at least 0 (got {args.limit}).")
    with open_named(args.recording) as recording:
        entries = recording.events(gate=args.gate, first=1 if args.first is None else args.first, last=args.last)
        limit: int | None = args.limit
        if args.json:
            _print_json(recording, itertools.islice(entries, limit))
        else:
            if limit is None and is_terminal():
                limit = ON_A_TERMINAL
            is_selected = (args.gate, args.first, args.last) != (None, None, None)
            is_folded = is_terminal() and not args.all and not is_selected
            start, entries = _without_start(entries) if is_folded else (0, entries)
            head = list(itertools.islice(entries, 1))
            if is_selected and not head:
                print("No event of the recording is selected.", file=sys.stderr)
            entries = itertools.chain(head, entries)
            # A terminal has no room for the directory of the program in each line.
            directory = recording.header.cwd if is_terminal() else ""
            rows = (entry_row(entry, directory) for entry in itertools.islice(entries, limit))
            folded = [(f"1-{start}", "-", "0", "the interpreter starts (--all lists these events)", "", "")]
            print_table(COLUMNS, itertools.chain(folded if start else (), rows), right=("event", "time"))
            if args.limit is None and limit is not None and next(entries, None) is not None:
                print(f"Only the first {limit} are shown; --limit and --from show others.", file=sys.stderr)
        print_problems(recording)
        return 1 if recording.damage else 0


def _without_start(entries: Iterator[Entry]) -> tuple[int, Iterator[Entry]]:
    """Return the number of the last event of the interpreter's start, and the entries after it; 0: it is not known.

    The module `site` is the last that runs before the program.
    """
    head: list[Entry] = []
    start = after = 0
    for entry in itertools.islice(entries, MOST_STARTING):
        head.append(entry)
        file = entry.site.file if isinstance(entry, Event) else None
        if isinstance(entry, Event) and file is not None and file.endswith(_SITE):
            start, after = entry.number, len(head)
        elif file is not None and not file.startswith("<") and not is_installed(file):
            break  # the program runs
    return start, itertools.chain(head[after:], entries)


def _print_json(recording: Recording, entries: Iterator[Entry]) -> None:
    """Print one object, an entry a line: a log of any size is written without being held in memory."""
    print(f'{{"schema_version": {SCHEMA_VERSION}, "recording": {json.dumps(recording.name)}, "entries": [')
    before = ""
    for entry in entries:
        print(before + json.dumps(entry_facts(entry)), end="")
        before = ",\n"
    print(f'\n], "problems": {json.dumps(recording.problems)}}}')
