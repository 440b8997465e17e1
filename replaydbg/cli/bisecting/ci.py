"""`replaydbg ci`: test failing recordings at a range of commits, for a job that runs every night."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replaydbg.cli.bisecting.ci_cases import add_selection, find_cases
from replaydbg.cli.common.output import is_terminal, print_json, print_table
from replaydbg.commits.question import TIMEOUT
from replaydbg.commits.repository import Repository
from replaydbg.config import is_fence_wanted, user_cache_directory
from replaydbg.errors import UsageError, clause
from replaydbg.events.show import printable
from replaydbg.launch.interruption import INTERRUPTIONS
from replaydbg.log.sealed.origin import is_own
from replaydbg.regressions.code_verdicts import Case, CodeState
from replaydbg.regressions.night import NightProgress, NightQuestion, NightReport, NightWatcher
from replaydbg.regressions.night_plan import range_of
from replaydbg.regressions.night_run import run_night
from replaydbg.render.regressions.night_json import night_facts
from replaydbg.render.regressions.night_page import night_page
from replaydbg.render.regressions.night_text import (
    CASE_COLUMNS,
    POINT_COLUMNS,
    case_rows,
    legend,
    point_rows,
    summary_lines,
)
from replaydbg.store.private import write_private

INCONCLUSIVE = 3
"""The exit code if no recording could be tested at any commit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "replaydbg ci (--commits GOOD..BAD | --last N) [options] [RECORDING | DIRECTORY ...]"
    parser.add_argument(
        "recordings",
        nargs="*",
        metavar="RECORDING",
        help="recordings, or directories whose failed recordings are tested (default: the failed ones of the store)",
    )
    parser.add_argument("--commits", metavar="GOOD..BAD", help="test GOOD, BAD, and the commits between them")
    parser.add_argument("--last", type=int, metavar="N", help="test the last N commits, and the one before them")
    add_selection(parser)
    _add_trial(parser)
    _add_output(parser)


def _add_trial(parser: argparse.ArgumentParser) -> None:
    """Declare the options for how commits are tested."""
    parser.add_argument("--build", default="", metavar="COMMAND", help="a shell command to run in each worktree first")
    parser.add_argument(
        "--with",
        dest="taken_along",
        action="append",
        type=Path,
        default=[],
        metavar="PATH",
        help="copy this file or directory from the checkout into each worktree; repeatable",
    )
    parser.add_argument(
        "--data-from-commit",
        action="store_true",
        help="read tracked data files from each commit, not from the recording",
    )
    parser.add_argument(
        "--recorded-root", type=Path, metavar="DIR", help="the path of the repository when it was recorded"
    )
    parser.add_argument("--first-parent", action="store_true", help="treat each merge as one commit")
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"limit for a build, and for a recording at a commit; 0 for none (default: {TIMEOUT:g})",
    )
    parser.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="test N recordings at once (default: one per processor)"
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    """Declare the options for what is kept and printed."""
    parser.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help="directory that keeps the verdicts for the next run (default: in the user's cache directory)",
    )
    parser.add_argument("--restart", action="store_true", help="compute all verdicts anew")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the result as one HTML page")
    parser.add_argument("--json", action="store_true", help="print data with a schema_version instead of text")
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="show no progress, and no notice about recordings that you did not make",
    )


def run(args: argparse.Namespace) -> int:
    """Test; 1 if a recording that passed fails again, or newly fails, 3 if none could be tested."""
    if args.timeout < 0:
        raise UsageError(f"--timeout must be at least 0 seconds (got {args.timeout:g}).")
    if args.jobs < 0:
        raise UsageError(f"--jobs must be at least 1 (got {args.jobs}).")
    if args.html is not None and not args.html.absolute().parent.is_dir():
        raise UsageError(f"--html cannot be {str(args.html)!r}: its directory does not exist.")
    repository = Repository(Path.cwd())
    first, last = range_of(repository, commits=args.commits, last=args.last)
    cases = find_cases(args)
    if not args.quiet:
        _warn_about_foreign(cases)
    question = NightQuestion(
        cases=cases,
        first=first,
        last=last,
        build=args.build,
        taken_along=tuple(args.taken_along),
        is_data_of_commit=args.data_from_commit,
        is_first_parent=args.first_parent,
        recorded_root=args.recorded_root,
        timeout=args.timeout,
        jobs=args.jobs or len(os.sched_getaffinity(0)),
    )
    state = args.state or _default_state(repository)
    try:
        with _watching(is_quiet=args.quiet) as watch:
            report = run_night(question, directory=Path.cwd(), state=state, is_restart=args.restart, watch=watch)
    except INTERRUPTIONS:
        print(
            "replaydbg: interrupted; the verdicts are saved, and the same command continues from there.",
            file=sys.stderr,
        )
        raise
    if args.html is not None:
        _write_page(args.html, report)
    if args.json:
        print_json(night_facts(report))
    else:
        _print_report(report)
    return 1 if report.has_regressions else 0 if report.is_conclusive else INCONCLUSIVE


def _default_state(repository: Repository) -> Path:
    name = hashlib.sha256(os.fsencode(repository.root)).hexdigest()[:24]
    return user_cache_directory() / "ci" / name


def _warn_about_foreign(cases: tuple[Case, ...]) -> None:
    foreign = [case.name for case in cases if not case.problem and not is_own(case.path)]
    if not foreign or sys.stderr is None:
        return
    what = f"{printable(foreign[0])!s} was" if len(foreign) == 1 else f"{len(foreign):,} recordings were"
    how = "behind the fence" if is_fence_wanted() else "with all your rights"
    print(
        f"replaydbg: {what} not recorded by you with this installation: the programs in them now run {how} "
        "(see messages#foreign-recording).",
        file=sys.stderr,
    )


def _write_page(path: Path, report: NightReport) -> None:
    try:
        write_private(path.absolute(), night_page(report).encode("utf-8", "backslashreplace"))
    except OSError as error:
        reason = clause(error.strerror or str(error))
        print(f"replaydbg: the page {printable(str(path))!r} cannot be written: {reason}.", file=sys.stderr)


def _print_report(report: NightReport) -> None:
    """Print the tables and the summary on stdout, notes on stderr."""
    for note in report.notes:
        print(f"replaydbg: {printable(note)}", file=sys.stderr)
    points, cases = point_rows(report), case_rows(report)
    for columns, rows in ((POINT_COLUMNS, points), (CASE_COLUMNS, cases)):
        if not rows:
            continue
        if not is_terminal():
            print("\t".join(columns))
        print_table(columns, rows)
        print()
    print(legend(cases))
    print("\n".join(summary_lines(report)))
    unknown = sum(each.now is CodeState.UNKNOWN for each in report.histories)
    if unknown and sys.stderr is not None:
        total = len(report.histories)
        print(f"replaydbg: {unknown:,} of {total:,} recordings are inconclusive at the last commit.", file=sys.stderr)


@contextmanager
def _watching(*, is_quiet: bool) -> Iterator[NightWatcher]:
    """Yield a watcher that shows the progress on stderr, at a terminal only."""
    if is_quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda progress: None
        return
    # Imported here: only output to a terminal needs it.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("testing", total=None)

        def show(progress: NightProgress) -> None:
            what = f"testing {', '.join(map(printable, progress.running[:3]))}" if progress.running else "testing"
            bar.update(task, completed=progress.done, total=progress.total, description=what)

        yield show
