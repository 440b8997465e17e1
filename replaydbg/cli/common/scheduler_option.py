"""The option `--scheduler`, which commands have that run many tasks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

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


def notice(text: str) -> None:
    """Print a sentence about the cluster on stderr."""
    print(f"replaydbg: {text}.", file=sys.stderr)
