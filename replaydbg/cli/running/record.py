"""`replaydbg record`: run a program and record it; the exit code is the program's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from replaydbg.cli.common.program_words import split_words as split_words
from replaydbg.cli.common.schema import SCHEMA_VERSION
from replaydbg.config import CHILDREN, Settings, load_settings
from replaydbg.errors import CannotJoin, CannotRecord, UsageError
from replaydbg.launch.endings import end_like
from replaydbg.launch.interruption import ENDING
from replaydbg.record import RecordResult, record
from replaydbg.record.chaos import record_until_failure
from replaydbg.record.group import NoGroups, can_name_library
from replaydbg.record.snapshot_orders import SnapshotOrders, parse_every, parse_signal
from replaydbg.render.record_summary import summary_lines
from replaydbg.store.directory import GROUP, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

CHECKED_EVERY = 100_000_000
"""Nanoseconds between snapshots that are taken only to check invariants."""


_GROUPS_OWN = (
    "output",
    "max_size",
    "real_ids",
    "chaos",
    "chaos_runs",
    "on_deadlock",
    "durable",
    "secrets",
    "keep_checkpoints",
    "snapshot_every",
    "snapshot_at_exceptions",
    "check",
    "snapshot_objects",
    "snapshot_at_signal",
    "cut_every",
    "keep_failing_requests",
)
"""Options that a program cannot have which joins a group: it has those of the group."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "replaydbg record [options] [--] (prog.py | -m module | -c code | console-script) [args ...]"
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the recording; .rdbg is added if missing (default: a name in the store)",
    )
    parser.add_argument(
        "--max-size", metavar="SIZE", help="stop recording at this size, such as 2G; the program continues"
    )
    parser.add_argument("-q", "--quiet", action="store_true", default=None, help="print no summary")
    parser.add_argument(
        "--real-ids",
        action="store_true",
        default=None,
        help="keep real id() values (for programs that use them as addresses); they will differ in a replay",
    )
    parser.add_argument(
        "--durable",
        action="store_true",
        default=None,
        help="survive power loss: hold back output until the recording up to it is on disk",
    )
    parser.add_argument(
        "--secrets",
        choices=("mask", "keep"),
        help="mask passwords, tokens and keys in the recording, and encrypt them for you; or keep them as they are "
        "(default: mask)",
    )
    _add_thread_arguments(parser)
    parser.add_argument(
        "--keep-checkpoints",
        action="store_true",
        help="replay on another core while the program runs, and keep checkpoints, so that the debugger opens at once",
    )
    parser.add_argument(
        "--children",
        choices=CHILDREN,
        help="child processes to record, too, each in a recording of its own: none, fork (forked children), or python "
        "(also the Python programs that the program starts) (default: python)",
    )
    parser.add_argument(
        "--keep-failing-requests",
        action="store_true",
        help="keep only recordings of processes that failed, or in which the middleware of replaydbg.web marked a "
        "failed request (status 500 or higher, or an exception); remove each of the others when its process ends",
    )
    parser.add_argument(
        "--join",
        metavar="GROUP",
        help="record the program as a process of a group that is being recorded: a path, a name such as run-12, or "
        "latest",
    )
    parser.add_argument(
        "--cut-every",
        metavar="TIME",
        help="take a cut of all recorded processes at this interval, such as 5s or 200ms; no process is stopped",
    )
    parser.add_argument(
        "--seal-in-background",
        action="store_true",
        help="exit as soon as the program has ended, and seal the recording in the background; no summary is printed",
    )
    _add_snapshot_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON on stderr")
    parser.epilog = "Put interpreter options, such as -O or -X dev, after -- and before the program."


def _add_thread_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chaos",
        metavar="SEED",
        help="randomize thread scheduling with this seed, to provoke races",
    )
    parser.add_argument(
        "--chaos-runs",
        type=int,
        metavar="N",
        help="record up to N times, each with the next seed, until a run fails; keep that one",
    )
    parser.add_argument(
        "--on-deadlock",
        choices=("wait", "stop"),
        help="what to do in a deadlock: wait, as the program would, or stop the program (default: wait)",
    )


def _add_snapshot_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--snapshot-every",
        metavar="N",
        help="take a heap snapshot every N events, or at an interval such as 200ms",
    )
    parser.add_argument(
        "--snapshot-at-exceptions",
        action="store_true",
        help="take a snapshot when an exception ends the program or a thread",
    )
    parser.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="EXPR",
        help="check at each snapshot (default: every 100 ms) that EXPR is true in __main__; repeatable",
    )
    parser.add_argument(
        "--snapshot-objects",
        type=int,
        default=0,
        metavar="N",
        help="keep at most N objects in a snapshot, those nearest to the program's variables (default: 20 million)",
    )
    parser.add_argument("--snapshot-at-signal", metavar="NAME", help="take a snapshot at this signal, such as USR2")


def run(args: argparse.Namespace) -> int:
    """Record; return the program's exit code, or end by the signal that ended the program."""
    names = ("quiet", "max_size", "real_ids", "chaos", "on_deadlock", "durable", "children", "secrets")
    settings = load_settings({name: getattr(args, name) for name in names})
    is_of_one = args.chaos_runs is not None or args.keep_checkpoints
    if is_of_one and args.children not in (None, "none"):
        raise UsageError(f"--children={args.children} cannot be combined with --chaos-runs or --keep-checkpoints.")
    if is_of_one and args.keep_failing_requests:
        raise UsageError("--keep-failing-requests cannot be combined with --chaos-runs or --keep-checkpoints.")
    if args.cut_every is not None and (is_of_one or settings.children == "none"):
        raise UsageError("--cut-every needs the recording of a group: one process has no cuts.")
    try:
        return _run(args, settings, "none" if is_of_one else _children(args, settings))
    except CannotRecord as error:
        if error.signal not in ENDING:
            raise
        return end_like(-error.signal)  # Ctrl-C came before the interpreter could begin


