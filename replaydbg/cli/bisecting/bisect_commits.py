"""`replaydbg bisect commits`: find the commit that made a program fail."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from replaydbg.cli.bisecting.commit_options import (
    INTERRUPTED,
    add_build,
    add_output,
    add_repository,
    add_timeout,
    check_commit_options,
)
from replaydbg.cli.bisecting.commits_watch import watching
from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.cli.common.output import is_terminal, print_json, print_table
from replaydbg.cli.common.scheduler_option import MOST_JOBS, add_scheduler, scheduler_pool
from replaydbg.commits import CommitSearchResult, Question, find_commit
from replaydbg.commits.looking import LookersElsewhere
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.launch.interruption import INTERRUPTIONS
from replaydbg.render.commits_text import COLUMNS, answer_lines, as_markdown, deviation_lines, row
from replaydbg.render.json_data.commits_json import facts

if TYPE_CHECKING:
    from replaydbg.cluster.tasks import TaskPool

TAKES_PROGRAM = True
"""The words after `--` are the command line that is recorded at each commit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = (
        "replaydbg bisect commits --good REV --bad REV [options] (-- PROGRAM [args ...] | --replay RECORDING)"
    )
    parser.add_argument("--good", required=True, metavar="REV", help="a commit that does not fail")
    parser.add_argument("--bad", required=True, metavar="REV", help="a commit that fails")
    _add_trial(parser)
    _add_runs(parser)
    add_repository(parser, replay="with --replay: ")
    parser.add_argument(
        "--confirm",
        type=int,
        default=0,
        metavar="N",
        help="with --replay: confirm by running the program up to N times at the commit found and its parent",
    )
    add_scheduler(parser)
    _add_results(parser)


def _add_trial(parser: argparse.ArgumentParser) -> None:
    """Declare the options for what is tried at each commit."""
    parser.add_argument(
        "--replay",
        metavar="RECORDING",
        help="replay the inputs of this recording against each commit instead of running a program",
    )
    parser.add_argument(
        "--check", default="", metavar="EXPR", help="with --replay: an expression that is true at the end of a good run"
    )
    add_build(parser)


def _add_runs(parser: argparse.ArgumentParser) -> None:
    """Declare the options for how often and how long it is run."""
    parser.add_argument(
        "--runs",
        type=int,
        default=1,
        metavar="N",
        help="run up to N times per commit, for a failure that comes and goes (default: 1)",
    )
    parser.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        metavar="P",
        help="with --runs: confidence required to call a commit good (default: 0.95)",
    )
    parser.add_argument(
        "--same-failure", action="store_true", help="skip commits that fail differently from the bad end"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="test N commits at once (default: 1; with --scheduler at least 2)",
    )
    add_timeout(parser, "each build and run")


def _add_results(parser: argparse.ArgumentParser) -> None:
    """Declare the options for what is kept and printed."""
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="file for the verdicts (default: in the user's cache directory)"
    )
    parser.add_argument("--restart", action="store_true", help="start over: do not use the saved verdicts")
    add_output(parser, recordings="a recording")
    parser.add_argument("--md", action="store_true", help="print Markdown (for a pull request)")


def run(args: argparse.Namespace) -> int:
    """Search; 1 if the commit was found, 3 if it is one of several."""
    store = the_store()
    path = store.resolve(args.replay).absolute() if args.replay is not None else None
    if path is not None:
        warn_if_foreign(path, args.replay, quiet=args.quiet)
    question = _question(args, path)
    try:
        with scheduler_pool(args) as pool, watching(is_quiet=args.quiet) as watch:
            if pool is not None and args.jobs is None:
                question = replace(question, jobs=min(max(pool.slots, 2), MOST_JOBS))
            found = find_commit(
                question,
                directory=Path.cwd(),
                state=args.state,
                is_restart=args.restart,
                store=store.directory,
                watch=watch,
                elsewhere=_on_workers(pool) if pool is not None else None,
            )
    except INTERRUPTIONS:
        print(INTERRUPTED, file=sys.stderr)
        raise
    if args.json:
        print_json(facts(found))
    elif args.md:
        print(as_markdown(found))
    else:
        _print_report(found)
    return 1 if found.culprit is not None else 3


def _on_workers(pool: TaskPool) -> LookersElsewhere:
    # Imported here: only --scheduler needs it.
    from replaydbg.cluster.questions.commit_tasks import ClusterLooker

    return partial(ClusterLooker, pool)


def _question(args: argparse.Namespace, replay: Path | None) -> Question:
    if args.runs < 1 or (args.jobs is not None and args.jobs < 1):
        raise UsageError("--runs and --jobs must be at least 1.")
    if args.confirm < 0:
        raise UsageError(f"--confirm must be at least 0 (got {args.confirm}).")
    if not 0 < args.confidence < 1:
        raise UsageError(f"--confidence must be between 0 and 1 (got {args.confidence:g}).")
    check_commit_options(args)
    if args.json and args.md:
        raise UsageError("--json and --md cannot be used together.")
    return Question(
        good=args.good,
        bad=args.bad,
        program=tuple(args.program),
        replay=replay,
        check=args.check,
        build=args.build,
        runs=args.runs,
        confidence=args.confidence,
        jobs=args.jobs or 1,
        is_rest_recorded=bool(args.scheduler) and replay is not None,
        timeout=args.timeout,
        is_first_parent=args.first_parent,
        is_same_failure=args.same_failure,
        taken_along=tuple(args.taken_along),
        recorded_root=args.recorded_root,
        confirming=args.confirm,
        is_data_of_commit=args.data_from_commit,
    )


def _print_report(found: CommitSearchResult) -> None:
    """Print the table of verdicts, the culprit and what to do next on stdout, notes on stderr."""
    for note in found.notes:
        print(f"replaydbg: {printable(note)}", file=sys.stderr)
    if not is_terminal():
        # The columns are not aligned: tabs separate them.
        print("\t".join(COLUMNS))
    print_table(COLUMNS, [row(found, look) for look in found.looks], right=["seconds"])
    for line in deviation_lines(found):
        print(line)
    print()
    print("\n".join(map(printable, answer_lines(found))))
