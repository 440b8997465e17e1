"""`replaydbg replay` of a group: all of its processes, with their output in the recorded order."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.errors import Corrupt, ReplaydbgError, UsageError
from replaydbg.events.show import printable
from replaydbg.launch.endings import end_like
from replaydbg.launch.processors import processors
from replaydbg.log.group import Group, read_group
from replaydbg.log.reader import open_recording
from replaydbg.render.json_data.runs_json import replay_facts
from replaydbg.render.replay_text import note_lines
from replaydbg.replay import replay
from replaydbg.replay.group_replay import OutputMerger, StreamWrite, replay_all, stream_writes
from replaydbg.replay.result import DIVERGED
from replaydbg.store.directory import member_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

_WIDTH = processors()
"""Number of processes that are replayed at once."""
_KILLED: dict[str, Any] = {"exit_code": 1, "notes": [], "error": "its replay was killed", "facts": None}


class _Member(NamedTuple):
    number: int
    name: str
    path: Path


def run_group(args: argparse.Namespace, directory: Path, name: str, *, quiet: bool) -> int:
    """Replay all processes of a group and return the exit code (see `_exit_code`)."""
    if args.to is not None or args.current_source or args.until_outcome:
        raise UsageError(f"--to, --current-source and --until-outcome need one process of the group, such as {name}/1.")
    group = read_group(directory)
    members = _members(directory, group, name)
    for each in members:
        warn_if_foreign(each.path, each.name, quiet=quiet)
    writes, problems = _writes(members)
    named = {each.number: each for each in members}

    def one(number: int, out: int, err: int) -> bytes:
        return _replayed(named[number], out, err)

    with OutputMerger(list(writes.values()), _show_on_stderr if args.json else _show) as merger:
        reports = replay_all(list(writes), one, merger, width=_WIDTH)
    results = {number: json.loads(data) if data else dict(_KILLED) for number, data in sorted(reports.items())}
    for number, problem in problems.items():
        results[number]["notes"] = [*results[number]["notes"], problem]
    if args.json:
        _print_json(members, results)
    else:
        _print_results(named, results, quiet=quiet)
    return _exit_code(results, is_json=args.json)


def _members(directory: Path, group: Group, name: str) -> list[_Member]:
    found = [
        _Member(each.number, f"{name}/{each.number}", member_path(directory, each.number))
        for each in group.processes
        if each.recording is not None
    ]
    if not found:
        raise UsageError(f"No process of {name} is recorded. `replaydbg ps {name}` shows why.")
    return found


def _writes(members: list[_Member]) -> tuple[dict[int, list[StreamWrite]], dict[int, str]]:
    """Return what each process wrote, and why that is not known of some.

    A recording that cannot be read has written nothing: its replay reports why.
    """
    outer: tuple[str, ...] = ()
    found: dict[int, list[StreamWrite]] = {}
    problems: dict[int, str] = {}
    for each in members:
        found[each.number] = []
        with suppress(ReplaydbgError), open_recording(each.path) as recording:
            outer = recording.header.outputs or outer  # the first process has them
            try:
                found[each.number] = stream_writes(recording, each.number, outer)
            except Corrupt as error:
                problems[each.number] = f"its output may be missing or out of order: {error.reason}."
    return found, problems


def _replayed(member: _Member, out: int, err: int) -> bytes:
    facts: dict[str, Any] = {"exit_code": 0, "status": 0, "notes": [], "error": "", "facts": None}
    try:
        result = replay(member.path, name=member.name, stdout=out, stderr=err)
        facts |= {"exit_code": result.exit_code, "status": result.status, "facts": replay_facts(result)}
        if result.divergence is not None:
            facts["error"] = str(result.divergence)
        facts["notes"] = list(note_lines(result))
    except ReplaydbgError as error:
        facts |= {"exit_code": error.exit_code, "error": str(error)}
    return json.dumps(facts).encode("utf-8", "surrogatepass")


def _show(stream: int, data: bytes) -> None:
    while data:
        data = data[os.write(stream, data) :]


def _show_on_stderr(stream: int, data: bytes) -> None:
    _show(2, data)


def _print_results(members: dict[int, _Member], results: dict[int, dict[str, Any]], *, quiet: bool) -> None:
    for number, each in results.items():
        name = printable(members[number].name)
        for line in [] if quiet else each["notes"]:
            print(f"replaydbg: {name}: {line}", file=sys.stderr)
        if each["error"]:
            text = f"replaydbg: {name}: {each['error']}" if each["exit_code"] != DIVERGED else each["error"]
            print("\n".join(printable(line) for line in text.split("\n")), file=sys.stderr)


def _print_json(members: list[_Member], results: dict[int, dict[str, Any]]) -> None:
    # Imported here: it takes 20 ms, which other replays need not pay.
    from replaydbg.cli.common.output import print_json

    found = [
        {"process": each.number, "path": str(each.path), "error": results[each.number]["error"] or None}
        | {"replay": results[each.number]["facts"]}
        for each in members
    ]
    print_json({"processes": found})


def _exit_code(results: dict[int, dict[str, Any]], *, is_json: bool) -> int:
    """Return 4 if a process diverged; else the code of the first that could not be replayed, or not to its end."""
    # A process may have ended with that code by itself.
    if any(
        each["exit_code"] == DIVERGED and (each["error"] or each["facts"]["divergence"]) for each in results.values()
    ):
        return DIVERGED
    failed = [each["exit_code"] for each in results.values() if each["error"]]
    if failed:
        return int(failed[0])
    cut = [each["exit_code"] for each in results.values() if not each["facts"]["is_whole"]]
    if cut:
        return int(cut[0])
    first = next(iter(results.values()))
    return int(first["exit_code"]) if is_json else end_like(first["status"])
