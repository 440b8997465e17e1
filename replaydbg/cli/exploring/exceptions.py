"""`replaydbg exceptions`: list the exceptions that a run raised."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.opening import add_quiet, opened
from replaydbg.cli.common.output import add_json, add_recording, print_json
from replaydbg.commands.view import View
from replaydbg.commands.whole_run import (
    EXCEPTIONS,
    ListedExceptions,
    WantedExceptions,
    left_out_text,
    raised_text,
)
from replaydbg.debugger.exception_types import ANY, is_by_own_code
from replaydbg.errors import UsageError
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.json_data.moments_json import moment_facts, raised_facts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--own", action="store_true", help="only those that your own code raised")
    who.add_argument(
        "--all",
        action="store_true",
        help="also those of the standard library if there are more than N (default: they are left out then)",
    )
    parser.add_argument("--type", metavar="TYPE", default=ANY, help="only those that `except TYPE` would catch")
    parser.add_argument(
        "--text", metavar="TEXT", default="", help="only those with this text in their message or place, in any case"
    )
    parser.add_argument(
        "--limit", type=int, default=EXCEPTIONS, metavar="N", help=f"show the last N (default: {EXCEPTIONS})"
    )
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """List the exceptions, first to last; return 1 if there are none."""
    if args.limit < 1:
        raise UsageError(f"--limit must be at least 1 (got {args.limit}).")
    with opened(args.recording, quiet=args.quiet) as view:
        if args.type != ANY and not view.session.types_named(args.type):
            raise UsageError(f"--type must be an exception type that the program has (got {args.type!r}).")
        who = "own" if args.own else "all" if args.all else ""
        found = WantedExceptions(who, args.type, args.text, args.limit).listed(view)
        if args.json:
            print_json(_facts(view, found))
        else:
            _print(view, found)
        return 0 if found.number else 1


def _print(view: View, found: ListedExceptions) -> None:
    for each in found.shown:
        view.screen.line(raised_text(view, each))
    if not found.number:
        view.screen.complain("No such exception was raised in this run.")
    elif found.number > len(found.shown):
        view.screen.complain(f"Showing the last {len(found.shown):,}. Use --limit {found.number} for all.")
    if found.hidden:
        view.screen.complain(f"{found.hidden_text}: --all lists them.")
    if left_out := left_out_text(view):
        view.screen.complain(f"{left_out}.")


def _facts(view: View, found: ListedExceptions) -> JsonObject:
    session, left_out = view.session, view.session.index.left_out
    return {
        "exceptions": [raised_facts(session, each, is_own=is_by_own_code(each, view.own_code)) for each in found.shown],
        "number": found.number,
        "hidden": found.hidden,
        "left_out": None
        if left_out is None
        else {
            "number": left_out.number,
            "first": moment_facts(session, left_out.first, session.index.moment(left_out.first)),
            "last": moment_facts(session, left_out.last, session.index.moment(left_out.last)),
        },
    }
