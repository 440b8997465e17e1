"""Options, stored snapshots and tables on stdout that the heap commands share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from replaydbg.cli.common.output import add_json, is_terminal
from replaydbg.errors import Corrupt, NoSuchMoment, UsageError
from replaydbg.heap.comparison.snapshot_diff import MOST
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.storage.recorded_snapshots import load_stored, read_snapshot, stored_snapshots
from replaydbg.heap.storage.snapshot_file import MAGIC
from replaydbg.log.reader import Recording
from replaydbg.render.tables import Table, drawn, markdown


def add_shape(parser: argparse.ArgumentParser, *, is_of_moments: bool = True) -> None:
    """Declare the options for the size and form of the output;

    `is_of_moments`: for snapshots that are taken in a replay.
    """
    parser.add_argument("--limit", type=int, metavar="N", help=f"print at most N rows per table (default: {MOST})")
    parser.add_argument("--all", action="store_true", help="print every row")
    if is_of_moments:
        parser.add_argument(
            "--which",
            choices=("mine", "all"),
            default="mine",
            help="start from the program's own modules, or also from libraries (default: mine)",
        )
    parser.add_argument("--md", action="store_true", help="print Markdown")
    add_json(parser)


def check_shape(args: argparse.Namespace) -> None:
    """Raise UsageError for options that contradict each other."""
    if args.limit is not None and (args.limit < 1 or args.all):
        raise UsageError("--limit must be at least 1, and cannot be used with --all.")
    if args.md and args.json:
        raise UsageError("--md and --json cannot be used together.")


def most_of(args: argparse.Namespace) -> int | None:
    """Return the maximum number of rows; None: no limit."""
    return None if args.all else args.limit or MOST


def is_stored(moment: str | None) -> bool:
    """Whether a moment names a snapshot in the recording, as `@#3` or `@#NAME`."""
    return moment is not None and moment.startswith("@#")


def stored(recording: Recording, name: str) -> Holding:
    """Return the snapshot in a recording that has this number or name. Raises NoSuchMoment, Corrupt."""
    unreadable: list[Corrupt] = []
    known = stored_snapshots(recording, unreadable)
    found = [each for each in known if str(each.number) == name] or [each for each in known if each.name == name]
    if not found and unreadable:
        raise unreadable[0]
    if not found:
        last = f"it has @#1 to @#{known[-1].number}" if known else "it has none; `record --snapshot-every` takes them"
        raise NoSuchMoment(f"@#{name}", f"the recording has no such snapshot; {last}")
    return Holding(load_stored(recording, found[0].number))


def lone_snapshot(name: str) -> Holding | None:
    """Return the snapshot in a file of its own, as `heap -o` writes it; None: it is not such a file. Raises Corrupt."""
    path = Path(name)
    if not path.is_file():
        return None
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return None
    return Holding(read_snapshot(path))


def print_tables(args: argparse.Namespace, tables: Iterable[Table]) -> None:
    """Print tables as the options require."""
    if args.md:
        print(markdown(tables), end="")
    else:
        print(drawn(tables, is_coloured=is_terminal()), end="")
