"""`replaydbg holds`: show when an expression was true, over the whole run."""

from __future__ import annotations

import argparse
from itertools import islice

from replaydbg.cli.common.opening import add_quiet, opened
from replaydbg.cli.common.output import add_json, add_recording, print_json
from replaydbg.cli.common.search_range import add_search_range
from replaydbg.commands.searching import predicate_of
from replaydbg.debugger.bisection.run_bisection import begin_bisection
from replaydbg.debugger.bisection.true_stretches import true_stretches
from replaydbg.errors import UsageError
from replaydbg.render import bisection_text
from replaydbg.render.json_data import bisection_json

MOST = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("expression", metavar="EXPR", help="the expression, such as 'balance < 0'")
    add_search_range(parser)
    parser.add_argument(
        "--limit", type=int, default=MOST, metavar="N", help=f"show at most N stretches of the run (default: {MOST:,})"
    )
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the stretches; return 1 if there are none."""
    if args.limit < 1:
        raise UsageError(f"--limit must be at least 1 (got {args.limit}).")
    predicate = predicate_of("bad", args.expression, module=args.module, frame=args.frame)
    with opened(args.recording, quiet=args.quiet) as view:
        session = view.session
        search = begin_bisection(session, predicate, args.first, args.last, only_at=args.only_at)
        found = list(islice(true_stretches(search, args.limit), args.limit + 1))
        is_cut = len(found) > args.limit
        del found[args.limit :]
        reason = "" if found else search.why_undecided()
        if args.json:
            facts = [bisection_json.stretch_facts(session, each) for each in found]
            print_json(
                {"expression": predicate.text, "stretches": facts, "is_cut": is_cut, "last_reason": reason or None}
            )
        elif not found:
            for line in bisection_text.never_true_lines(predicate, search.end, reason):
                view.screen.line(line)
        else:
            for line in bisection_text.stretch_lines(session, predicate.text, found):
                view.screen.line(line)
            if is_cut:
                view.screen.line(f"Showing the first {args.limit:,}. Use --limit for more, or --from.", "dim")
        return 0 if found else 1
