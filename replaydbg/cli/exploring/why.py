"""`replaydbg why`: show the last write of a value, and the events of that line."""

from __future__ import annotations

import argparse
from functools import partial

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.opening import add_place, add_quiet, opened_at
from replaydbg.cli.common.output import add_json, add_recording, print_json
from replaydbg.commands.view import View
from replaydbg.errors import quoted
from replaydbg.groups.messages import MessageEnd
from replaydbg.groups.other_end import UNFINISHED
from replaydbg.render import texts
from replaydbg.render.json_data.writes_json import last_write_facts
from replaydbg.store.directory import member_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("expression", help="a variable, attribute or item, such as order.lines[0].price")
    add_place(parser)
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the last write of a value; return 1 if it was not written."""
    with opened_at(args) as view:
        session = view.session
        answer = session.run.why(args.expression, **view.at)
        if args.json:
            print_json(last_write_facts(session, answer, view.group))
        else:
            follow = f"replaydbg why {quoted(args.recording)} {{quoted}} --at {{moment}}"
            jump = partial(_command_at, view)
            for line in texts.why_lines(session, answer, follow=follow, group=view.group, jump=jump):
                view.screen.line(line)
        return 0 if answer.moment is not None else 1


def _command_at(view: View, _event: int, end: MessageEnd) -> str:
    """Return the command that opens the process of a send, where it sends."""
    assert view.group.directory is not None, "a recording of one process has no messages"
    name = the_store().name_of(member_path(view.group.directory, end.process))
    return f"replaydbg debug {quoted(name)} --at {f'{end.event}:0' if end.event else UNFINISHED}"
