"""`replaydbg ps`: list the processes that were recorded together, each with how it began and how it ended."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from replaydbg.cli.common.output import add_json, named_group, print_json, print_table
from replaydbg.errors import Corrupt, ReplaydbgError
from replaydbg.events.show import printable
from replaydbg.groups.command_lines import with_commands
from replaydbg.log.group import Group, GroupProcess, process_facts, read_group
from replaydbg.log.reader import open_recording
from replaydbg.render.groups.processes_text import command_text, ended_text, started_text
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.store.directory import member_path

_COLUMNS = ("#", "pid", "started", "ended", "events", "command")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a group of processes: a path, a name such as run-12, or latest")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """List the processes of a group; 1 if a recording in it is missing or damaged."""
    directory = named_group(args.recording)
    group = read_group(directory)
    group = with_commands(directory, group)
    found = [(each, *_events(directory, group, each)) for each in group.processes]
    if args.json:
        facts = [{**process_facts(each), "events": events, "problem": problem} for each, events, problem in found]
        print_json(_facts(directory, group) | {"processes": facts})
    else:
        print_table(_COLUMNS, [_row(*each) for each in found], right=("#", "pid", "events"))
        for line in _remarks(group, found):
            print(f"replaydbg: {printable(line)}", file=sys.stderr)
    return 1 if any(problem for *_, problem in found) else 0


def _events(directory: Path, group: Group, process: GroupProcess) -> tuple[int | None, str | None]:
    """Return the number of events in the recording of a process, and what is wrong with it; None each: nothing."""
    if process.recording is None:
        return None, None
    try:
        with open_recording(member_path(directory, process.number)) as recording:
            if (recording.header.group, recording.header.process) != (group.identity, process.number):
                raise Corrupt(str(recording.path), "it is the recording of another process")
            end, log = recording.end, recording.log_header
            events = end.events if end is not None else log.crossings if log is not None else 0
            return events, recording.damage[0] if recording.damage else None
    except ReplaydbgError as error:
        return None, str(error)


def _facts(directory: Path, group: Group) -> JsonObject:
    return {"path": str(directory), "group": group.identity, "complete": group.is_complete, "more": group.more}


def _row(process: GroupProcess, events: int | None, problem: str | None) -> tuple[str, ...]:
    return (
        str(process.number),
        str(process.pid) if process.pid else "",
        started_text(process),
        ended_text(process),
        "" if events is None else f"{events:,}",
        command_text(process),
    )


def _remarks(group: Group, found: list[tuple[GroupProcess, int | None, str | None]]) -> list[str]:
    lines = [f"process {each.number} is not recorded: {each.why_not}." for each, *_ in found if not each.recording]
    lines += [f"process {each.number}: {each.why_not}." for each, *_ in found if each.recording and each.why_not]
    lines += [f"process {each.number}: {problem}" for each, _, problem in found if problem]
    if group.more:
        lines.append(f"{group.more:,} more processes were started, and are not recorded.")
    return lines
