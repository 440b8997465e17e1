"""Faults in futures, for `futures --faults` and `torture`."""

from __future__ import annotations

import sys
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import print_json
from replaydbg.config import load_settings
from replaydbg.futures.faults.asked_faults import asked_faults
from replaydbg.futures.faults.sweep import MOST, SweepWishes, run_sweep
from replaydbg.futures.faults.sweep_text import SweepReport, sweep_lines
from replaydbg.futures.future import Future, FutureVerdict
from replaydbg.render.json_data.faults.sweep_json import sweep_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

NONE_FAILED, FAILED, NO_VERDICT = 0, 1, 3


def add_fault_arguments(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Declare the options of a sweep."""
    shown = f" (default: {default})" if default is not None else ""
    parser.add_argument(
        "--faults",
        metavar="CALL[:FAULT],...",
        default=default,
        help=f"let each of these calls fail once, one future each: write:ENOSPC, fsync, or all{shown}",
    )
    parser.add_argument(
        "--pairs", action="store_true", help="with --faults: a second fault, too, where the program survives one"
    )


def sweep_faults(args: argparse.Namespace, path: Path, event: int) -> int:
    """Sweep over the faults of the program recorded at `path`; return 0 if none failed, 1 if one did, 3 otherwise."""
    store, settings = the_store(), load_settings()
    most = MOST if args.count is None else args.count
    wishes = SweepWishes(
        event=event,
        faults=asked_faults(args.faults),
        pairs=args.pairs,
        most=most,
        seed=args.seed,
        keeps_all=args.keep == "all",
        output=args.output,
        jobs=args.jobs,
        timeout=args.timeout,
    )
    progress = FutureProgress(most, is_shown=not args.quiet and sys.stderr is not None and sys.stderr.isatty())
    try:
        found = run_sweep(path, wishes, name=store.name_of(path), store=settings.store, seen=progress)
    finally:
        progress.clear()
    report = SweepReport(found, {each.kept: store.name_of(each.kept) for each in found.trials if each.kept})
    if args.json:
        print_json(sweep_facts(report))
    else:
        print("\n".join(sweep_lines(report)))
    failed, passed = found.count(FutureVerdict.FAILED), found.count(FutureVerdict.PASSED)
    return FAILED if failed else NONE_FAILED if passed else NO_VERDICT


class FutureProgress:
    """Shows on a terminal how many have ended; it is called with each."""

    def __init__(self, most: int, *, is_shown: bool) -> None:
        self._most, self._is_shown, self._count = most, is_shown, 0

    def __call__(self, future: Future) -> None:
        """Count it."""
        self._count += 1
        if self._is_shown:
            print(f"\rreplaydbg: {self._count:,} of {self._most:,} futures", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._is_shown and self._count:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
