"""`replaydbg doctor --trace`: record and replay a program, each with a trace of every tick, and compare the traces."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from replaydbg.cli.common.output import print_json
from replaydbg.config import Settings, load_settings, parse_size
from replaydbg.errors import UsageError
from replaydbg.log.reader import open_recording
from replaydbg.record import record
from replaydbg.render.json_data.trace_json import trace_facts
from replaydbg.render.trace_text import Traced, trace_lines
from replaydbg.replay import replay
from replaydbg.store.directory import Store
from replaydbg.trace.compare import compare, insides
from replaydbg.trace.trace_files import TraceFiles
from replaydbg.trace.trace_orders import TraceOrders


def run(args: argparse.Namespace, *, limit: str) -> int:
    """Record, replay and compare at most `limit` of each trace; return 0 if all is equal, 1 if not."""
    size = _size(limit)
    replays = 1 if args.replays is None else args.replays
    if replays < 1:
        raise UsageError(f"--replays must be at least 1 (got {replays}).")
    settings = load_settings({"chaos": args.chaos})
    with tempfile.TemporaryDirectory(prefix="replaydbg-trace-") as directory:
        found = _trace(args, settings, Path(directory), size, replays)
    if args.json:
        print_json(trace_facts(found))
    else:
        print("\n".join(trace_lines(found)))
    return 0 if found.is_equal else 1


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--trace-limit cannot be {text!r}: {error}.") from error


def _trace(args: argparse.Namespace, settings: Settings, directory: Path, limit: int, replays: int) -> Traced:
    orders = _orders(directory / "recorded", limit)
    # Data goes to stdout alone.
    recorded = record(
        args.program, output=args.output, settings=settings, stdout=2 if args.json else None, trace=orders
    )
    if not args.json:
        print(f"replaydbg: recorded {recorded.events:,} events; replaying", file=sys.stderr)
    one = TraceFiles(orders.directory)
    for number in range(replays):
        again = _orders(directory / f"replayed-{number % 2}", limit)
        found = _replay(recorded.path, Store(settings.store).name_of(recorded.path), one, again)
        if not found.is_equal:
            return found
    if args.output is None:
        recorded.path.unlink()
    return found


def _orders(directory: Path, limit: int) -> TraceOrders:
    directory.mkdir(exist_ok=True)
    return TraceOrders(directory, limit)


def _replay(path: Path, name: str, recorded: TraceFiles, orders: TraceOrders) -> Traced:
    with Path(os.devnull).open("wb") as null:
        result = replay(path, name=name, stdout=null.fileno(), stderr=null.fileno(), trace=orders)
    with open_recording(path) as recording:
        gates = [gate.name for gate in recording.header.gates]
    replayed = TraceFiles(orders.directory)
    return Traced(compare(recorded, replayed), insides(recorded, replayed), result, name, gates)
