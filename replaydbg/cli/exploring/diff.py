"""`replaydbg diff`: compare two moments of a recording, or two recordings."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from replaydbg.cli.common.heap_options import (
    add_shape,
    check_shape,
    is_stored,
    lone_snapshot,
    most_of,
    print_tables,
    stored,
)
from replaydbg.cli.common.heap_resources import add_resources, resources_beside
from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.opening import add_quiet, opened
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.cli.common.output import open_named, print_json
from replaydbg.cli.exploring.diff_calls import compare_calls
from replaydbg.commands.first_differences import first_differences
from replaydbg.commands.heap_commands import seconds_of, unsearched_text, writers, written_paths
from replaydbg.commands.view import View
from replaydbg.debugger.changed_values import WITHIN
from replaydbg.debugger.object_history import holdings
from replaydbg.debugger.session_results import Moment
from replaydbg.errors import UsageError
from replaydbg.heap.comparison.diff_results import Diff, without
from replaydbg.heap.comparison.drift import drift
from replaydbg.heap.comparison.snapshot_diff import SCOPES, diff
from replaydbg.heap.retention.holding import MINE, Holding
from replaydbg.heap.storage.masked_snapshot import masked_snapshot_of
from replaydbg.prompt.terminal import ProgressLine
from replaydbg.render.first_differences_text import tables
from replaydbg.render.heap_tables import diff_tables
from replaydbg.render.json_data.first_differences_json import facts
from replaydbg.render.json_data.heap_json import diff_facts
from replaydbg.render.tables import Table

_MOMENT = re.compile(r"@.+|\d+(:\d+)?|\d+(\.\d+)?%|rdbg://.+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a path, a name such as run-12, or latest; or a snapshot's file")
    parser.add_argument(
        "others",
        metavar="MOMENT ... | RECORDING",
        nargs="+",
        help="two moments, such as 120:35 @end; one moment (compared with the failure or the end); or a recording",
    )
    parser.add_argument("--at", metavar="MOMENT", help="with two recordings: the moment at which to compare them")
    parser.add_argument("--scope", choices=tuple(SCOPES), default=MINE, help="which objects to report (default: mine)")
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="PATTERN",
        help="ignore paths such as 'app.stats*'; repeatable",
    )
    parser.add_argument(
        "--first",
        action="store_true",
        help="with two recordings: the first difference in control flow, in inputs and in values",
    )
    parser.add_argument(
        "--calls",
        action="store_true",
        help="with two recordings: the functions that one of them called and the other did not, or not as often",
    )
    parser.add_argument(
        "--no-writes", action="store_true", help="do not search for the lines that wrote the changed values"
    )
    parser.add_argument(
        "--writes-within",
        metavar="SECONDS",
        help=f"time limit of that search (default: {WITHIN:g})",
    )
    add_resources(parser, "with two moments: also show descriptors that were opened or closed in between")
    add_shape(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    """Show the difference; 1 if there is one."""
    check_shape(args)
    moments = [each for each in args.others if _MOMENT.fullmatch(each)]
    if len(args.others) > 2 or (moments and len(moments) < len(args.others)):
        raise UsageError("usage: diff REC MOMENT MOMENT, or diff REC REC")
    if not moments and len(args.others) == 2:
        raise UsageError(f"{args.others[0]!r} is not a moment (such as 120:35, 71% or @end).")
    if moments and args.at is not None:
        raise UsageError("--at needs two recordings. To compare two moments of one recording: diff REC MOMENT MOMENT.")
    if args.resources and not moments:
        raise UsageError("--resources compares two moments of one recording: diff --resources REC MOMENT MOMENT.")
    if args.first:
        if moments or args.at is not None:
            raise UsageError("--first compares two recordings from beginning to end: diff --first RECORDING RECORDING.")
        return _first(args)
    if args.calls:
        if moments or args.at is not None:
            raise UsageError("--calls compares two recordings from beginning to end: diff --calls RECORDING RECORDING.")
        return compare_calls(args)
    return _of_moments(args, moments) if moments else _of_recordings(args)


def _first(args: argparse.Namespace) -> int:
    store = the_store()
    names = (args.recording, args.others[0])
    one, two = (store.resolve(name) for name in names)
    for path, name in zip((one, two), names, strict=True):
        warn_if_foreign(path, name, quiet=args.quiet)
    progress = ProgressLine(sys.stderr, lambda: None, is_quiet=args.quiet)
    found = first_differences(one, two, progress=progress)
    progress.clear()
    if args.json:
        print_json(facts(found))
    else:
        print_tables(args, tables(found))
    return 0 if found.is_empty else 1


def _of_moments(args: argparse.Namespace, moments: list[str]) -> int:
    if len(moments) == 2 and all(map(is_stored, moments)):
        with open_named(args.recording) as recording:
            before, after = (stored(recording, moment[2:]) for moment in moments)
        beside = resources_beside(args, before.snapshot.taken.event, after.snapshot.taken.event)
        return _print_difference(args, _difference(args, before, after), beside=beside)
    seconds = WITHIN if args.writes_within is None else seconds_of(args.writes_within)
    with opened(args.recording, quiet=args.quiet) as view:
        session = view.session
        ends: list[str | int | Moment] = [session.here.count]
        both = [*moments, *ends][:2]
        before, after = holdings(session, both, which=args.which)
        found = _difference(args, before, after)
        beside = resources_beside(args, before.snapshot.taken.event, after.snapshot.taken.event)
        later = max(map(session.count_of, both))
        paths = [] if args.no_writes else written_paths(found)
        if args.json:
            written = dict(writers(session, paths, later, after.modules, seconds))
            return _print_difference(
                args,
                found,
                {path: text for path, text in written.items() if text},
                len(paths) - len(written),
                beside=beside,
            )
        code = _print_difference(args, found, beside=beside)
        sys.stdout.flush()
        _print_writers(args, view, paths, later, after.modules, seconds)
        return code


def _print_writers(
    args: argparse.Namespace, view: View, paths: list[str], later: int, modules: Sequence[str], seconds: float
) -> None:
    number = 0
    for path, text in writers(view.session, paths, later, modules, seconds):
        view.screen.check()
        if not number:
            view.screen.line("### Written at\n" if args.md else "Written at", "" if args.md else "bold")
        view.screen.line(f"- `{path}`: {text or 'unknown'}" if args.md else f"  {path}  {text or 'unknown'}")
        sys.stdout.flush()
        number += 1
    if number < len(paths):
        sentence = unsearched_text(len(paths) - number, seconds, f"--writes-within {10 * seconds or 10:g}")
        view.screen.line(f"\n{sentence}" if args.md else f"  {sentence}")


def _of_recordings(args: argparse.Namespace) -> int:
    names = (args.recording, args.others[0])
    alone = [lone_snapshot(name) for name in names]
    # In a file secrets are masked. A replay has them: they are masked, too, or each would be a difference.
    is_masked = any(each is not None for each in alone)
    before, after = (
        _named(_heap(args, name, is_masked=is_masked) if held is None else held, name)
        for name, held in zip(names, alone, strict=True)
    )
    return _print_difference(args, drift(before, after, ignore=args.ignore, most=most_of(args), scope=args.scope))


def _named(held: Holding, name: str) -> Holding:
    """Return the heap with the recording's name added to its own."""
    taken = held.snapshot.taken
    words = " ".join(filter(None, (Path(name).name.removesuffix(".rdbg"), taken.name)))
    return Holding(replace(held.snapshot, taken=replace(taken, name=words)))


def _heap(args: argparse.Namespace, name: str, *, is_masked: bool) -> Holding:
    if is_stored(args.at):
        with open_named(name) as recording:
            return stored(recording, args.at[2:])
    with opened(name, quiet=args.quiet) as view:
        session = view.session
        moment = args.at if args.at is not None else session.here.count
        held = holdings(session, [moment], which=args.which)[0]
        return Holding(masked_snapshot_of(session.path, held.snapshot)) if is_masked else held


def _difference(args: argparse.Namespace, before: Holding, after: Holding) -> Diff:
    if not args.ignore:
        return diff(before, after, most=most_of(args), scope=args.scope)
    return without(diff(before, after, most=None, scope=args.scope), args.ignore, most_of(args))


def _print_difference(
    args: argparse.Namespace,
    found: Diff,
    written: dict[str, str] | None = None,
    unsearched: int = 0,
    *,
    beside: tuple[dict[str, object], list[Table]] = ({}, []),
) -> int:
    more_facts, more_tables = beside
    if args.json:
        print_json({**diff_facts(found), "written": written or {}, "unsearched": unsearched, **more_facts})
    else:
        print_tables(args, [*diff_tables(found), *more_tables])
    return 0 if found.is_empty else 1
