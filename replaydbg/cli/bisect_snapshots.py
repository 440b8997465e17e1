"""`replaydbg bisect snapshots`: find the first bad moment of a run, and the line that caused it."""

from __future__ import annotations

import argparse
from typing import Any

from replaydbg.cli.events import event_facts
from replaydbg.cli.opening import add_quiet, moment_facts, opened
from replaydbg.cli.output import add_json, add_recording, is_terminal, print_json
from replaydbg.commands.searching import KINDS, predicate_of
from replaydbg.debugger import Session
from replaydbg.debugger.assertions import assertion_of_test, bisect_assertion
from replaydbg.debugger.bisection.bisect_results import Bisected, Culprit, VerdictChange
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.run_bisection import MOST_LISTED, Bisection, begin_bisection
from replaydbg.errors import UsageError, quoted
from replaydbg.events.show import printable
from replaydbg.render import bisection_text
from replaydbg.render.texts import events_of, moment_text

FOUND, NOTHING = 1, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    what = parser.add_argument_group(
        "what is wrong (at most one; default for a failing test: its assertion is false)"
    ).add_mutually_exclusive_group()
    what.add_argument("--bad", metavar="EXPR", help="an expression that is true when something is wrong")
    what.add_argument("--check", metavar="EXPR", help="an expression that is false when something is wrong")
    what.add_argument(
        "--raises",
        metavar="EXPR",
        help="an expression that raises when something is wrong, or the name of an exception that the program raises",
    )
    what.add_argument(
        "--function",
        metavar="FILE.py:NAME",
        help="a function that returns true, or fails an assertion, when something is wrong",
    )
    what.add_argument("--invariant", metavar="NAME", help="an invariant that the program passed to replaydbg.check()")
    what.add_argument("--output", metavar="REGEX", help="wrong from where the output matches this regular expression")
    parser.add_argument(
        "--in", dest="module", metavar="MODULE", default="", help="evaluate in this module (default: __main__)"
    )
    parser.add_argument(
        "--frame",
        metavar="FUNCTION",
        default="",
        help="evaluate with the local variables of this function, while it runs",
    )
    parser.add_argument(
        "--only-at",
        metavar="PLACE",
        default="",
        help="evaluate it only before FILE:LINE, or at the start of each call of FUNCTION",
    )
    parser.add_argument("--from", dest="first", metavar="MOMENT", help="start of the search (default: @start)")
    parser.add_argument(
        "--to", dest="last", metavar="MOMENT", help="end of the search (default: the failure, else the end)"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--linear", action="store_true", help="evaluate at every line: also finds temporary violations")
    how.add_argument(
        "--for-good",
        action="store_true",
        help="evaluate at every line: find the violation that lasts until the end of the search",
    )
    how.add_argument("--all", action="store_true", help="list every line after which it became wrong or good again")
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
            if not (args.linear or args.for_good or args.all or args.only_at or first or last):
                found = bisect_assertion(session, claim)
            predicate = claim.in_its_call
            first, last = first or claim.started, last or claim.failed
        if found is None:
            search = begin_bisection(session, predicate, first, last, only_at=args.only_at)
            if args.all:
                return _show_flips(args, session, predicate, search)
            found = search.scan() if args.linear else search.for_good() if args.for_good else search.run()
        if args.json:
            print_json(facts(session, found))
        elif args.md:
            print("\n".join(bisection_text.markdown_lines(session, found, _reproduce(args, found))))
        else:
            for line in bisection_text.lines(session, found, _reproduce(args, found), is_coloured=is_terminal()):
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


def _show_flips(args: argparse.Namespace, session: Session, predicate: Predicate, search: Bisection) -> int:
    found = list(search.verdict_changes(MOST_LISTED + 1))
    is_cut = len(found) > MOST_LISTED
    del found[MOST_LISTED:]
    if args.json:
        flips = [
            {**moment_facts(session, each.count, each.moment), "is_bad": each.is_bad, "file": each.file,
             "line": each.line, "function": each.function}
            for each in found
        ]  # fmt: skip
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


def facts(session: Session, found: Bisected) -> dict[str, Any]:
    """Return a result as data: docs/reference/bisect-json.md."""
    culprit = found.culprit
    return {
        "kind": "snapshots",
        "outcome": "found" if culprit is not None else "none",
        "reason": None if culprit is not None else " ".join(bisection_text.headline(session, found)),
        "predicate": found.predicate,
        "answer": found.answer.value,
        "first": moment_text(found.first),
        "last": moment_text(found.last),
        "last_said": found.last_reason or None,
        "last_good": moment_text(found.last_good) if found.last_good is not None else None,
        "first_bad": moment_text(found.first_bad) if found.first_bad is not None else None,
        "places": found.places,
        "is_monotone": found.is_monotone if not found.has_unseen else None,
        "unfit": [moment_text(each) for each in found.unfit],
        "passing": found.passing if not found.has_unseen else None,
        "first_passing": moment_text(found.first_passing) if found.first_passing is not None else None,
        "healed": _flip_facts(found.healed),
        "first_healed": _flip_facts(found.first_healed),
        "last_healed": _flip_facts(found.last_healed),
        "seen_at": moment_text(found.seen_at) if found.seen_at is not None else None,
        "is_exact": found.is_exact,
        "note": found.note or None,
        "looks": [
            {
                **moment_facts(session, each.count, each.moment),
                "verdict": each.verdict.value,
                "said": each.reason or None,
                "seconds": round(each.seconds, 4),
                "is_check": each.is_check,
            }
            for each in found.looks
        ],
        "culprit": _culprit_facts(session, culprit) if culprit is not None else None,
    }


def _flip_facts(flip: VerdictChange | None) -> dict[str, Any] | None:
    if flip is None:
        return None
    return {"moment": moment_text(flip.moment), "file": flip.file, "line": flip.line, "function": flip.function}


def _culprit_facts(session: Session, culprit: Culprit) -> dict[str, Any]:
    events = events_of(session, min(culprit.events), max(culprit.events)) if culprit.events else []
    return {
        **moment_facts(session, culprit.count, culprit.moment),
        "seen": moment_text(culprit.seen_moment),
        "lane": culprit.lane,
        "file": culprit.file,
        "line": culprit.line,
        "function": culprit.function,
        "source": culprit.source,
        "before": culprit.before.value,
        "before_said": culprit.before_reason or None,
        "values": [
            {"source": each.source, "before": each.before or None, "after": each.after or None}
            for each in culprit.values
        ],
        "events": [event_facts(each) for each in events if each.number in culprit.events],
    }
