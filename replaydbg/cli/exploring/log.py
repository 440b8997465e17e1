"""`replaydbg log`: print an expression every time a line is about to run (a retroactive print)."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.opening import add_quiet, opened
from replaydbg.cli.common.output import add_json, add_recording, print_json
from replaydbg.commands.places import parse_place
from replaydbg.errors import UsageError
from replaydbg.render import texts
from replaydbg.render.json_data.moments_json import moment_facts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("place", metavar="FILE:LINE", help="the line to log at; the end of the path is enough")
    parser.add_argument("expression", metavar="EXPR", help="""the expression to print, such as 'f"{x=}"'""")
    parser.add_argument("--if", dest="condition", default="", metavar="COND", help="print only when this is true")
    parser.add_argument("--limit", type=int, metavar="N", help="print at most N lines")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the values; return 1 if there are none."""
    if args.limit is not None and args.limit < 1:
        raise UsageError(f"--limit must be at least 1 (got {args.limit}).")
    for text in (args.expression, args.condition or "None"):
        try:
            compile(text, "<expression>", "eval")
        except (SyntaxError, ValueError) as error:
            raise UsageError(f"{text!r} cannot be read: {error}.") from None
    with opened(args.recording, quiet=args.quiet) as view:
        session, screen = view.session, view.screen
        file, line, _ = parse_place(view, args.place, is_line=True)
        found = []
        number = 0
        for logged in session.run.log(file, line, args.expression, condition=args.condition):
            number += 1
            screen.check()
            if args.json:
                facts = moment_facts(session, logged.count, logged.moment)
                task = session.tasks.name_at(logged.count, logged.lane)
                found.append({**facts, "thread": logged.lane, "task": task or None, "text": logged.text})
            else:
                screen.line(texts.logged_text(session, logged))
            if number == args.limit:
                break
        if args.json:
            print_json({"file": file, "line": line, "expression": args.expression, "lines": found})
        return 0 if number else 1
