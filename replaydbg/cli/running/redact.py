"""`replaydbg redact`: copy a recording with pseudonyms in the place of its secrets."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from replaydbg.cli.common.output import add_json, open_named, print_json
from replaydbg.errors import UsageError
from replaydbg.redaction.redacted_copy import redact


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a path, a name such as run-12, or latest")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the copy, once a replay has proven it."""
    if args.output.exists():
        raise UsageError(f"{str(args.output)!r} exists already.")
    with open_named(args.recording) as recording:
        made = redact(recording, args.output, recording.name)
    if args.json:
        print_json({"path": str(args.output), "size": made.size, "secrets": made.secrets, "events": made.events})
    else:
        print(args.output)
        plural = "s" * (made.secrets != 1)
        text = f"{made.secrets:,} secret{plural} replaced; a replay of {made.events:,} events agrees with the copy"
        print(f"replaydbg: {text}", file=sys.stderr)
    return 0
