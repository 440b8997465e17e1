"""`replaydbg snapshots`: the pictures of the program's objects that a recording holds, and what grew over them."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from replaydbg.cli.heaps import add_shape, check_shape, most_of, print_tables, stored
from replaydbg.cli.output import add_recording, open_named, print_json, print_problems, print_table
from replaydbg.commands.heap_tables import growth_tables
from replaydbg.events.show import printable
from replaydbg.heap.growth import growth
from replaydbg.heap.stored import stored_snapshots
from replaydbg.log.reader import Recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("--growth", action="store_true", help="what grows over them, and who holds it")
    add_shape(parser, is_of_moments=False)


def run(args: argparse.Namespace) -> int:
    """List them; with --growth 1 if something grows steadily."""
    check_shape(args)
    with open_named(args.recording) as recording:
        print_problems(recording)
        taken = stored_snapshots(recording)
        if args.growth:
            grown = growth([stored(recording, str(each.number)) for each in taken])
            if args.json:
                print_json(asdict(grown))
            else:
                print_tables(args, growth_tables(grown, most=most_of(args)))
            return 1 if grown.leaks else 0
        checks = _checks(recording)
        if args.json:
            told = [{**asdict(each), "checks": checks.get(each.number, [])} for each in taken]
            print_json({"snapshots": told})
        else:
            rows = [
                (
                    f"@#{each.number}",
                    str(each.event),
                    f"{each.time_ns / 1e9:.3f}",
                    each.reason,
                    printable(each.name),
                    printable(_said(checks.get(each.number, []))),
                )
                for each in taken
            ]
            columns = ("snapshot", "event", "seconds", "reason", "name", "invariants")
            print_table(columns, rows, right=columns[:3])
        return 0


def _checks(recording: Recording) -> dict[int, list[dict[str, Any]]]:
    """Return what the invariants said, by the snapshot's number; of a live recording nothing is known yet."""
    told = recording.end.raw.get("snapshots") if recording.end is not None else None
    return {each["number"]: each.get("checks", []) for each in (told or {}).get("listed", [])}


def _said(checks: list[dict[str, Any]]) -> str:
    failed = [each["name"] for each in checks if each["holds"] is False]
    unknown = [f"{each['name']}: {each['text']}" for each in checks if each["holds"] is None]
    parts = [f"does not hold: {', '.join(failed)}"] if failed else []
    parts += [f"cannot be told: {', '.join(unknown)}"] if unknown else []
    return "; ".join(parts) or ("hold" if checks else "")
