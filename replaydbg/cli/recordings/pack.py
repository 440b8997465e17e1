"""`replaydbg pack`: write one self-contained file for a recording that shares blocks, or that was never sealed.

A group of processes becomes one file as a whole; `replaydbg unpack` makes a group of it again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from replaydbg.cli.common.output import add_json, print_json, the_store
from replaydbg.errors import UsageError
from replaydbg.log.edit.group_pack import pack_group
from replaydbg.log.edit.standalone import write_standalone
from replaydbg.log.reader import open_recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "recording", help="a path, a name such as run-12 (a group: all of it), run-12/3 (one process), or latest"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file, which depends on no other one."""
    store = the_store()
    group = store.find_group(args.recording)
    path = group or store.resolve(args.recording)
    if args.output.exists():
        raise UsageError(f"{str(args.output)!r} exists already.")
    if group is not None:
        size = pack_group(group, args.output)
    else:
        with open_recording(path) as recording:
            size = write_standalone(recording, args.output)
    if args.json:
        print_json({"path": str(args.output), "size": size, "is_group": group is not None})
    else:
        print(args.output)
    return 0
