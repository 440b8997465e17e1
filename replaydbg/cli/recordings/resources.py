"""`replaydbg resources`: show what a process holds at a moment, or what it opened and did not close between two."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.opening import opened
from replaydbg.cli.common.output import add_json, add_recording, is_terminal, open_named, print_json, print_problems
from replaydbg.errors import UsageError
from replaydbg.log.reader import Recording
from replaydbg.render.json_data.resources_json import resources_facts, unclosed_facts
from replaydbg.render.resources_text import resources_tables, unclosed_tables
from replaydbg.render.tables import Table, drawn
from replaydbg.resources.follow import ResourceHistory
from replaydbg.resources.kinds import EventNumber
from replaydbg.resources.log_moments import event_of
from replaydbg.resources.unclosed import unclosed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument(
        "moments",
        metavar="MOMENT",
        nargs="*",
        help="such as 120 or @end (default: @end); two of them: what was opened in between, and not closed",
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="show no progress for moments that only a replay can find"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the resources; with two moments return 1 if something was opened and not closed."""
    if len(args.moments) > 2:
        raise UsageError(f"usage: resources REC [MOMENT [MOMENT]] (got {len(args.moments)} moments)")
    with open_named(args.recording) as recording:
        events = sorted(_event(recording, args, text) for text in args.moments or ["@end"])
        history = ResourceHistory(recording)
        found = [history.at(event) for event in events]
        cwd = recording.header.cwd
        if len(found) == 2:
            left = unclosed(*found)
            _show(args, unclosed_facts(left) if args.json else None, unclosed_tables(left, cwd))
        else:
            left = None
            _show(args, resources_facts(found[0]) if args.json else None, resources_tables(found[0], cwd))
        print_problems(recording)
        return 1 if recording.damage or (left is not None and (left.count or left.children)) else 0


def _show(args: argparse.Namespace, facts: dict[str, object] | None, tables: list[Table]) -> None:
    if facts is not None:
        print_json(facts)
    else:
        print(drawn(tables, is_coloured=is_terminal()), end="")


def _event(recording: Recording, args: argparse.Namespace, text: str) -> EventNumber:
    event = event_of(recording, text)
    if event is not None:
        return event
    with opened(args.recording, quiet=args.quiet) as view:
        view.session.seek(text)
        return view.session.here.moment.event
