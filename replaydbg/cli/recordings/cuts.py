"""`replaydbg cuts`: compare checkpoint policies over processes that were recorded together."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from replaydbg.cli.common.group_problems import print_missing_ends, print_problems_of, problems_of
from replaydbg.cli.common.output import add_json, named_group, print_json, print_table
from replaydbg.distributed.checkpoint_policies import (
    ADAPTIVE,
    EVENTS,
    POLICIES,
    TIME,
    TRANSFERS,
    TRIGGERS,
    CheckpointedRun,
    CheckpointPositions,
    Policy,
    Recovery,
)
from replaydbg.errors import UsageError
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.group_ends import require_ends
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.render.groups.cuts_text import POLICY_COLUMNS, POLICY_RIGHT, policy_row, policy_text
from replaydbg.render.json_data.cuts_json import recovery_facts

DEFAULTS = tuple(
    Policy(kind, every, trigger)
    for kind in POLICIES
    for every, trigger in ((20, EVENTS), (100, EVENTS), (400, EVENTS), (100, ADAPTIVE))
)
"""The policies that are compared without `--policy`."""

_UNITS = {"ms": 10**6, "s": 10**9}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a group of processes: a path, a name such as run-12, or latest")
    parser.add_argument(
        "--policy",
        action="append",
        metavar="KIND:N[:TRIGGER]",
        help=f"{', '.join(POLICIES)}: a checkpoint after N events of a process, after N sends and receives "
        "(`transfers`), as many as after N events but sooner where it sends and receives more (`adaptive`), or after a "
        "time, such as 200ms; repeatable (default: all three, after 20, 100 and 400 events, and 100 adaptive)",
    )
    parser.add_argument(
        "--failed",
        action="append",
        type=int,
        metavar="PROCESS",
        help="a process that fails just before its end; repeatable: all fail when the first one does "
        "(default: each process alone, in turn)",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the comparison; 1 if a recording of the group is missing or damaged."""
    opened = OpenedGroup(named_group(args.recording))
    if not opened.matching.members:
        raise UsageError(f"{opened.name} has no recording that can be read.")
    cuts = GroupCuts(opened)
    print_missing_ends(require_ends(cuts))
    policies = [_policy(each) for each in args.policy] if args.policy else list(DEFAULTS)
    last = cuts.finder.last
    for each in args.failed or ():
        if each not in last:
            raise UsageError(f"The group has no recording of process {each}. Recorded: {', '.join(map(str, last))}.")
    failures = [args.failed] if args.failed else [[process] for process in last]
    found = list(_compared(opened, cuts, policies, failures))
    if args.json:
        facts = {"path": str(opened.directory), "events": {str(each): count for each, count in last.items()}}
        rows = [recovery_facts(policy_text(each[0]), *each[1:]) for each in found]
        print_json(facts | {"policies": rows, "problems": problems_of(opened)})
    else:
        print_table(POLICY_COLUMNS, (policy_row(*each) for each in found), right=POLICY_RIGHT)
    print_problems_of(opened)
    return 1 if opened.problems else 0


def _compared(
    opened: OpenedGroup, cuts: GroupCuts, policies: list[Policy], failures: list[list[int]]
) -> Iterator[tuple[Policy, list[int], CheckpointPositions, Recovery]]:
    run = CheckpointedRun(opened.matching, cuts.finder, cuts.times)
    for policy in policies:
        checkpoints = run.checkpoints(policy)
        for failed in failures:
            yield policy, failed, checkpoints, run.recovery(checkpoints, failed)


def _policy(text: str) -> Policy:
    """Return a policy as the user wrote it. Raises UsageError."""
    found = re.fullmatch(r"(\w+):([0-9]{1,15})(ms|s)?(?::(\w+))?", text)
    trigger = (TIME if found[3] else found[4] or EVENTS) if found is not None else ""
    is_known = trigger in TRIGGERS and (trigger == TIME) == bool(found and found[3] and not found[4])
    if found is None or found[1] not in POLICIES or not int(found[2]) or not is_known:
        kinds = ", ".join(POLICIES)
        raise UsageError(
            f"{text!r} is not a policy: KIND:N, KIND:N:{TRANSFERS}, KIND:N:{ADAPTIVE} or KIND:TIME; "
            f"N at least 1, TIME such as 200ms, KIND one of {kinds}."
        )
    return Policy(found[1], int(found[2]) * _UNITS.get(found[3], 1), trigger)