def _run(args: argparse.Namespace, settings: Settings, children: str) -> int:
    first = ""
    if args.join is not None:
        result = _joined(args)
    elif args.chaos_runs is not None:
        failed = record_until_failure(args.program, args.chaos_runs, output=args.output, settings=settings)
        if failed is None:
            print(f"replaydbg: none of {args.chaos_runs} runs failed.", file=sys.stderr)
            return 0
        result, first = failed.result, f"replaydbg: run {failed.run:,} failed, with --chaos {failed.seed}\n"
    else:
        result = _recorded(args, settings, children)
    _report(args, settings, result, first)
    return end_like(result.status)


def _recorded(args: argparse.Namespace, settings: Settings, children: str) -> RecordResult:
    try:
        return record(
            args.program,
            output=args.output,
            settings=settings,
            started=_hold_checkpoints if args.keep_checkpoints else None,
            snapshots=_snapshot_orders(args),
            children=children,
            cut_every=_interval(args.cut_every) if args.cut_every is not None else 0,
            follows_activated=True,
            in_background=args.seal_in_background,
            only_failing=args.keep_failing_requests,
        )
    except NoGroups:
        if args.children is not None or args.cut_every is not None:
            raise
        return _recorded(args, settings, "none")


def _interval(text: str) -> float:
    """Return the seconds of a text such as `5s`. Raises UsageError."""
    try:
        _, nanoseconds = parse_every(text)
    except UsageError:
        nanoseconds = 0
    if not nanoseconds:
        raise UsageError(f"--cut-every must be a time above 0, such as 200ms or 5s (got {text!r}).")
    return nanoseconds / 1e9


def _joined(args: argparse.Namespace) -> RecordResult:
    # Imported here: only this option needs them.
    from replaydbg.cli.common.output import group_or_recording
    from replaydbg.record.join_group import record_joined, why_no_group

    given = [name for name in _GROUPS_OWN if getattr(args, name)]
    if args.children is not None:
        given.append("children")
    if given:
        option = given[0].replace("_", "-")
        raise UsageError(f"--join cannot be combined with --{option}: the settings of the group apply.")
    directory, path = group_or_recording(args.join)
    if directory is None:
        raise CannotJoin(args.join, why_no_group(path))
    return record_joined(args.program, directory)


def _report(args: argparse.Namespace, settings: Settings, result: RecordResult, first: str) -> None:
    """Print the summary, `first` before it."""
    try:
        if args.json:
            # Imported here: only this option needs it.
            from replaydbg.render.json_data.runs_json import record_facts

            print(json.dumps({"schema_version": SCHEMA_VERSION, **record_facts(result)}), file=sys.stderr)
        elif result.problem and result.path.name.endswith(GROUP):  # it did not join
            print(f"replaydbg: {result.problem}.", file=sys.stderr)
        elif not settings.quiet:
            name = Store(settings.store).name_of(result.path)
            if result.group is not None:
                name = str(result.path.parent) if name == str(result.path) else name.removesuffix("/1")
            lines = summary_lines(result, name, is_held=args.keep_checkpoints, output=args.output)
            print(first + "\n".join(lines), file=sys.stderr)
        elif result.problem:
            print(f"replaydbg: {result.path}: {result.problem}.", file=sys.stderr)
    except OSError:
        # The message cannot be written (a full disk, a reader that has exited). The exit code stays the program's own:
        # with our text left in the stream, the flush at exit would change it.
        sys.stderr = None


def _children(args: argparse.Namespace, settings: Settings) -> str:
    """Return which children to record; what was not asked for and cannot be done is no reason to record nothing."""
    if args.children is None and settings.children == "python" and not can_name_library():
        return "fork"
    return settings.children


def _snapshot_orders(args: argparse.Namespace) -> SnapshotOrders:
    events, nanoseconds = parse_every(args.snapshot_every) if args.snapshot_every else (0, 0)
    signum = parse_signal(args.snapshot_at_signal) if args.snapshot_at_signal else 0
    for each in args.check:
        try:
            compile(each, "<invariant>", "eval")
        except (SyntaxError, ValueError) as error:
            raise UsageError(f"--check {each!r} is not a valid expression: {error}.") from None
    if args.check and not (events or nanoseconds or signum or args.snapshot_at_exceptions):
        nanoseconds = CHECKED_EVERY
    if args.snapshot_objects < 0:
        raise UsageError(f"--snapshot-objects must be at least 1 (got {args.snapshot_objects}).")
    return SnapshotOrders(
        events,
        nanoseconds,
        args.snapshot_at_exceptions,
        signum,
        checks=tuple(args.check),
        objects=args.snapshot_objects,
    )


def _hold_checkpoints(live: Path, sealed: Path) -> None:
    # Imported here: only this option needs it.
    import subprocess

    command = [sys.executable, "-m", "replaydbg.engine.holder", str(live), str(sealed)]
    none = subprocess.DEVNULL
    holder = subprocess.Popen(command, start_new_session=True, stdin=none, stdout=none, stderr=none)
    # It outlives this process, and nobody waits for it.
    holder.returncode = 0
