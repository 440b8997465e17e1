"""Options of `futures` that search: what decides, all schedules, the share over the moments of a run."""

from __future__ import annotations

import sys
from pathlib import Path

from replaydbg.cli.common.output import print_json
from replaydbg.errors import UsageError
from replaydbg.events.records import Control, ControlKind
from replaydbg.futures.curve_text import curve_lines
from replaydbg.futures.faults.first_call import first_call
from replaydbg.futures.launcher import FutureWishes
from replaydbg.futures.searches import curve
from replaydbg.futures.searches.curve import CurvePoint, CurveWishes, find_curve
from replaydbg.log.reader import open_recording
from replaydbg.render.json_data.futures_json import curve_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

COUNT = 100
"""Futures, unless the user wants another number."""
NONE_FAILED, FAILED, NO_VERDICT = 0, 1, 3


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--shrink",
        action="store_true",
        help="find the fewest thread switches that make the futures of each failing group fail",
    )
    parser.add_argument(
        "--curve",
        action="store_true",
        help="show the share that fails over the moments of the run, and from which moment on all fail",
    )
    parser.add_argument(
        "--systematic",
        type=int,
        metavar="K",
        help="try all schedules with up to K preemptions, at most N, instead of random ones",
    )
    parser.add_argument(
        "--depth",
        type=int,
        metavar="D",
        help="draw schedules with random priorities and D - 1 changes of them, for bugs that need D steps in order",
    )


def check_searches(args: argparse.Namespace) -> None:
    """Raise UsageError if options exclude each other."""
    chosen = [
        name
        for name, is_given in (
            ("--curve", args.curve),
            ("--systematic", args.systematic is not None),
            ("--depth", args.depth is not None),
            ("--faults", args.faults is not None),
        )
        if is_given
    ]
    if len(chosen) > 1:
        raise UsageError(f"{chosen[0]} and {chosen[1]} cannot be used together.")
    if args.depth is not None and args.depth < 1:
        raise UsageError(f"--depth must be at least 1 (got {args.depth})")
    for option, is_given in (("--curve", args.curve), ("--faults", args.faults is not None)):
        if is_given and args.shrink:
            raise UsageError(f"{option} and --shrink cannot be used together.")
    if args.curve and args.set is not None:
        raise UsageError("--curve and --set cannot be used together.")


def first_choice(path: Path, *, is_own: bool) -> int:
    """Return the event before which the first thread is started.

    If none is, it is the first event of all, or, for `is_own`, the one before which the program's own code begins.
    """
    with open_recording(path) as recording:
        for entry in recording.events():
            if isinstance(entry, Control) and entry.kind is ControlKind.LANE_STARTED:
                return max(entry.after, 1)
        return first_call(recording) if is_own else 1


def run_curve(
    path: Path, wishes: FutureWishes, count: int | None, *, name: str, as_json: bool, shows_progress: bool
) -> int:
    """Show the share over the moments of a run; return 0 if no future failed, 1 if one did, 3 if none has a verdict."""
    count = count if count is not None else curve.COUNT
    looked = 0

    def seen(_: CurvePoint) -> None:
        nonlocal looked
        looked += 1
        if shows_progress:
            print(f"\rreplaydbg: {looked:,} moments", end="", file=sys.stderr, flush=True)

    given = CurveWishes(wishes.event, count, wishes.seed, wishes.jobs, wishes.timeout)
    try:
        found = find_curve(path, given, name=name, seen=seen)
    finally:
        if shows_progress and looked:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    if as_json:
        print_json(curve_facts(found))
    else:
        print("\n".join(curve_lines(found)))
    if not any(each.share.decided for each in found.points):
        return NO_VERDICT
    return FAILED if any(each.share.failed for each in found.points) else NONE_FAILED
