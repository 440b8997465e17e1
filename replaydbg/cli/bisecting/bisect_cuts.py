"""`replaydbg bisect cuts`: find the first global state of a group in which an invariant does not hold."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from replaydbg.bisect.search import CHECKS, Answer, Found
from replaydbg.cli.common.group_problems import print_missing_ends, print_problems_of, problems_of
from replaydbg.cli.common.opening import add_quiet, opened
from replaydbg.cli.common.output import add_json, named_group, print_json
from replaydbg.cli.common.scheduler_option import add_scheduler, scheduler_pool
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.events.verdict import Verdict
from replaydbg.groups.cut_values import ChangingLine, changes_between
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.group_ends import require_ends
from replaydbg.groups.group_session import GroupSession
from replaydbg.groups.invariants import AT_ONCE, Invariant, InvariantSearch
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.render.groups.invariants_text import result_lines, result_remarks
from replaydbg.render.json_data.cuts_json import change_facts, cut_value_facts
from replaydbg.store.directory import member_path

if TYPE_CHECKING:
    from replaydbg.cluster.tasks import TaskPool

FOUND, NOTHING = 1, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a group of processes: a path, a name such as run-12, or latest")
    parser.add_argument("--local", metavar="EXPR", required=True, help="an expression, evaluated in each process")
    parser.add_argument("--channel", metavar="EXPR", default="", help="an expression over m, the bytes of a message")
    parser.add_argument(
        "--holds", metavar="EXPR", required=True, help="true if the invariant holds; over total, locals and flight"
    )
    parser.add_argument("--in", dest="module", metavar="MODULE", default="__main__", help="evaluate in this module")
    parser.add_argument(
        "--settled",
        metavar="EXPR",
        default="",
        help="evaluate cuts in which EXPR is true in each process, instead of quiet ones",
    )
    parser.add_argument(
        "--every-event",
        action="store_true",
        help="evaluate cuts at every event, not only quiet ones",
    )
    parser.add_argument("--all", action="store_true", help="evaluate every cut: also finds temporary violations")
    add_scheduler(parser)
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Search; return 1 if a violation was found, 3 if not."""
    group = OpenedGroup(named_group(args.recording))
    if not group.matching.members:
        raise UsageError(f"{group.name} has no recording that can be read.")
    cuts = GroupCuts(group)
    first = member_path(group.directory, group.matching.members[0].process)
    if args.settled and args.every_event:
        raise UsageError("Use either --settled or --every-event.")
    print_missing_ends(require_ends(cuts))
    invariant = Invariant(args.local, args.holds, args.channel, args.module, args.settled)
    with scheduler_pool(args) as pool, opened(str(first), quiet=args.quiet) as view:
        search = _search_of(cuts, view.group, invariant, pool, quiet=not args.every_event)
        found = search.search(checks=len(search.chain) if args.all else CHECKS)
        changes = _changes(view.group, search, found, invariant)
        view.screen.settle()
        _show(args, search, found, changes, group)
    print_problems_of(group)
    is_violated = any(each.verdict is Verdict.BAD for each in search.found.values())
    return FOUND if is_violated else NOTHING


def _search_of(
    cuts: GroupCuts, group: GroupSession, invariant: Invariant, pool: TaskPool | None, *, quiet: bool
) -> InvariantSearch:
    if pool is None:
        return InvariantSearch(cuts, group.session, invariant, quiet=quiet)
    # Imported here: only --scheduler needs it.
    from replaydbg.cluster.questions.values_tasks import ClusterValues

    directory = cuts.opened.directory
    values = ClusterValues(pool, lambda process: member_path(directory, process))
    return InvariantSearch(
        cuts, group.session, invariant, quiet=quiet, values=values.at, width=max(AT_ONCE, pool.slots)
    )


def _changes(
    group: GroupSession, search: InvariantSearch, found: Found, invariant: Invariant
) -> list[ChangingLine] | None:
    """Return the lines that changed local values between the last good and the first bad cut; None: too many."""
    if found.answer is not Answer.FOUND or found.last_good < 0:
        return []
    good, bad = search.chain[found.last_good], search.chain[found.first_bad]
    changes: list[ChangingLine] = []
    for process, position in bad.items():
        # One that had not begun in the last good cut: its first lines are its parent's.
        if position == good[process] or not good[process] or process not in search.participants:
            continue
        more = changes_between(
            group.session(process), process, good[process], position, invariant.local, module=invariant.module
        )
        if more is None:
            return None
        changes += more
    return changes


def _show(
    args: argparse.Namespace,
    search: InvariantSearch,
    found: Found,
    changes: list[ChangingLine] | None,
    group: OpenedGroup,
) -> None:
    if args.json:
        facts = {
            "path": str(group.directory),
            "answer": found.answer.value,
            "cuts": len(search.chain),
            "evaluated": [cut_value_facts(place, search.found[place]) for place in sorted(search.found)],
            "last_good": found.last_good if found.last_good >= 0 else None,
            "first_bad": found.first_bad if found.first_bad >= 0 else None,
            "unfit": list(found.unfit),
            "changes": [change_facts(each) for each in changes] if changes is not None else None,
            "problems": problems_of(group),
        }
        print_json(facts)
        return
    for line in result_lines(group, search, found, changes):
        print(line)
    for line in result_remarks(search, found):
        print(f"replaydbg: {printable(line)}", file=sys.stderr)
