"""`replaydbg stable`: find when a group was deadlocked or had terminated, and when other properties became true."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from replaydbg.bisect.search import CHECKS, Answer, Found
from replaydbg.cli.common.group_problems import print_problems_of, problems_of
from replaydbg.cli.common.opening import add_quiet, opened
from replaydbg.cli.common.output import add_json, named_group, print_json, print_table
from replaydbg.debugger.source.source_files import is_library
from replaydbg.errors import UsageError
from replaydbg.events.records import Site
from replaydbg.events.show import printable
from replaydbg.groups.cut_values import count_at
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.invariants import Invariant, InvariantSearch
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.groups.stable_properties import Deadlock, StableProperties, Termination
from replaydbg.groups.stretches import stretches
from replaydbg.render.groups.cuts_text import cut_text
from replaydbg.render.groups.invariants_text import ONE_CHAIN, counted, undecided_sentence
from replaydbg.render.groups.stable_text import (
    COLUMNS,
    POSSIBLE,
    blocked_rows,
    deadlock_sentence,
    stretch_lines,
    termination_sentence,
)
from replaydbg.render.json_data.stable_json import deadlock_facts, positions_facts, stretch_facts, termination_facts
from replaydbg.store.directory import member_path

FOUND, NOTHING = 1, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a group of processes: a path, a name such as run-12, or latest")
    parser.add_argument(
        "--lines",
        action="store_true",
        help="show the program's own lines, also of calls that never ended (replays the processes)",
    )
    parser.add_argument(
        "--token",
        metavar="EXPR",
        help="instead, count tokens: EXPR, evaluated in each process, is its number of tokens",
    )
    parser.add_argument(
        "--in-flight", metavar="REGEX", default="", help="with --token: each match in a message in flight is a token"
    )
    parser.add_argument(
        "--local", metavar="EXPR", help="instead, find when --holds became true; EXPR is evaluated in each process"
    )
    parser.add_argument(
        "--channel",
        metavar="EXPR",
        default="",
        help="with --local: the value of each message in flight, of which m is the bytes",
    )
    parser.add_argument("--holds", metavar="EXPR", help="with --local: the condition, over total, locals and flight")
    parser.add_argument(
        "--settled",
        metavar="EXPR",
        default="",
        help="with --token or --local: cuts in which EXPR is true in each process, instead of quiet ones",
    )
    parser.add_argument("--in", dest="module", metavar="MODULE", default="__main__", help="evaluate in this module")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the properties; 1 for a deadlock, or a damaged recording; 3 for a possible one, or a false --holds."""
    _check(args)
    group = OpenedGroup(named_group(args.recording))
    if not group.matching.members:
        raise UsageError(f"{group.name} has no recording that can be read.")
    cuts = GroupCuts(group)
    if args.token is not None:
        code = _tokens(args, cuts)
    elif args.local is not None:
        code = _became_true(args, cuts)
    else:
        code = _properties(args, cuts)
    print_problems_of(group)
    return FOUND if group.problems else code


def _check(args: argparse.Namespace) -> None:
    if (args.local is None) != (args.holds is None):
        raise UsageError("--local and --holds must be given together.")
    if args.token is not None and args.local is not None:
        raise UsageError("Use either --token or --local.")
    if args.in_flight and args.token is None:
        raise UsageError("--in-flight needs --token.")
    if args.settled and args.token is None and args.local is None:
        raise UsageError("--settled needs --token or --local.")
    if args.channel and args.local is None:
        raise UsageError("--channel needs --local.")


# ---- deadlock and termination ----


def _properties(args: argparse.Namespace, cuts: GroupCuts) -> int:
    properties = StableProperties(cuts)
    deadlock, termination = properties.deadlock(), properties.termination()
    lines = _lines(args, cuts.opened, deadlock, termination) if args.lines else {}
    if args.json:
        facts = {
            "path": str(cuts.opened.directory),
            "deadlock": deadlock_facts(cuts.opened, deadlock, lines) if deadlock is not None else None,
            "termination": termination_facts(cuts.opened, termination, lines) if termination is not None else None,
            "problems": problems_of(cuts.opened),
        }
        print_json(facts)
    else:
        _show(cuts.opened, deadlock, termination, lines)
    return 0 if deadlock is None else FOUND if deadlock.is_certain else NOTHING


