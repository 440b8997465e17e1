"""`replaydbg bisect snapshots`: find the first bad moment of a run, and the line that caused it."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.opening import add_quiet, opened
from replaydbg.cli.common.output import add_json, add_recording, print_json
from replaydbg.cli.common.search_range import add_search_range
from replaydbg.commands.searching import KINDS, predicate_of
from replaydbg.commands.view import View
from replaydbg.debugger.assertions import assertion_of_test, bisect_assertion
from replaydbg.debugger.bisection.bisect_results import Bisected
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.run_bisection import MOST_LISTED, Bisection, begin_bisection
from replaydbg.errors import UsageError, quoted
from replaydbg.events.show import printable
from replaydbg.render import bisection_text
from replaydbg.render.json_data.bisection_json import facts, verdict_changes_facts
from replaydbg.render.texts import moment_text

FOUND, NOTHING = 1, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    what = parser.add_argument_group(
        "when the run is bad (choose one; default for a failing test: its assertion is false)"
    ).add_mutually_exclusive_group()
    what.add_argument("--bad", metavar="EXPR", help="an expression that is true when the run is bad")
    what.add_argument("--check", metavar="EXPR", help="an expression that is false when the run is bad")
    what.add_argument(
        "--raises",
        metavar="EXPR",
        help="an expression that raises when the run is bad, or the name of an exception that the program raises",
    )
    what.add_argument(
        "--function",
        metavar="FILE.py:NAME",
        help="a function that returns true, or fails an assertion, when the run is bad",
    )
    what.add_argument("--invariant", metavar="NAME", help="an invariant that the program passed to replaydbg.check()")
    what.add_argument("--output", metavar="REGEX", help="bad once the output so far matches this regular expression")
    add_search_range(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--linear", action="store_true", help="evaluate at every line: also finds temporary violations")
    how.add_argument(
        "--permanent",
        action="store_true",
        help="evaluate at every line: find the violation that lasts until the end of the search",
    )
    how.add_argument("--all", action="store_true", help="list every line after which the run became bad, or good again")
    parser.add_argument("--md", action="store_true", help="print Markdown")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Search, and show the line; 1 if there is one, 3 if not."""
    if args.md and args.json:
        raise UsageError("--md and --json cannot be used together.")
    predicate = _predicate(args)
    with opened(args.recording, quiet=args.quiet) as view:
        session = view.session
        first, last = args.first, args.last
        found = None
        if predicate is None:
            claim = assertion_of_test(session)
            if not (args.linear or args.permanent or args.all or args.only_at or first or last):
                found = bisect_assertion(session, claim)
            predicate = claim.in_its_call
            first, last = first or claim.started, last or claim.failed
        if found is None:
            search = begin_bisection(session, predicate, first, last, only_at=args.only_at)
            if args.all:
                return _show_flips(args, view, predicate, search)
            found = search.scan() if args.linear else search.permanent() if args.permanent else search.run()
        view.screen.settle()
        if args.json:
            print_json(facts(session, found))
        elif args.md:
            print("\n".join(bisection_text.markdown_lines(session, found, _reproduce(args, found))))
        else:
            for line in bisection_text.lines(session, found, _reproduce(args, found)):
                view.screen.line(line)
    return FOUND if found.culprit is not None else NOTHING


def _predicate(args: argparse.Namespace) -> Predicate | None:
    """Return the predicate that the options define; None: the test's own assertion. Raises UsageError."""
    kind = next((each for each in KINDS if getattr(args, each) is not None), None)
    if kind is None and (args.module or args.frame):
        raise UsageError("--in and --frame are for expressions and functions.")
    return predicate_of(kind, getattr(args, kind), module=args.module, frame=args.frame) if kind is not None else None


def _reproduce(args: argparse.Namespace, found: Bisected) -> str:
    if found.culprit is None:
        return f"replaydbg debug {quoted(args.recording)}"
    return f"replaydbg debug {quoted(args.recording)} --at {moment_text(found.culprit.moment)}"


def _show_flips(args: argparse.Namespace, view: View, predicate: Predicate, search: Bisection) -> int:
    session = view.session
    found = list(search.verdict_changes(MOST_LISTED + 1))
    view.screen.settle()
    is_cut = len(found) > MOST_LISTED
    del found[MOST_LISTED:]
    if args.json:
        flips = verdict_changes_facts(session, found)
        answer = {"kind": "snapshots", "predicate": predicate.text, "changes": flips, "is_cut": is_cut}
        print_json({**answer, "note": search.note or None})
    else:
        for line in bisection_text.verdict_change_lines(session, predicate.text, found, is_markdown=args.md):
            print(printable(line))
        if is_cut:
            print(f"Showing the first {MOST_LISTED:,} changes. Continue with --from {moment_text(found[-1].moment)}.")
        if search.note:
            print(printable(search.note))
    return FOUND if any(each.is_bad for each in found) else NOTHING
