"""`replaydbg check`: test whether today's code still fails on a recording's inputs; made for `git bisect run`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.cli.common.output import print_json
from replaydbg.cli.common.refused import refused
from replaydbg.cli.common.standard_streams import open_closed_streams
from replaydbg.config import is_notice_unwanted, load_settings
from replaydbg.errors import ReplaydbgError, UsageError
from replaydbg.events.verdict import Verdict
from replaydbg.render.json_data.verdict_json import verdict_facts
from replaydbg.render.verdict_text import verdict_lines
from replaydbg.replay.edited_code import CodeVerdict, Judge

CANNOT_TEST_CODE = 125
"""The exit code that `git bisect run` reads as: this commit cannot be tested."""
STOP_CODE = 128
"""The exit code that stops `git bisect run`: the check itself is misconfigured, and every commit would look bad."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a path, a name such as run-12, or latest")
    parser.add_argument(
        "--expr",
        metavar="EXPR",
        help="expression that must be true in __main__ at exit (default: the program no longer fails as recorded)",
    )
    parser.add_argument(
        "--source-root",
        metavar="OLD=NEW",
        action="append",
        default=[],
        help="read modules recorded under OLD from NEW; repeatable",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=int,
        help="limit of CPU time; a program that takes longer cannot be tested",
    )
    parser.add_argument("--show-output", action="store_true", help="show what the program prints")
    add_verdict_arguments(parser)
    parser.error = _refuse  # type: ignore[method-assign]


def add_verdict_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the verdict's output."""
    parser.add_argument("-q", "--quiet", action="store_true", default=None, help="print only the verdict")
    parser.add_argument("--json", action="store_true", help="print the verdict and all deviations as JSON on stdout")


def _refuse(message: str) -> NoReturn:
    """Exit with a code that `git bisect run` does not read as a bad commit."""
    print(f"replaydbg check: {message}", file=sys.stderr)
    sys.exit(STOP_CODE)


def run(args: argparse.Namespace) -> int:
    """Judge the code; return 0 for good, 1 for bad, 125 if it cannot be tested."""
    open_closed_streams()
    try:
        settings = load_settings({"quiet": args.quiet})
        store = the_store()
        path = store.resolve(args.recording)
        sources = _sources(args.source_root)
        warn_if_foreign(path, args.recording, quiet=is_notice_unwanted(args.quiet))
        with open(os.devnull, "wb") as null:  # noqa: PTH123 - a descriptor is wanted
            stream = None if args.show_output and not args.json else null.fileno()
            errors = None if args.show_output else null.fileno()
            judge = Judge(
                path,
                store.name_of(path),
                sources or None,
                args.expr,
                cpu_seconds=args.timeout,
                stdout=stream,
                stderr=errors,
            )
            return show_verdict(judge.judge(), as_json=args.json, quiet=settings.quiet)
    except (ReplaydbgError, OSError) as error:
        stopped = error if isinstance(error, ReplaydbgError) else refused(error)
        stopped.exit_code = STOP_CODE
        raise stopped from None


def _sources(given: list[str]) -> dict[str, str]:
    sources = {}
    for pair in given:
        old, equals, new = pair.partition("=")
        if not equals or not old or not os.path.isdir(new):  # noqa: PTH112
            raise UsageError(f"--source-root cannot be {pair!r}: give OLD=NEW, where NEW is a directory.")
        sources[os.path.abspath(old)] = os.path.abspath(new)  # noqa: PTH100 - links stay as the program saw them
    return sources


def show_verdict(verdict: CodeVerdict, *, as_json: bool, quiet: bool) -> int:
    """Print it, and return the exit code."""
    if as_json:
        print_json(verdict_facts(verdict))
    else:
        for line in verdict_lines(verdict, with_deviations=not quiet):
            print(line)
    return {Verdict.GOOD: 0, Verdict.BAD: 1, Verdict.UNDECIDED: CANNOT_TEST_CODE}[verdict.verdict]
