"""`replaydbg heap`: list the objects of a moment, their owners, and what has grown until then."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from replaydbg.cli.common.heap_options import (
    add_shape,
    check_shape,
    is_stored,
    lone_snapshot,
    most_of,
    print_tables,
    stored,
)
from replaydbg.cli.common.heap_resources import add_resources, resources_beside
from replaydbg.cli.common.opening import add_quiet, opened
from replaydbg.cli.common.output import add_recording, open_named, print_json
from replaydbg.commands.heap_commands import about_object
from replaydbg.debugger.object_history import holdings, spread
from replaydbg.errors import UsageError
from replaydbg.heap.retention.growth import FEWEST, growth
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.retention.path_lookup import find
from replaydbg.heap.storage.masked_snapshot import masked_snapshot_of
from replaydbg.heap.storage.snapshot_file import pack
from replaydbg.render.heap_tables import growth_tables, heap_tables, object_tables
from replaydbg.render.json_data.heap_json import heap_facts, object_facts
from replaydbg.store.private import write_private

GROWTH = 8
"""Default number of moments in a series."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument(
        "at", metavar="MOMENT", nargs="?", help="such as 120:35 or @end (default: the failure, else the end)"
    )
    parser.add_argument("--of", metavar="EXPR", help="one object: what it is, what holds it, and when it was created")
    parser.add_argument(
        "--growth",
        type=int,
        nargs="?",
        const=GROWTH,
        metavar="N",
        help=f"show what grows over N moments of the run (default: {GROWTH})",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the snapshot to a file, for a later `diff`")
    add_resources(parser, "also show what each descriptor refers to, and other resources at that moment")
    add_shape(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    """Show the heap; with --growth return 1 if something grows steadily."""
    check_shape(args)
    if args.growth is not None and (args.growth < FEWEST or args.of or args.at):
        raise UsageError(f"--growth needs N of at least {FEWEST}, and cannot be used with MOMENT or --of.")
    if args.output is not None and (args.growth is not None or args.of is not None):
        raise UsageError("-o writes a whole snapshot: it cannot be used with --growth or --of.")
    if args.resources and (args.growth is not None or args.of is not None or lone_snapshot(args.recording) is not None):
        raise UsageError("--resources needs a moment of a recording: it cannot be used with --growth, --of or a file.")
    most = most_of(args)
    if is_stored(args.at) or lone_snapshot(args.recording) is not None:
        return _of_file(args, most)
    with opened(args.recording, quiet=args.quiet) as view:
        session = view.session
        if args.growth is not None:
            series = holdings(session, spread(session, args.growth), which=args.which)
            grown = growth(series)
            if args.json:
                print_json(asdict(grown))
            else:
                print_tables(args, growth_tables(grown, most=most))
            return 1 if grown.leaks else 0
        moment = args.at if args.at is not None else session.here.count
        (held,) = holdings(session, [moment], which=args.which)
        if args.of is None:
            return _show(args, held, most, session.path)
        node = find(held, args.of)
        session.seek(moment)
        about = about_object(session, held, node, which=args.which)
        if args.json:
            print_json(object_facts(held, node, made=about.created, written=about.written, most=most))
        else:
            print_tables(args, object_tables(held, node, most=most, notes=about.lines(session)))
        return 0


def _of_file(args: argparse.Namespace, most: int | None) -> int:
    """Show a snapshot from a file: without a replay, and so without answers that need the run."""
    held = lone_snapshot(args.recording)
    if held is None:
        with open_named(args.recording) as recording:
            held = stored(recording, args.at[2:])
    if args.of is None:
        return _show(args, held, most)
    node = find(held, args.of)
    if args.json:
        print_json(object_facts(held, node, made=None, written=None, most=most))
    else:
        print_tables(args, object_tables(held, node, most=most))
    return 0


def _show(args: argparse.Namespace, held: Holding, most: int | None, path: Path | None = None) -> int:
    """Show a heap, or write it: then with its secrets masked, if it is one of a replay of the recording at `path`."""
    if args.output is not None:
        snapshot = held.snapshot if path is None else masked_snapshot_of(path, held.snapshot)
        write_private(Path(args.output), pack(snapshot))
    facts, tables = resources_beside(args, held.snapshot.taken.event)
    if args.json:
        print_json({**heap_facts(held, most), **facts})
    elif args.output is None or tables:
        print_tables(args, [*(heap_tables(held, most=most) if args.output is None else ()), *tables])
    return 0
