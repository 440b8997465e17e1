"""`replaydbg export`: save an object of a moment to a file, for use in today's Python."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replaydbg.cli.opening import add_place, add_quiet, opened_at
from replaydbg.cli.output import add_json, add_recording, print_json
from replaydbg.debugger.object_export import Export, Lost
from replaydbg.errors import UsageError, quoted


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
            print_json(_facts(found, args.output))
        else:
            for line in lines(found, args.output):
                view.screen.line(line)
    return 0


def write(found: Export, path: str) -> None:
    """Write the object to a file, completely or not at all. Raises UsageError."""
    temporary = Path(f"{path}.part")
    try:
        temporary.write_bytes(found.data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"{path!r} cannot be written: {error.strerror}.") from None


def lines(found: Export, path: str) -> list[str]:
    """Return the lines that describe the result."""
    result = [f"{path}: a {found.type}, {len(found.data):,} bytes: {found.text}"]
    result += [f"  not saved: {_lost(each)}" for each in found.lost]
    return [*result, f"  replaydbg.load({quoted(path)!r}) loads it in any Python that has its modules."]


def _lost(lost: Lost) -> str:
    return f"{lost.path or 'a part'} (a {lost.type}): {lost.reason}"


def _facts(found: Export, path: str) -> dict[str, Any]:
    lost = [{"path": each.path, "type": each.type, "reason": each.reason} for each in found.lost]
    return {"file": path, "type": found.type, "text": found.text, "bytes": len(found.data), "lost": lost}
