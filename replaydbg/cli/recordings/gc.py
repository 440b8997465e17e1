"""`replaydbg gc`: delete shared blocks that no recording uses any more."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from replaydbg.cli.common.output import add_json, print_json, the_store
from replaydbg.errors import UsageError
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.render.measures import show_size
from replaydbg.store.clearing import Cleared, blocks_in, clear


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "directory",
        nargs="?",
        default="test-results",
        help="a directory of test recordings (default: test-results) or of groups of processes, or one group",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Clean the directory, and groups of processes in it; return 1 if that failed."""
    directory = Path(args.directory)
    if not directory.is_dir():
        directory = the_store().find_group(args.directory) or directory
    places = blocks_in(directory)
    if not places:
        raise UsageError(f"{str(directory)!r} has no directory {DIRECTORY!r}, so there are no shared blocks.")
    cleared = [(place, clear(place)) for place in places]
    problems = [
        each.why_not if place == directory else f"{place}: {each.why_not}" for place, each in cleared if each.why_not
    ]
    whole = Cleared(*(sum(getattr(each, name) for _, each in cleared) for name in ("blocks", "size", "kept")))
    if args.json:
        print_json({"directory": str(directory), **asdict(whole), "why_not": " ".join(problems)})
        return 1 if problems else 0
    for problem in problems:
        print(problem)
    if len(problems) < len(cleared):
        print(f"Removed {whole.blocks:,} blocks, {show_size(whole.size)}; {whole.kept:,} are in use or too new.")
    return 1 if problems else 0
