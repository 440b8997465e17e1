"""The option `--scheduler`, which commands have that run many tasks."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from replaydbg.events.verdict import Verdict

if TYPE_CHECKING:
    from replaydbg.cluster.tasks import TaskPool

MOST_JOBS = 64
"""Number of searches' tasks that are sent at once by default, however many workers there are."""


def add_scheduler(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        default="",
        help="run on the workers of this dask scheduler, such as tcp://host:8786 (default: on this machine)",
    )


@contextmanager
def scheduler_pool(args: argparse.Namespace) -> Iterator[TaskPool | None]:
    """Yield the pool of the scheduler, None without the option. Raises UsageError, SchedulerLost."""
    if not args.scheduler:
        yield None
        return
    # Imported here: only this option needs it.
    from replaydbg.cluster.open_pool import open_pool

    with open_pool(args.scheduler, notice=notice) as pool:
        yield pool


@contextmanager
def counting(total: int, *, is_quiet: bool) -> Iterator[Callable[[Verdict], None]]:
    """Yield a function that is called with each verdict: at a terminal it shows how many there are of each."""
    if is_quiet or total < 2 or sys.stderr is None or not sys.stderr.isatty():
        yield lambda verdict: None
        return
    counts: Counter[Verdict] = Counter()

    def show(verdict: Verdict) -> None:
        counts[verdict] += 1
        of_each = ", ".join(f"{counts[each]} {each.value}" for each in Verdict if counts[each])
        sys.stderr.write(f"\r\x1b[K{counts.total()} of {total}: {of_each}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")


def notice(text: str) -> None:
    """Print a sentence about the cluster on stderr."""
    print(f"replaydbg: {text}.", file=sys.stderr)
