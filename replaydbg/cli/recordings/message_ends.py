"""Shared by `sender` and `receiver`: the other end of what an event received or sent."""

from __future__ import annotations

import argparse
import sys

from replaydbg.cli.common.group_problems import print_problems_of, problems_of
from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, one_process, print_json
from replaydbg.events.show import printable
from replaydbg.groups.messages import messages_of
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.group import group_directory, process_number
from replaydbg.render.channels_text import message_lines, message_remarks
from replaydbg.render.json_data.channels_json import message_facts


def add_event(parser: argparse.ArgumentParser, text: str) -> None:
    """Declare the arguments."""
    parser.add_argument("recording", help="the recording of a process in a group, such as run-12/3")
    parser.add_argument("event", type=int, metavar="EVENT", help=text)
    add_json(parser)


def show_messages(args: argparse.Namespace, *, is_receive: bool) -> int:
    """Show the other ends of an event; 3 if an answer is ambiguous or unsure."""
    path = the_store().resolve(args.recording)
    directory = group_directory(path)
    if directory is None:
        raise one_process(args.recording)
    process = process_number(path)
    opened = OpenedGroup(directory)
    messages = messages_of(opened, process, args.event, is_receive=is_receive)
    if args.json:
        facts = {"path": str(opened.directory), "process": process, "event": args.event}
        print_json(facts | {"messages": message_facts(messages), "problems": problems_of(opened)})
    else:
        for line in message_lines(opened, messages):
            print(line)
        for remark in message_remarks(messages):
            print(f"replaydbg: {printable(remark)}", file=sys.stderr)
    print_problems_of(opened)
    is_certain = all(part.certainty == "certain" for message in messages for part in message.parts)
    return 0 if is_certain else 3