def _show(
    opened_group: OpenedGroup, deadlock: Deadlock | None, termination: Termination | None, lines: dict[int, Site]
) -> None:
    if deadlock is None:
        print("no deadlock")
    else:
        print(deadlock_sentence(deadlock))
        print_table(COLUMNS, blocked_rows(opened_group, deadlock.core, lines))
        if deadlock.others:
            print("these wait for them:")
            print_table(COLUMNS, blocked_rows(opened_group, deadlock.others, lines))
        if not deadlock.is_certain:
            print(f"replaydbg: {POSSIBLE}", file=sys.stderr)
        for doubt in deadlock.cut.doubts:
            print(f"replaydbg: {printable(doubt)}.", file=sys.stderr)
    print(termination_sentence(termination))
    if termination is not None and deadlock is None and termination.blocked:
        print_table(COLUMNS, blocked_rows(opened_group, termination.blocked, lines))


def _lines(
    args: argparse.Namespace, group: OpenedGroup, deadlock: Deadlock | None, termination: Termination | None
) -> dict[int, Site]:
    """Return the program's own lines in which main threads wait, by process: replays these."""
    shown = (*deadlock.core, *deadlock.others) if deadlock is not None else ()
    shown += termination.blocked if termination is not None and deadlock is None else ()
    positions = {each.process: each.position for each in shown if not each.lane}
    found: dict[int, Site] = {}
    if positions:
        first = member_path(group.directory, min(positions))
        with opened(str(first), quiet=args.quiet) as view:
            for process, position in sorted(positions.items()):
                session = view.group.session(process)
                frames = session.look_at(count_at(session, position)).stack
                frame = next((each for each in frames if not is_library(each.file)), frames[0] if frames else None)
                if frame is not None:
                    found[process] = Site("", frame.file, frame.function, frame.line, 0)
    return found


# ---- values ----


def _tokens(args: argparse.Namespace, cuts: GroupCuts) -> int:
    channel = f"len(re.findall({args.in_flight.encode()!r}, m))" if args.in_flight else ""
    invariant = Invariant(args.token, "True", channel, args.module, args.settled)
    first = member_path(cuts.opened.directory, cuts.opened.matching.members[0].process)
    with opened(str(first), quiet=args.quiet) as view:
        search = InvariantSearch(cuts, view.group.session, invariant)
        found, unknown = stretches(search)
        view.screen.settle()
        if args.json:
            facts = {"path": str(cuts.opened.directory), "cuts": len(search.chain)}
            facts |= {"tokens": stretch_facts(search.chain, found), "undecided": len(unknown)}
            print_json(facts | {"problems": problems_of(cuts.opened)})
            return 0
        for line in stretch_lines(search.chain, found):
            print(line)
        if unknown:
            print(f"replaydbg: {printable(undecided_sentence(unknown))}", file=sys.stderr)
    return 0


def _became_true(args: argparse.Namespace, cuts: GroupCuts) -> int:
    invariant = Invariant(args.local, f"not ({args.holds})", args.channel, args.module, args.settled)
    first = member_path(cuts.opened.directory, cuts.opened.matching.members[0].process)
    with opened(str(first), quiet=args.quiet) as view:
        search = InvariantSearch(cuts, view.group.session, invariant)
        found = search.search(checks=CHECKS)
        view.screen.settle()
        is_true = found.answer in (Answer.FOUND, Answer.ALWAYS)
        since = search.chain[found.first_bad] if is_true else None
        if args.json:
            facts = {"path": str(cuts.opened.directory), "cuts": len(search.chain), "evaluated": len(search.found)}
            facts |= {"since": positions_facts(since) if since is not None else None}
            print_json(facts | {"problems": problems_of(cuts.opened)})
        else:
            print(f"true since {cut_text(since)}" if since is not None else "not true in the last cut")
            for line in _remarks(search, found):
                print(f"replaydbg: {printable(line)}", file=sys.stderr)
    return 0 if is_true else NOTHING


def _remarks(search: InvariantSearch, found: Found) -> Iterator[str]:
    undecided = [each for each in search.found.values() if each.reason]
    if undecided:
        yield undecided_sentence(undecided)
    if found.unfit and found.answer is Answer.FOUND:
        yield f"It is not true in {counted(len(found.unfit), 'later cut')}: it is not stable."
    yield ONE_CHAIN
