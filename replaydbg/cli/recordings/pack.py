"""`replaydbg pack`: write one self-contained file for a recording that shares blocks, or that was never sealed."""

from __future__ import annotations

import argparse
from pathlib import Path

from replaydbg.cli.common.output import add_json, add_recording, print_json, the_store
from replaydbg.errors import UsageError
from replaydbg.log.edit.standalone import write_standalone
from replaydbg.log.reader import open_recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file, which depends on no other one."""
    path = the_store().resolve(args.recording)
    if args.output.exists():
        raise UsageError(f"{str(args.output)!r} exists already.")
    with open_recording(path) as recording:
        size = write_standalone(recording, args.output)
    if args.json:
        print_json({"path": str(args.output), "size": size})
    else:
        print(args.output)
    return 0
