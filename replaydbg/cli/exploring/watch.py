"""`replaydbg watch`: list all values that an expression had over the run."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.opening import add_place, add_quiet, opened_at
from replaydbg.cli.common.output import add_json, add_recording, print_json
from replaydbg.commands.whole_run import why_absent
from replaydbg.errors import UsageError
from replaydbg.render import texts
from replaydbg.render.json_data.writes_json import change_facts

MOST = 1000
"""Maximum number of changes that are shown without `--limit`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("expression", help="a variable, attribute or item, such as order.lines[0].price")
    add_place(parser)
    parser.add_argument(
        "--limit", type=int, default=MOST, metavar="N", help=f"print at most N changes (default: {MOST})"
    )
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the changes of a value, first to last; return 1 if there are none."""
    if args.limit < 1:
        raise UsageError(f"--limit must be at least 1 (got {args.limit}).")
    with opened_at(args) as view:
        session = view.session
        number = 0
        changes = []
        is_more = False
        history = session.run.history(args.expression, **view.at, most=args.limit + 1)
        for change in history:
            is_more = number == args.limit
            if is_more:
                break
            number += 1
            view.screen.check()
            if args.json:
                changes.append(change_facts(session, change))
            else:
                view.screen.line(texts.change_text(session, change))
        if args.json:
            facts = {"expression": args.expression, "changes": changes, "is_more": is_more}
            print_json(facts | {"note": history.note or None})
        elif not number:
            view.screen.complain(" ".join(("It did not change.", *why_absent(view, args.expression))))
        elif is_more:
            limit = args.limit
            view.screen.complain(f"Showing the first {limit:,} changes. Use --limit {10 * limit} for more.")
        if history.note and not args.json:
            view.screen.line(f"{args.expression}: {history.note}.")
        return 0 if number else 1
