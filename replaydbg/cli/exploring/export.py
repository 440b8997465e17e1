"""`replaydbg export`: save an object of a moment to a file, for use in today's Python."""

from __future__ import annotations

import argparse
from pathlib import Path

from replaydbg.cli.common.opening import add_place, add_quiet, opened_at
from replaydbg.cli.common.output import add_json, add_recording, print_json
from replaydbg.debugger.object_export import Export
from replaydbg.errors import UsageError
from replaydbg.render.export_text import export_facts, export_lines
from replaydbg.store.private import write_private


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("expression", metavar="EXPR", help="the expression to save, such as 'app.cache[3]'")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write, such as x.dill")
    add_place(parser)
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file; return 0 even if parts of the object could not be saved, which are listed."""
    with opened_at(args) as view:
        found = view.session.run.export(args.expression, **view.at)
        write(found, args.output)
        if args.json:
            print_json(export_facts(found, args.output))
        else:
            for line in export_lines(found, args.output):
                view.screen.line(line)
    return 0


def write(found: Export, path: str) -> None:
    """Write the object to a file, completely or not at all. Raises UsageError."""
    try:
        write_private(Path(path), found.data)
    except OSError as error:
        raise UsageError(f"{path!r} cannot be written: {error.strerror}.") from None
