"""`replaydbg channels`: list the channels between processes that were recorded together."""

from __future__ import annotations

import argparse
import sys

from replaydbg.cli.common.group_problems import print_problems_of, problems_of
from replaydbg.cli.common.output import add_json, named_group, print_json, print_table
from replaydbg.events.show import printable
from replaydbg.groups.causality import bare_edges
from replaydbg.groups.messages import contradicted
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.render.channels_text import COLUMNS, EDGE_COLUMNS, RIGHT, channel_remarks, channel_row, edge_row
from replaydbg.render.json_data.channels_json import channel_facts, edge_facts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a group of processes: a path, a name such as run-12, or latest")
    parser.add_argument(
        "--edges",
        action="store_true",
        help="instead, list events that order processes without a message: starts, ends, signals, semaphores, "
        "eventfds, locks, files",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """List the channels; 1 if a recording of the group is missing or damaged."""
    opened = OpenedGroup(named_group(args.recording))
    if args.edges and not args.json:
        print_table(EDGE_COLUMNS, map(edge_row, bare_edges(opened)))
        print_problems_of(opened)
        return 1 if opened.problems else 0
    matched = [opened.matching.match(each) for each in opened.matching.channels]
    apart = [contradicted(opened, each) for each in matched]
    if args.json:
        channels = [channel_facts(*each) for each in zip(matched, apart, strict=True)]
        edges = list(map(edge_facts, bare_edges(opened)))
        print_json(
            {"path": str(opened.directory), "channels": channels, "edges": edges, "problems": problems_of(opened)}
        )
    else:
        print_table(COLUMNS, map(channel_row, matched), right=RIGHT)
        for each in zip(matched, apart, strict=True):
            for line in channel_remarks(opened, *each):
                print(f"replaydbg: {printable(line)}", file=sys.stderr)
    print_problems_of(opened)
    return 1 if opened.problems else 0
