"""`replaydbg hits`: count how often each line ran, by running the recording again."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Iterable
from typing import NamedTuple

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.cli.common.output import add_json, is_terminal, print_json, print_table
from replaydbg.debugger.source.source_files import is_library
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.replay.clock import Hits
from replaydbg.replay.steps import Steps, count

ON_A_TERMINAL = 40
"""Number of lines that a terminal gets without `--limit`."""


class HitLine(NamedTuple):
    """A line that ran."""

    hits: int
    file: str
    line: int
    function: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a path, a name such as run-12, or latest")
    parser.add_argument("--file", metavar="PATTERN", help="only files whose path matches, such as '*/models.py'")
    parser.add_argument("--all", action="store_true", help="include the standard library and installed packages")
    parser.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help=f"print at most N lines (default: {ON_A_TERMINAL} at a terminal, otherwise all)",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Replay under the step clock, without the program's output, and list the lines, most hit first."""
    if args.limit is not None and args.limit < 0:
        raise UsageError(f"--limit must be at least 0 (got {args.limit}).")
    store = the_store()
    path = store.resolve(args.recording)
    warn_if_foreign(path, args.recording)
    counted = count(path, name=store.name_of(path), hits=True)
    lines = sorted(_lines(counted.hits, args.file, args.all), key=lambda each: (-each.hits, each[1:]))
    limit = args.limit if args.limit is not None or args.json or not is_terminal() else ON_A_TERMINAL
    if args.json:
        print_json(_facts(counted, lines[:limit]))
        return 0
    rows = ((f"{each.hits}", printable(f"{each.file}:{each.line}"), printable(each.function)) for each in lines[:limit])
    print_table(("hits", "line", "in"), rows, right=("hits",))
    print(_summary(counted, lines, limit), file=sys.stderr)
    return 0


def _lines(hits: Iterable[Hits], pattern: str | None, with_libraries: bool) -> Iterable[HitLine]:
    for each in hits:
        if pattern is not None:
            is_wanted = fnmatch.fnmatchcase(each.file, pattern)
        else:
            is_wanted = with_libraries or not is_library(each.file)
        if is_wanted:
            yield from (HitLine(number, each.file, line, each.function) for line, number in each.lines.items())


def _summary(counted: Steps, lines: list[HitLine], limit: int | None) -> str:
    shown = sum(each.hits for each in lines)
    words = f"replaydbg: {counted.total:,} lines ran under Python {counted.python} ({counted.mechanism})"
    if shown < counted.total:
        words += f", {shown:,} of them in these files"
    if limit is not None and len(lines) > limit:
        words += f"; only the {limit} lines that ran most are shown (--limit)"
    return words + "."


def _facts(counted: Steps, lines: list[HitLine]) -> JsonObject:
    return {
        "python": counted.python,
        "mechanism": counted.mechanism,
        "lines_run": counted.total,
        "events": len(counted.per_event),
        "digest": f"{counted.digest:016x}",
        "lines": [each._asdict() for each in lines],
    }
