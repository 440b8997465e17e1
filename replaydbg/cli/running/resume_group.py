"""`replaydbg resume` of a group: all of its processes go on from a recovery line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from replaydbg.cli.common.output import print_json
from replaydbg.cli.common.schema import SCHEMA_VERSION
from replaydbg.config import Settings
from replaydbg.errors import CannotResume, UsageError
from replaydbg.launch.endings import end_like
from replaydbg.log.group import Group
from replaydbg.log.origin import is_own
from replaydbg.recovery.group_launcher import GroupListener, plan_group_resumption, resume_group
from replaydbg.recovery.group_plan import GroupPlan
from replaydbg.render.group_resume_text import group_plan_lines, group_start_line
from replaydbg.render.json_data.group_resume_json import group_plan_facts
from replaydbg.render.json_data.runs_json import record_facts
from replaydbg.render.record_summary import summary_lines
from replaydbg.resume.launcher import Choices
from replaydbg.store.directory import Store, member_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

LATEST = "latest"
_MOMENT = re.compile(r"([0-9]{1,6})@([0-9]{1,18}|end)")
_END = 1 << 62


def is_of_several(group: Group) -> bool:
    """Whether more than one process of a group was recorded."""
    return sum(each.recording is not None for each in group.processes) > 1


def run_group(args: argparse.Namespace, directory: Path, group: Group, store: Store, settings: Settings) -> int:
    """Resume the group in `directory`; return the exit code of its first program, or end by its signal."""
    name = directory.name.removesuffix(".rdbgs") if directory.parent == settings.store else str(directory)
    _check(args)
    at = cut_positions(args.at_cut, group)
    foreign = [
        each.number
        for each in group.processes
        if each.recording is not None and not is_own(member_path(directory, each.number))
    ]
    if foreign and not args.force:
        reason = "it was not recorded by you with this installation, and its programs would run with all your rights"
        raise CannotResume(name, f"{reason} (--force goes on)")
    if args.plan:
        plan = plan_group_resumption(directory, name=name, at=at)
        if args.json:
            print_json(group_plan_facts(plan))
        else:
            print("\n".join(group_plan_lines(plan)))
        return 0
    is_verbose = not settings.quiet and not args.json
    listener = GroupListener(_print_start if is_verbose else None, _print_plan if is_verbose else None)
    choices = Choices(0, args.in_flight, args.force)
    result = resume_group(
        directory, name=name, at=at, choices=choices, output=args.output, settings=settings, listener=listener
    )
    if args.json:
        print(json.dumps({"schema_version": SCHEMA_VERSION, **record_facts(result)}), file=sys.stderr)
    elif is_verbose:
        lines = summary_lines(result, store.name_of(result.path), is_held=False, output=args.output)
        print("\n".join(lines), file=sys.stderr)
    elif result.problem:
        print(f"replaydbg: {result.path}: {result.problem}.", file=sys.stderr)
    return end_like(result.status)


def _check(args: argparse.Namespace) -> None:
    if args.at is not None:
        raise UsageError("--at is for one process: a group of processes is resumed with --at-cut.")
    if args.follow:
        raise UsageError("--follow is for one process: a group cannot have a hot standby.")


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
        position = _END if match[2] == "end" else int(match[2])
        found[process] = min(position, found.get(process, position))
    return found


def _print_start(plan: GroupPlan) -> None:
    print(f"replaydbg: {group_start_line(plan)}", file=sys.stderr, flush=True)


def _print_plan(plan: GroupPlan) -> None:
    print("\n".join(f"replaydbg: {line}" for line in group_plan_lines(plan)), file=sys.stderr, flush=True)
