"""`replaydbg ci`: test failing recordings at a range of commits, for a job that runs every night."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from replaydbg.cli.bisecting.ci_cases import add_selection, find_cases
from replaydbg.cli.bisecting.commit_options import (
    INTERRUPTED,
    add_build,
    add_output,
    add_repository,
    add_timeout,
    check_commit_options,
)
from replaydbg.cli.common.fetched_names import with_addresses
from replaydbg.cli.common.output import is_terminal, print_json, print_table
from replaydbg.cli.common.scheduler_option import add_scheduler, scheduler_pool
from replaydbg.commits.repository import Repository
from replaydbg.config import is_fence_wanted, user_cache_directory
from replaydbg.errors import UsageError, clause
from replaydbg.events.show import printable
from replaydbg.launch.interruption import INTERRUPTIONS
from replaydbg.launch.processors import processors
from replaydbg.log.sealed.origin import is_own
from replaydbg.regressions.code_verdicts import Case, CodeState
from replaydbg.regressions.night import (
    CaseHistory,
    NightProgress,
    NightQuestion,
    NightReport,
    NightWatcher,
    TrialSettings,
)
from replaydbg.regressions.night_plan import range_of
from replaydbg.regressions.night_run import run_night
from replaydbg.regressions.trial_pool import TrialsElsewhere
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

if TYPE_CHECKING:
    from replaydbg.cluster.tasks import TaskPool

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
    _add_results(parser)


def _add_trial(parser: argparse.ArgumentParser) -> None:
    """Declare the options for how commits are tested."""
    add_build(parser)
    add_repository(parser)
    parser.add_argument(
        "--rest-recorded",
        action="store_true",
        help="read all modules outside of the repository from the recording, not from today's disk",
    )
    add_timeout(parser, "a build, and for a recording at a commit")
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="test N recordings at once (default: one per processor; with --scheduler at least 8)",
    )
    add_scheduler(parser)


def _add_results(parser: argparse.ArgumentParser) -> None:
    """Declare the options for what is kept and printed."""
    parser.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help="directory that keeps the verdicts for the next run (default: in the user's cache directory)",
    )
    parser.add_argument("--restart", action="store_true", help="compute all verdicts anew")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the result as one HTML page")
    add_output(parser, recordings="recordings")


def run(args: argparse.Namespace) -> int:
    """Test; 1 if a recording that passed fails again, or newly fails, 3 if none could be tested."""
    check_commit_options(args)
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs must be at least 1 (got {args.jobs}).")
    if args.html is not None:
        _check_page(args.html)
    repository = Repository(Path.cwd())
    first, last = range_of(repository, commits=args.commits, last=args.last)
    cases = find_cases(args)
    if not args.quiet:
        _warn_about_foreign(cases)
    question = NightQuestion(
        cases=cases,
        first=first,
        last=last,
        trials=TrialSettings(
            build=args.build,
            taken_along=tuple(args.taken_along),
            is_data_of_commit=args.data_from_commit,
            is_rest_recorded=args.rest_recorded or bool(args.scheduler),
            timeout=args.timeout,
        ),
        is_first_parent=args.first_parent,
        recorded_root=args.recorded_root,
        jobs=args.jobs or processors(),
    )
    state = args.state or _default_state(repository)
    try:
        with scheduler_pool(args) as pool, _watching(is_quiet=args.quiet) as watch:
            report = run_night(
                question,
                directory=Path.cwd(),
                state=state,
                is_restart=args.restart,
                watch=watch,
                elsewhere=_on_workers(pool, args.jobs or 0) if pool is not None else None,
            )
    except INTERRUPTIONS:
        print(INTERRUPTED, file=sys.stderr)
        raise
    report = _with_addresses(report)
    if args.html is not None:
        _write_page(args.html, report)
    if args.json:
        print_json(night_facts(report))
    else:
        _print_report(report)
    return 1 if report.has_regressions else 0 if report.is_conclusive else INCONCLUSIVE


def _with_addresses(report: NightReport) -> NightReport:
    """Return the report with the addresses of recordings of remote stores in the reasons why they cannot be tested."""

    def named(history: CaseHistory) -> CaseHistory:
        return replace(history, case=replace(history.case, problem=with_addresses(history.case.problem)))

    return replace(report, histories=tuple(map(named, report.histories)))


def _on_workers(pool: TaskPool, jobs: int) -> TrialsElsewhere:
    # Imported here: only --scheduler needs it.
    from replaydbg.cluster.questions.trial_tasks import ClusterTrials

    return partial(ClusterTrials, pool, jobs)


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


def _check_page(path: Path) -> None:
    """Raise UsageError if the page cannot be written to this path: before the work, not after it."""
    why = ""
    if path.is_dir():
        why = "it is a directory"
    elif not path.absolute().parent.is_dir():
        why = "its directory does not exist"
    elif path.is_file() or not path.exists():
        try:
            with TemporaryFile(dir=path.resolve().parent):
                pass
        except OSError as error:
            why = f"its directory cannot be written ({clause(error.strerror or str(error))})"
    if why:
        raise UsageError(f"--html cannot be {str(path)!r}: {why}.")


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
