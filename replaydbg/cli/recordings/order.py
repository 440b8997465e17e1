"""`replaydbg order`: show which of two events of a group came first, or that they are concurrent."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.group_problems import print_missing_ends, print_problems_of, problems_of
from replaydbg.cli.common.output import add_json, named_group, print_json
from replaydbg.distributed.causal_order import AFTER, BEFORE, CONCURRENT, SAME
from replaydbg.distributed.peeks import peek_requirements
from replaydbg.errors import UsageError
from replaydbg.groups.causality import causal_order, is_order_known
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.group_ends import requirements_of_ends
from replaydbg.groups.opened_group import OpenedGroup

_SENTENCES = {
    BEFORE: "{one} came before {other}",
    AFTER: "{one} came after {other}",
    CONCURRENT: "{one} and {other} are concurrent",
    SAME: "{one} and {other} are the same event",
}
_UNKNOWN = (
    "{one} and {other} may be concurrent: it is not certain which messages were received, or what released a lock"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a group of processes: a path, a name such as run-12, or latest")
    parser.add_argument("one", metavar="PROCESS@EVENT", help="an event of a process, such as 2@898")
    parser.add_argument("other", metavar="PROCESS@EVENT", help="another one")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the order; 1 if a recording of the group is missing or damaged."""
    opened = OpenedGroup(named_group(args.recording))
    one, other = (_event(opened, each) for each in (args.one, args.other))
    ends, problem = requirements_of_ends(GroupCuts(opened))
    print_missing_ends(problem)
    known = causal_order(opened, [*peek_requirements(opened.matching), *ends])
    found = known.order(one, other)
    is_known = found != CONCURRENT or not (problem or known.unordered or not is_order_known(opened, ends))
    if args.json:
        clocks = [
            {str(process): event for process, event in sorted(known.clock(*each).items())} for each in (one, other)
        ]
        facts = {"path": str(opened.directory), "order": found, "is_certain": is_known, "clocks": clocks}
        print_json(facts | {"problems": problems_of(opened)})
    else:
        print((_SENTENCES[found] if is_known else _UNKNOWN).format(one=args.one, other=args.other))
    print_problems_of(opened)
    return 1 if opened.problems else 0 if is_known else 3


def _event(opened: OpenedGroup, text: str) -> tuple[int, int]:
    """Return the process and the number of an event. Raises UsageError."""
    process, _, event = text.partition("@")
    if not (process.isdecimal() and event.isdecimal() and len(text) < 100 and int(event)):
        raise UsageError(f"{text!r} is not an event of a process, such as 2@898.")
    index = opened.index_of(int(process))
    if index is None:
        raise UsageError(f"The group has no recording of process {process}.")
    if int(event) > opened.matching.members[index].events:
        raise UsageError(f"Process {process} has no event {event}.")
    return int(process), int(event)
