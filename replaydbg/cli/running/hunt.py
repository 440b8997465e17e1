"""`replaydbg hunt`: record a flaky command until it fails and until it passes, and keep one recording of each."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import print_json
from replaydbg.cli.common.program_words import split_words as split_words
from replaydbg.cli.common.scheduler_option import MOST_JOBS, add_scheduler, scheduler_pool
from replaydbg.config import load_settings
from replaydbg.hunt.hunter import Caught, HuntRequest, HuntRun, Until, hunt
from replaydbg.hunt.worker import RunStarter, start_here
from replaydbg.launch.endings import end_like
from replaydbg.launch.processors import processors
from replaydbg.log.reader import open_recording
from replaydbg.render.hunt_text import HuntReport, KeptRun, hunt_lines
from replaydbg.render.json_data.hunt_json import hunt_facts

if TYPE_CHECKING:
    from replaydbg.cluster.tasks import TaskPool

FOUND, INCONCLUSIVE = 0, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "replaydbg hunt [options] [--] (prog.py | -m module | -c code | console-script) [args ...]"
    parser.add_argument("-n", "--runs", type=int, default=100, metavar="N", help="make at most N runs (default: 100)")
    parser.add_argument("--jobs", type=int, metavar="N", help="run N at once (default: the number of processors)")
    parser.add_argument(
        "--chaos", action="store_true", help="randomize thread scheduling, with another seed for each run"
    )
    parser.add_argument(
        "--until",
        choices=[each.value for each in Until],
        default=Until.BOTH.value,
        help="stop after a failing run, a passing run, or both (default: both)",
    )
    parser.add_argument(
        "--failures",
        type=int,
        default=1,
        metavar="N",
        help="continue until N runs have failed, and keep their recordings (default: 1)",
    )
    parser.add_argument(
        "--fails",
        default="",
        metavar="PATTERN",
        help="also count a run as failed if its output matches this regular expression",
    )
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="kill a run that takes longer, and count it as failed"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="where to keep the recordings (default: the store)"
    )
    parser.add_argument("--bisect", action="store_true", help="run `bisect recordings` afterwards")
    add_scheduler(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print data with a schema_version instead of text")
    parser.epilog = "Put interpreter options, such as -O or -X dev, after -- and before the program."


def run(args: argparse.Namespace) -> int:
    """Hunt; return 0 if the wanted runs were recorded, 3 if not."""
    with scheduler_pool(args) as pool:
        return _hunted(args, pool)


def _hunted(args: argparse.Namespace, pool: TaskPool | None) -> int:
    # More than there are workers at present: then an adaptive cluster grows.
    slots = min(max(2 * pool.slots, 8), MOST_JOBS) if pool is not None else processors()
    wanted = HuntRequest(
        command=args.program,
        runs=args.runs,
        jobs=args.jobs if args.jobs is not None else min(slots, args.runs),
        is_chaotic=args.chaos,
        until=Until(args.until),
        failures=args.failures,
        fails=args.fails,
        timeout=args.timeout,
        directory=args.output,
    )
    progress = _HuntProgress(args.runs, is_quiet=args.quiet)
    try:
        start = _on_workers(pool, args.fails) if pool is not None else start_here
        caught = hunt(wanted, load_settings(), seen=progress, start=start)
    finally:
        progress.clear()
    following = _following(caught, args.fails)
    if args.json and not args.bisect:
        print_json(hunt_facts(_report(caught, following)))
    elif not args.json:
        print("\n".join(hunt_lines(_report(caught, following))))
    if caught.interrupted_by:
        return end_like(-caught.interrupted_by)
    if not args.bisect or not following:
        return FOUND if caught.has(wanted.until) else INCONCLUSIVE
    sys.stdout.flush()
    return _bisect(following, args)


def _on_workers(pool: TaskPool, fails: str) -> RunStarter:
    # Imported here: only --scheduler needs it.
    from replaydbg.cluster.questions.run_tasks import ClusterRuns

    return ClusterRuns(pool, Path.cwd(), fails)


def _bisect(words: list[str], args: argparse.Namespace) -> int:
    # Imported here: only this option needs it.
    from replaydbg.cli.main import main

    return main([*words, *(["--json"] if args.json else []), *(["--quiet"] if args.quiet else [])])


def _following(caught: Caught, fails: str) -> list[str]:
    """Return the command line for the next step; empty unless there are both recordings."""
    if caught.failed is None or caught.passed is None:
        return []
    names = [the_store().name_of(each.path) for each in (caught.passed, caught.failed, *caught.more)]
    return ["bisect", "recordings", *names, *(["--fails", fails] if fails else [])]


def _report(caught: Caught, following: list[str]) -> HuntReport:
    return HuntReport(
        caught,
        failed=_kept(caught.failed) if caught.failed is not None else None,
        passed=_kept(caught.passed) if caught.passed is not None else None,
        more=tuple(map(_kept, caught.more)),
        following=tuple(following),
    )


def _kept(run: HuntRun) -> KeptRun:
    with open_recording(run.path) as recording:
        return KeptRun(run, the_store().name_of(run.path), recording.header.hash_seed)


class _HuntProgress:
    """Reports the runs on stderr: each failure, and on a terminal the number of runs."""

    def __init__(self, most: int, *, is_quiet: bool) -> None:
        self.most, self.is_quiet = most, is_quiet
        self.is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.runs = self.failures = 0

    def __call__(self, run: HuntRun) -> None:
        self.runs += 1
        self.failures += run.is_failure
        if self.is_quiet:
            return
        self.clear()
        if run.is_failure:
            seed = f", chaos seed {run.chaos}" if run.chaos is not None else ""
            print(f"run {run.number}: failed ({run.why}{seed})", file=sys.stderr)
        if self.is_terminal:
            sys.stderr.write(f"{self.runs} of at most {self.most} runs, {self.failures} failed")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the status line, which is rewritten in place."""
        if self.is_terminal and not self.is_quiet:
            sys.stderr.write("\r\x1b[K")
