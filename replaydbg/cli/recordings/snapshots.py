"""`replaydbg snapshots`: list the snapshots that a recording holds, and what grew over them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import NamedTuple

from replaydbg.cli.common.heap_options import add_shape, check_shape, most_of, print_tables
from replaydbg.cli.common.output import add_recording, open_named, print_json, print_problems, print_table
from replaydbg.errors import Corrupt
from replaydbg.events.show import printable
from replaydbg.heap.retention.growth import growth
from replaydbg.heap.storage.recorded_snapshots import load_series, stored_snapshots
from replaydbg.log.reader import Recording
from replaydbg.render.heap_tables import growth_tables


class InvariantResult(NamedTuple):
    """The result of an invariant at one snapshot, as the recording has it."""

    name: str
    holds: object
    """True or False; None: it could not be evaluated."""
    text: object
    """Why it could not be evaluated."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("--growth", action="store_true", help="show what grows over the snapshots, and what holds it")
    add_shape(parser, is_of_moments=False)


def run(args: argparse.Namespace) -> int:
    """List the snapshots; return 1 if one cannot be read, or with --growth if something grows steadily."""
    check_shape(args)
    with open_named(args.recording) as recording:
        print_problems(recording)
        unreadable: list[Corrupt] = []
        taken = stored_snapshots(recording, unreadable)
        for error in unreadable:
            _warn(str(error))
        if args.growth:
            grown = growth(load_series(recording, _warn))
            if args.json:
                print_json(asdict(grown))
            else:
                print_tables(args, growth_tables(grown, most=most_of(args)))
            return 1 if grown.leaks or unreadable else 0
        checks = _checks(recording)
        if args.json:
            facts = [
                {**asdict(each), "checks": [check._asdict() for check in checks.get(each.number, [])]} for each in taken
            ]
            print_json({"snapshots": facts})
        elif not taken and not unreadable:
            _warn(f"{args.recording} has no snapshots: see --snapshot-every and other options of `record`.")
        else:
            rows = [
                (
                    f"@#{each.number}",
                    str(each.event),
                    f"{each.time_ns / 1e9:.3f}",
                    each.reason,
                    printable(each.name),
                    printable(_checks_text(checks.get(each.number, []))),
                )
                for each in taken
            ]
            columns = ("snapshot", "event", "seconds", "reason", "name", "invariants")
            print_table(columns, rows, right=columns[:3])
        return 1 if unreadable else 0


def _warn(sentence: str) -> None:
    print(f"replaydbg: {printable(sentence)}", file=sys.stderr)


def _checks(recording: Recording) -> dict[int, list[InvariantResult]]:
    """Return the results of the invariants, by the snapshot's number; a live recording has none yet."""
    snapshots = recording.end.raw.get("snapshots") if recording.end is not None else None
    listed = snapshots.get("listed") if isinstance(snapshots, dict) else None
    found = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(each.get("number"), int) and isinstance(each.get("checks"), list):
            found[each["number"]] = [check for row in each["checks"] if (check := _check(row)) is not None]
    return found


def _check(row: object) -> InvariantResult | None:
    """Return one result; None if a field is missing: a recording may contain anything."""
    if isinstance(row, dict) and isinstance(row.get("name"), str) and {"holds", "text"} <= row.keys():
        return InvariantResult(row["name"], row["holds"], row["text"])
    return None


def _checks_text(checks: list[InvariantResult]) -> str:
    failed = [each.name for each in checks if each.holds is False]
    unknown = [f"{each.name}: {each.text}" for each in checks if each.holds is None]
    parts = [f"does not hold: {', '.join(failed)}"] if failed else []
    parts += [f"cannot be evaluated: {', '.join(unknown)}"] if unknown else []
    return "; ".join(parts) or ("hold" if checks else "")
