"""`replaydbg futures`: let a recorded program go on from one moment many times, with other interleavings of threads."""

from __future__ import annotations

import sys
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.option_parser import GivenOnce
from replaydbg.cli.running.event_option import event_before
from replaydbg.cli.running.fault_sweep import FutureProgress, add_fault_arguments, sweep_faults
from replaydbg.cli.running.futures_of_group import print_futures, run_on_group
from replaydbg.cli.running.futures_searches import (
    COUNT,
    add_search_arguments,
    check_searches,
    first_choice,
    run_curve,
)
from replaydbg.config import is_fence_wanted, load_settings
from replaydbg.errors import UsageError
from replaydbg.futures.faults.set_answer import answer_order, parsed_answer, statement_order
from replaydbg.futures.faults.sweep import MOST
from replaydbg.futures.futures_text import FuturesReport
from replaydbg.futures.launcher import FIRST_SEED, TIMEOUT, FutureWishes, run_futures
from replaydbg.futures.searches import curve
from replaydbg.log.group import is_of_several, read_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "recording", help="a recording, or a group of processes: a path, a name such as run-12, or latest"
    )
    parser.add_argument(
        "--at",
        metavar="MOMENT",
        help="go on before this event, or at @start, @t+1.5s or a snapshot such as @#3 (default: before the first "
        "thread is started; if none is, at @start, or with --faults where the program's own code begins). For a group: "
        "before this event of a process, such as 2@105, or earlier, where all processes can go on (default: once all "
        "processes have been started)",
    )
    parser.add_argument(
        "-n",
        "--count",
        type=int,
        metavar="N",
        help=f"make N futures (default: {COUNT}), with --curve from each moment (default: {curve.COUNT}), with "
        f"--faults at most N (default: {MOST})",
    )
    parser.add_argument(
        "--set",
        action=GivenOnce,
        metavar="TEXT",
        help="change one input: 'event 812 = TimeoutError()' is what that call returns or raises; or, at the moment, "
        "a value: 'limit = 3'",
    )
    add_fault_arguments(parser)
    add_search_arguments(parser)
    add_future_arguments(parser)


def add_future_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of all commands that make futures."""
    parser.add_argument(
        "--seed",
        type=int,
        default=FIRST_SEED,
        metavar="S",
        help=f"the seed of the first one; the others have the numbers after it (default: {FIRST_SEED})",
    )
    parser.add_argument(
        "--keep",
        choices=("examples", "all"),
        default="examples",
        help="keep the recordings of examples of each group, or all (default: examples)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="run N at once (default: the number of processors)")
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"end a future that computes for longer, without a verdict (default: {TIMEOUT:g})",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="where to keep the recordings (default: the store)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print data with a schema_version instead of text")


def run(args: argparse.Namespace) -> int:
    """Make futures; return 0 if none failed, 1 if one did, 3 if none has a verdict."""
    check_searches(args)
    if not is_fence_wanted():
        raise UsageError("--no-fence cannot be used here: without the fence, futures could reach the outside.")
    store, settings = the_store(), load_settings()
    directory = store.find_group(args.recording)
    if directory is not None and is_of_several(read_group(directory)):
        return run_on_group(args, directory)
    path = store.resolve(args.recording)
    event, answer = _beginning(args, path)
    if args.faults is not None:
        return sweep_faults(args, path, event)
    if args.pairs:
        raise UsageError("--pairs needs --faults.")
    wishes = FutureWishes(
        event=event,
        count=args.count if args.count is not None else COUNT,
        seed=args.seed,
        keeps_all=args.keep == "all",
        output=args.output,
        jobs=args.jobs,
        timeout=args.timeout,
        shrinks=args.shrink,
        depth=args.depth or 0,
        preemptions=args.systematic,
        faults=answer,
    )
    is_shown = not args.quiet and sys.stderr is not None and sys.stderr.isatty()
    if args.curve:
        return run_curve(path, wishes, args.count, name=store.name_of(path), as_json=args.json, shows_progress=is_shown)
    progress = FutureProgress(wishes.count, is_shown=is_shown)
    try:
        found = run_futures(path, wishes, name=store.name_of(path), store=settings.store, seen=progress)
    finally:
        progress.clear()
    names = {seed: store.name_of(kept) for seed, kept in found.kept.items()}
    shrunk = {each.ending: store.name_of(each.recording) for each in found.deciding if each.recording is not None}
    return print_futures(FuturesReport(found, names, shrunk), as_json=args.json)


def _beginning(args: argparse.Namespace, path: Path) -> tuple[int, tuple[bytes, ...]]:
    """Return the event before which futures begin, and the answer that is changed."""
    if args.set is None:
        if args.at is not None:
            return event_before(args.at, path), ()
        return first_choice(path, is_own=args.faults is not None), ()
    if args.faults is not None:
        raise UsageError("--set and --faults cannot be combined.")
    statement = statement_order(args.set)
    if statement is not None:
        if args.at is None:
            raise UsageError("--at is missing: the moment at which the value is changed.")
        return event_before(args.at, path), (statement,)
    answer = parsed_answer(args.set)
    if args.at is not None and event_before(args.at, path) != answer.event:
        raise UsageError(f"--set begins at its event, {answer.event:,}: leave --at out.")
    return answer.event, (answer_order(path, answer),)
