"""`replaydbg futures` of processes that were recorded together."""

from __future__ import annotations

import sys
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import print_json
from replaydbg.cli.running.event_option import event_before
from replaydbg.cli.running.fault_sweep import FutureProgress
from replaydbg.cli.running.futures_searches import COUNT
from replaydbg.config import load_settings
from replaydbg.errors import NoSuchMoment, UsageError
from replaydbg.futures.futures_text import FuturesReport, futures_lines
from replaydbg.group_futures.run import GroupWishes, run_group_futures
from replaydbg.log.group import GroupProcess, read_group
from replaydbg.log.reader import open_recording
from replaydbg.render.json_data.futures_json import futures_facts
from replaydbg.store.directory import GROUP, Store, member_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

NONE_FAILED, FAILED, NO_VERDICT = 0, 1, 3
_OF_ONE_PROCESS = ("set", "faults", "pairs", "shrink", "curve", "systematic", "depth")


def run_on_group(args: argparse.Namespace, directory: Path) -> int:
    """Make futures of the group in `directory`; return 0 if none failed, 1 if one did, 3 if none has a verdict."""
    for option in _OF_ONE_PROCESS:
        if getattr(args, option) is not None and getattr(args, option) is not False:
            raise UsageError(f"--{option} cannot be used here: {args.recording} is a group of processes. Leave it out.")
    store, settings = the_store(), load_settings()
    wishes = GroupWishes(
        count=args.count if args.count is not None else COUNT,
        at=_positions(args.at, directory) if args.at is not None else {},
        seed=args.seed,
        keeps_all=args.keep == "all",
        output=args.output,
        jobs=args.jobs,
        timeout=args.timeout,
    )
    progress = FutureProgress(wishes.count, is_shown=not args.quiet and sys.stderr is not None and sys.stderr.isatty())
    try:
        found = run_group_futures(directory, wishes, name=_name(directory, store), store=settings.store, seen=progress)
    finally:
        progress.clear()
    names = {seed: _name(kept, store) for seed, kept in found.kept.items()}
    return print_futures(FuturesReport(found, names), as_json=args.json)


def _name(directory: Path, store: Store) -> str:
    """Return the text that names a group in commands."""
    return directory.name.removesuffix(GROUP) if directory.parent == store.directory else str(directory)


def print_futures(report: FuturesReport, *, as_json: bool) -> int:
    """Print what came of futures; return the exit code."""
    if as_json:
        print_json(futures_facts(report))
    else:
        print("\n".join(futures_lines(report)))
    share = report.found.share
    if not share.decided:
        return NO_VERDICT
    return FAILED if share.failed else NONE_FAILED


def _positions(text: str, directory: Path) -> dict[int, int]:
    """Return the positions before moments of processes, such as `2@105` or `1@120,2@105`.

    Raises UsageError, NoSuchMoment.
    """
    processes = {row.number: row for row in read_group(directory).processes if row.recording is not None}
    found: dict[int, int] = {}
    for each in text.split(","):
        process, position = _position(each.strip(), directory, processes)
        if process in found:
            raise UsageError(f"--at names process {process} twice.")
        found[process] = position
    return found


def _position(text: str, directory: Path, processes: dict[int, GroupProcess]) -> tuple[int, int]:
    number, at, moment = text.partition("@")
    if not at or not moment or not number.isdecimal() or len(number) > 9:
        raise UsageError(f"For a group, --at must be an event of a process, such as 2@105 (got {text!r}).")
    if int(number) not in processes:
        raise UsageError(
            f"The group has no recording of process {number}. Recorded: {', '.join(map(str, sorted(processes)))}."
        )
    path = member_path(directory, int(number))
    event = _event(text, number, moment, path)
    with open_recording(path) as recording:
        events = recording.log_header.crossings if recording.log_header is not None else 0
    if event > events:
        raise NoSuchMoment(text, f"process {number} has {events:,} events")
    row = processes[int(number)]
    if row.how == "fork" and event <= row.event and moment != "start":
        raise UsageError(
            f"Process {number} was forked at event {row.event:,} of process {row.parent}: its own first event is "
            f"{row.event + 1:,}. For an earlier moment name its parent, such as {row.parent}@{row.event:,}."
        )
    return int(number), event - 1


def _event(text: str, number: str, moment: str, path: Path) -> int:
    """Return the event before which a process is to go on."""
    try:
        return event_before(moment if moment[0].isdecimal() else f"@{moment}", path)
    except NoSuchMoment as error:
        raise NoSuchMoment(text, error.reason) from None
    except UsageError:
        known = f"an event from 1 on, {number}@start, {number}@t+SECONDS, or a snapshot such as {number}@#3"
        raise UsageError(f"For a group, --at must be {known} (got {text!r}).") from None
