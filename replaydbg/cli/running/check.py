"""`replaydbg check`: test whether today's code still fails on a recording's inputs; made for `git bisect run`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.cli.common.output import print_json
from replaydbg.cli.common.refused import refused
from replaydbg.cli.common.scheduler_option import add_scheduler, counting, scheduler_pool
from replaydbg.cli.common.standard_streams import open_closed_streams
from replaydbg.config import is_notice_unwanted, load_settings
from replaydbg.errors import ReplaydbgError, UsageError
from replaydbg.events.show import printable
from replaydbg.events.verdict import Verdict
from replaydbg.render.json_data.verdict_json import verdict_facts
from replaydbg.render.verdict_text import verdict_lines
from replaydbg.replay.edited_code import CodeVerdict, Judge
from replaydbg.replay.lenient import check_expression

CANNOT_TEST_CODE = 125
"""The exit code that `git bisect run` reads as: this commit cannot be tested."""
CODES = {Verdict.GOOD: 0, Verdict.BAD: 1, Verdict.UNDECIDED: CANNOT_TEST_CODE}
"""The exit codes of verdicts."""
USAGE_CODE = 128
"""The exit code that stops `git bisect run`: the check itself is misconfigured, and every commit would look bad."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", nargs="+", help="a path, a name such as run-12, or latest")
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
        help="read modules recorded under OLD from NEW (empty: from the recording); repeatable",
    )
    parser.add_argument(
        "--rest-recorded",
        action="store_true",
        help="read all other modules from the recording, not from today's disk; always so with --scheduler",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=int,
        help="limit of CPU time; a program that takes longer cannot be tested",
    )
    parser.add_argument("--show-output", action="store_true", help="show what the program prints")
    add_scheduler(parser)
    add_verdict_arguments(parser)


def add_verdict_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the verdict's output."""
    parser.add_argument("-q", "--quiet", action="store_true", default=None, help="print only the verdict")
    parser.add_argument("--json", action="store_true", help="print the verdict and all deviations as JSON on stdout")


def run(args: argparse.Namespace) -> int:
    """Judge the code; return 0 for good, 1 for bad, 125 if it cannot be tested; of several the worst of these."""
    open_closed_streams()
    try:
        settings = load_settings({"quiet": args.quiet})
        store = the_store()
        paths = [store.resolve(each) for each in args.recording]
        sources = _sources(args.source_root)
        for name, path in zip(args.recording, paths, strict=True):
            warn_if_foreign(path, name, quiet=is_notice_unwanted(args.quiet))
        named = {path: store.name_of(path) for path in paths}
        if args.scheduler:
            return _on_workers(args, named, sources, quiet=settings.quiet)
        with open(os.devnull, "wb") as null:  # noqa: PTH123 - a descriptor is wanted
            stream = None if args.show_output and not args.json else null.fileno()
            errors = None if args.show_output else null.fileno()

            def judged(path: Path) -> CodeVerdict:
                return Judge(
                    path,
                    named[path],
                    sources or None,
                    args.expr,
                    cpu_seconds=args.timeout,
                    stdout=stream,
                    stderr=errors,
                    is_rest_recorded=args.rest_recorded,
                ).judge()

            if len(named) == 1:
                return show_verdict(judged(paths[0]), as_json=args.json, quiet=settings.quiet)
            shown = _ShownVerdicts(as_json=args.json)
            for path, name in named.items():
                verdict = judged(path)
                shown.add(name, verdict.verdict, verdict.sentence, verdict_facts(verdict))
            return shown.end()
    except (ReplaydbgError, OSError) as error:
        stopped = error if isinstance(error, ReplaydbgError) else refused(error)
        stopped.exit_code = USAGE_CODE
        raise stopped from None


def _on_workers(args: argparse.Namespace, named: dict[Path, str], sources: dict[str, str], *, quiet: bool) -> int:
    """Judge the code on the workers of a scheduler."""
    # Imported here: only this option needs them.
    from replaydbg.cluster.questions.code_tasks import OfCode
    from replaydbg.cluster.tasks import RecordingTask, results

    if args.show_output:
        raise UsageError("--show-output cannot be used with --scheduler: the program runs on a worker.")
    if args.expr is not None:
        check_expression(args.expr)
    shown = _ShownVerdicts(as_json=args.json, is_single=len(named) == 1)
    question = OfCode(sources, args.expr or "", args.timeout or 0)
    with scheduler_pool(args) as pool, counting(len(named), is_quiet=quiet) as progress:
        assert pool is not None
        for each in results(pool, [RecordingTask(path, question) for path in named]):
            assert each.task.recording is not None
            progress(each.verdict)
            facts = dict(each.facts["check"]) if each.facts else {"verdict": "cannot test", "sentence": each.why}
            shown.add(named[each.task.recording], each.verdict, each.reason or "cannot test", facts)
    return shown.end()


class _ShownVerdicts:
    """The verdicts on several recordings, printed as they come, or at the end as JSON."""

    def __init__(self, *, as_json: bool, is_single: bool = False) -> None:
        self._as_json, self._is_single = as_json, is_single
        self._facts: list[dict[str, object]] = []
        self._verdicts: list[Verdict] = []

    def add(self, name: str, verdict: Verdict, sentence: str, facts: dict[str, object]) -> None:
        """Print one, or keep it."""
        self._verdicts.append(verdict)
        self._facts.append({"recording": name, **facts})
        if not self._as_json:
            label = "" if self._is_single else f"{name}: "
            is_said = verdict is not Verdict.UNDECIDED or sentence.startswith("cannot test")
            print(printable(f"{label}{'' if is_said else 'cannot test: '}{sentence}"), flush=True)

    def end(self) -> int:
        """Print what is left, and return the exit code."""
        if self._as_json:
            print_json(self._facts[0] if self._is_single else {"recordings": self._facts})
        return CODES[next(each for each in (Verdict.BAD, Verdict.UNDECIDED, Verdict.GOOD) if each in self._verdicts)]


def _sources(given: list[str]) -> dict[str, str]:
    sources = {}
    for pair in given:
        old, equals, new = pair.partition("=")
        if not equals or not old or (new and not os.path.isdir(new)):  # noqa: PTH112
            raise UsageError(f"--source-root cannot be {pair!r}: give OLD=NEW, where NEW is a directory, or empty.")
        sources[os.path.abspath(old)] = new and os.path.abspath(new)  # noqa: PTH100 - links stay as the program saw them
    return sources


def show_verdict(verdict: CodeVerdict, *, as_json: bool, quiet: bool) -> int:
    """Print it, and return the exit code."""
    if as_json:
        print_json(verdict_facts(verdict))
    else:
        for line in verdict_lines(verdict, with_deviations=not quiet):
            print(line)
    return CODES[verdict.verdict]
