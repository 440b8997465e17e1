"""The summary of `record`: what was recorded, what was not, and the next command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from replaydbg.errors import quoted
from replaydbg.events import linux
from replaydbg.log.group import GROUP, is_starting
from replaydbg.record.result import RecordResult
from replaydbg.render.measures import show_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.group import Group
    from replaydbg.log.json_data import SnapshotData, SnapshotsData


_NOT_FAILURES = frozenset({linux.SIGHUP, linux.SIGINT, linux.SIGKILL, linux.SIGTERM})
"""Signals that end a program in which nothing has failed."""


def summary_lines(result: RecordResult, name: str, *, is_held: bool, output: Path | None) -> list[str]:
    """Return the summary; `name` is the recording's in commands, `output` the file name that the user gave."""
    if result.is_dropped:
        return ["replaydbg: no request failed, so the recording was removed"]
    lines = [f"replaydbg: {result.path} ({show_size(result.size)}, {result.events:,} events)"]
    if result.group is not None:
        lines += [f"replaydbg: {line}" for line in _about_group(result.group, name)]
    elif output is not None and output.suffix != GROUP and result.path.name != output.name:
        lines.append(f"replaydbg: {result.path.suffix} was added to the name {quoted(output.name)}")
    for why, count in result.not_recorded.items():
        lines.append(f"replaydbg: {_counted(count, 'process', 'processes')} not recorded: {why}")
    for note in result.notes:
        # A deadlock was already reported in full when it happened.
        lines.append(f"replaydbg: {note['kind']}: {note['text'].partition(chr(10))[0]}")
    lines += _about_snapshots(result.snapshots)
    if result.reason:
        lines.append(f"replaydbg: the recording ends before the program did: {result.reason}.")
    if result.problem:
        lines.append(f"replaydbg: {result.problem}.")
    lines.append(f"replaydbg: to replay it: replaydbg replay {quoted(name)}")
    if result.status and -result.status not in _NOT_FAILURES and not (result.problem or result.reason):
        lines.append(f"replaydbg: to find out why it failed: replaydbg debug {quoted(name)}")
    if is_held:
        lines.append("replaydbg: checkpoints are kept for an hour: the debugger opens at once")
    return lines


def _about_group(group: Group, name: str) -> list[str]:
    """Return lines on the other processes with a recording."""
    others = group.processes[1:]
    recorded = [each for each in others if each.recording or is_starting(each)]
    running = sum(not each.has_ended for each in recorded)
    still = f", {running} of them still running" if running else ""
    joined = sum(each.how == "joined" for each in recorded)
    children = len(recorded) - joined
    found = [f"{_counted(children, 'child process', 'child processes')} recorded"] if children else []
    if joined:
        found.append(f"{_counted(joined, 'process', 'processes')} joined")
    lines = [f"{', '.join(found)}{still}: replaydbg ps {quoted(name)}"] if recorded else []
    problems = [f"process {each.number}: {each.why_not}" for each in recorded if each.why_not and each.recording]
    return lines + problems


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _about_snapshots(snapshots: SnapshotsData | None) -> list[str]:
    if snapshots is None:
        return []
    count, pause = len(snapshots["listed"]), snapshots["longest_pause_ns"] / 1e6
    line = f"replaydbg: {count} snapshot{'s' if count != 1 else ''}, the program paused for at most {pause:.1f} ms"
    if snapshots["left_out"]:
        line += f"; {snapshots['left_out']:,} were skipped: they would have slowed the run too much"
    failed = ["replaydbg: some snapshots failed."] if snapshots["failed"] else []
    return [line + ".", *failed, *_about_checks(snapshots["listed"])]


def _about_checks(listed: Sequence[SnapshotData]) -> list[str]:
    """Return lines that report where each invariant first failed, and where it first could not be evaluated."""
    found: dict[tuple[str, bool], str] = {}
    for each in listed:
        for check in each["checks"]:
            key = (check["name"], check["holds"] is None)
            if check["holds"] is True or key in found:
                continue
            what = "could not be evaluated" if check["holds"] is None else "did not hold"
            more = f" ({check['text']})" if check["text"] else ""
            at = f"snapshot @#{each['number']}, event {each['event']:,}"
            found[key] = f"replaydbg: {check['name']} {what} at {at}{more}."
    return list(found.values())
