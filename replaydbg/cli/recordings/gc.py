"""`replaydbg gc`: delete shared blocks that no recording uses any more."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from replaydbg.cli.common.output import add_json, print_json
from replaydbg.errors import UsageError
from replaydbg.log.shared import DIRECTORY
from replaydbg.render.measures import show_size
from replaydbg.store.clearing import clear


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "directory",
        nargs="?",
        type=Path,
        default=Path("test-results"),
        help="the directory of the test recordings (default: test-results)",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Clean the directory; return 1 if that failed."""
    if not (args.directory / DIRECTORY).is_dir():
        raise UsageError(f"{str(args.directory)!r} has no directory {DIRECTORY!r}, so there are no shared blocks.")
    cleared = clear(args.directory)
    if args.json:
        print_json({"directory": str(args.directory), **asdict(cleared)})
    elif cleared.why_not:
        print(cleared.why_not)
    else:
        print(f"Removed {cleared.blocks:,} blocks, {show_size(cleared.size)}; {cleared.kept:,} are in use or too new.")
    return 1 if cleared.why_not else 0
