"""`replaydbg diff`: what changed between two moments of a recording, or between two recordings."""

from __future__ import annotations

import argparse
import re

from replaydbg.cli.heaps import add_shape, check_shape, diff_facts, most_of, print_tables
from replaydbg.cli.opening import add_quiet, opened
from replaydbg.cli.output import print_json
from replaydbg.debugger.objects import holdings
from replaydbg.debugger.values import Moment
from replaydbg.errors import UsageError
from replaydbg.heap.diff import SCOPES, diff
from replaydbg.heap.difference import Diff
from replaydbg.heap.holding import MINE, Holding
from replaydbg.prompt.heap_tables import diff_tables
from replaydbg.prompt.heaps import writers

_MOMENT = re.compile(r"@.+|\d+(:\d+)?|\d+(\.\d+)?%|rdbg://.+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a path, a name such as run-12, or latest")
    parser.add_argument(
        "others",
        metavar="MOMENT ... | RECORDING",
        nargs="+",
        help="two moments, such as 120:35 @end; one: from there to the failure, or the end; or another recording",
    )
    parser.add_argument("--at", metavar="MOMENT", help="of two recordings: at that moment of each")
    parser.add_argument("--scope", choices=tuple(SCOPES), default=MINE, help="whose objects are told (mine)")
    parser.add_argument("--no-writes", action="store_true", help="do not look for the lines that wrote changed values")
    add_shape(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    """Show the difference; 1 if there is one."""
    check_shape(args)
    moments = [each for each in args.others if _MOMENT.fullmatch(each)]
    if len(args.others) > 2 or (moments and len(moments) < len(args.others)):
        raise UsageError("Say two moments of one recording, or two recordings.")
    if not moments and len(args.others) == 2:
        raise UsageError(f"{args.others[0]!r} is no moment, such as 120:35, 71% or @end.")
    if moments and args.at is not None:
        raise UsageError("--at is of two recordings; of one, say the two moments.")
    return _of_moments(args, moments) if moments else _of_recordings(args)


def _of_moments(args: argparse.Namespace, moments: list[str]) -> int:
    with opened(args.recording, quiet=args.quiet) as prompt, prompt.busy():
        session = prompt.view.session
        ends: list[str | int | Moment] = [session.here.count]
        both = [*moments, *ends][:2]
        before, after = holdings(session, both, which=args.which)
        found = diff(before, after, most=most_of(args), scope=args.scope)
        later = max(both, key=session.count_of)
        written = {} if args.no_writes or not found.changed.items else writers(session, found, later)
        if args.json:
            print_json({**diff_facts(found), "written": written})
        else:
            told = (lambda change: written.get(change.path, "")) if any(written.values()) else None
            print_tables(args, diff_tables(found, written=told))
        return 0 if found.is_empty else 1


def _of_recordings(args: argparse.Namespace) -> int:
    before, after = (_heap(args, name) for name in (args.recording, args.others[0]))
    found: Diff = diff(before, after, most=most_of(args), scope=args.scope, by_identity=False)
    if args.json:
        print_json(diff_facts(found))
    else:
        print_tables(args, diff_tables(found))
    return 0 if found.is_empty else 1


def _heap(args: argparse.Namespace, name: str) -> Holding:
    with opened(name, quiet=args.quiet) as prompt, prompt.busy():
        session = prompt.view.session
        moment = args.at if args.at is not None else session.here.count
        return holdings(session, [moment], which=args.which)[0]
