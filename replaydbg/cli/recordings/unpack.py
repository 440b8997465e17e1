"""`replaydbg unpack`: make a group of processes of the file that `replaydbg pack` wrote."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from pathlib import Path

from replaydbg.cli.common.output import add_json, print_json, the_store
from replaydbg.errors import UsageError
from replaydbg.log.edit.group_pack import unpack_group
from replaydbg.log.group import GROUP, process_facts
from replaydbg.store.directory import SEALED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", type=Path, help="a file that `replaydbg pack` made from a group of processes")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="NAME", help="the group to make, NAME.rdbgs (default: one in the store)"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Make the group, and print its name."""
    if args.output is not None:
        target = args.output.with_name(args.output.name.removesuffix(GROUP).removesuffix(SEALED) + GROUP)
        if os.path.lexists(target):
            raise UsageError(f"{str(target)!r} exists already.")
        group, name = unpack_group(args.file, target), str(target)
    else:
        target = the_store().create_group()
        try:
            group, name = unpack_group(args.file, target), target.name.removesuffix(GROUP)
        except BaseException:
            with suppress(OSError):
                target.rmdir()
            raise
    if args.json:
        processes = [process_facts(each) for each in group.processes]
        print_json({"name": name, "path": str(target), "group": group.identity, "processes": processes})
    else:
        print(name)
    return 0
