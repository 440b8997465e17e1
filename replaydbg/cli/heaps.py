"""Options, tables on stdout and JSON facts that the heap commands share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from replaydbg.cli.output import add_json, is_terminal
from replaydbg.commands.heap_commands import AboutObject
from replaydbg.errors import Corrupt, NoSuchMoment, UsageError
from replaydbg.heap.diff import MOST
from replaydbg.heap.difference import Diff
from replaydbg.heap.holding import Holding
from replaydbg.heap.pack import MAGIC
from replaydbg.heap.stored import load_stored, read_snapshot, stored_snapshots
from replaydbg.log.reader import Recording
from replaydbg.render.tables import Table, drawn, markdown
from replaydbg.render.texts import moment_text


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


def diff_facts(diff: Diff) -> dict[str, Any]:
    """Return a difference as data."""
    facts = {**asdict(diff), "is_empty": diff.is_empty}
    for name, paths in (
        ("changed", [each.path for each in diff.changed.items]),
        ("grown", [each.path for each in diff.grown.items]),
    ):
        for path, item in zip(paths, facts[name]["items"], strict=True):
            item["path"] = path
    return facts


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


def object_facts(held: Holding, node: int, about: AboutObject, most: int | None) -> dict[str, Any]:
    """Return the facts about one object as data."""
    snapshot = held.snapshot
    holders = held.holders(node)
    made, written = about.created, about.written
    return {
        "path": held.path(node),
        "what": held.text(node),
        "type": snapshot.type_name(node),
        "address": snapshot.address[node],
        "bytes": snapshot.size[node],
        "retained": held.retained[node],
        "created": {
            "moment": moment_text(made.moment),
            "count": made.count,
            "made_by": made.made or None,
            "place": made.place._asdict() if made.place is not None else None,
            "returned_to": made.returned_to._asdict() if made.returned_to is not None else None,
        }
        if made is not None
        else None,
        "written": {
            "moment": moment_text(written.moment),
            "count": written.count,
            "file": written.file,
            "line": written.line,
            "function": written.function,
        }
        if written is not None and written.moment is not None
        else None,
        "free_without": [held.path(each) for each in held.chain(node)],
        "holders": [asdict(each) for each in holders[:most]],
        "holder_count": len(holders),
    }
