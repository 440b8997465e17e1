"""`replaydbg resume` of a group: all of its processes go on from a recovery line."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from replaydbg.cli.common.output import print_json
from replaydbg.cli.running.resume_result import check_own, print_result, print_wait
from replaydbg.config import Settings
from replaydbg.errors import UsageError
from replaydbg.launch.endings import end_like
from replaydbg.log.group import Group
from replaydbg.recovery.group_launcher import GroupListener, plan_group_resumption, resume_group
from replaydbg.recovery.group_plan import GroupPlan
from replaydbg.render.groups.group_resume_text import again_line, group_plan_lines, group_start_line
from replaydbg.render.json_data.group_resume_json import group_plan_facts
from replaydbg.resume.going_live import ResumeChoices
from replaydbg.store.directory import Store, member_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

LATEST = "latest"
_MOMENT = re.compile(r"([0-9]{1,6})@([0-9]{1,18}|end)")


def run_group(args: argparse.Namespace, directory: Path, group: Group, store: Store, settings: Settings) -> int:
    """Resume the group in `directory`; return the exit code of its first program, or end by its signal."""
    name = directory.name.removesuffix(".rdbgs") if directory.parent == settings.store else str(directory)
    _check(args)
    at = cut_positions(args.at_cut, group)
    if not args.force and not args.plan:
        paths = (member_path(directory, each.number) for each in group.processes if each.recording is not None)
        check_own(paths, name)
    if args.plan:
        plan = plan_group_resumption(directory, name=name, at=at)
        if args.json:
            print_json(group_plan_facts(plan))
        else:
            print("\n".join(group_plan_lines(plan)))
        return 0
    is_verbose = not settings.quiet and not args.json
    begins = None if args.json else _print_start if is_verbose else _print_again
    listener = GroupListener(print_wait if is_verbose else None, begins, _print_plan if is_verbose else None)
    choices = ResumeChoices(policy=args.in_flight, force=args.force)
    result = resume_group(
        directory, name=name, at=at, choices=choices, output=args.output, settings=settings, listener=listener
    )
    print_result(args, result, store, is_verbose=is_verbose)
    return end_like(result.status)


def _check(args: argparse.Namespace) -> None:
    if args.at is not None:
        raise UsageError("--at is for one process: a group of processes is resumed with --at-cut.")
    if args.follow:
        raise UsageError("--follow is for one process: a group cannot have a hot standby.")
    if args.after_power_loss:
        raise UsageError("--after-power-loss is for one process: a group cannot be resumed after a power cut.")


def cut_positions(words: list[str] | None, group: Group) -> dict[int, int]:
    """Return the positions that the words of --at-cut give: the latest ones of these processes. Raises UsageError."""
    found: dict[int, int] = {}
    numbers = {each.number for each in group.processes if each.recording is not None}
    for word in words or [LATEST]:
        if word == LATEST:
            continue
        match = _MOMENT.fullmatch(word)
        if match is None:
            raise UsageError(f"--at-cut needs `latest`, or PROCESS@EVENT such as 2@898 or 2@end (got {word!r}).")
        process = int(match[1])
        if process not in numbers:
            recorded = ", ".join(map(str, sorted(numbers)))
            raise UsageError(f"No such process in the group: {process} (recorded: {recorded}).")
        if match[2] != "end":
            position = int(match[2])
            found[process] = min(position, found.get(process, position))
    return found


def _print_start(plan: GroupPlan) -> None:
    print(f"replaydbg: {group_start_line(plan)}", file=sys.stderr, flush=True)
    _print_again(plan)


def _print_again(plan: GroupPlan) -> None:
    """Print what is done twice, also with --quiet: nobody sees it later."""
    if line := again_line(plan):
        print(f"replaydbg: {line}", file=sys.stderr, flush=True)


def _print_plan(plan: GroupPlan) -> None:
    print("\n".join(f"replaydbg: {line}" for line in group_plan_lines(plan)), file=sys.stderr, flush=True)
