"""`replaydbg bisect recordings`: find what made a bad run differ from a good one."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from replaydbg.bisect.twins import Comparison, InputKind, compare
from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.cli.common.output import add_json, print_json
from replaydbg.debugger import Session
from replaydbg.debugger.compare.first_difference import MemoryDifference, first_memory_difference, first_turn
from replaydbg.debugger.compare.thread_switches import gave_way, took_turns
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.errors import EngineLost, NoSuchMoment, NotComparable, UsageError
from replaydbg.events.show import show_status
from replaydbg.heap.comparison.snapshot_diff import SCOPES
from replaydbg.heap.retention.holding import MINE
from replaydbg.hunt.capture import captured
from replaydbg.hunt.codes import compare_code
from replaydbg.hunt.flip import Flip
from replaydbg.hunt.reading import Twins, open_twins
from replaydbg.hunt.trials import MOST, How, find_flip, write_flipped
from replaydbg.launch.processors import processors
from replaydbg.log.reader import Recording
from replaydbg.prompt.terminal import ProgressLine
from replaydbg.render.json_data.recordings_json import facts
from replaydbg.render.recordings_text import RecordingsReport, Travelled, as_markdown, text
from replaydbg.replay import replay

FOUND, INCONCLUSIVE = 1, 3

_T = TypeVar("_T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("good", help="a recording of a run that passed: a path, a name such as hunt-1-pass")
    parser.add_argument(
        "bad",
        nargs="+",
        help="recordings of failing runs of the same program: the first is explained; with more, the cause explains "
        "all of them",
    )
    parser.add_argument(
        "--fails",
        default="",
        metavar="PATTERN",
        help="also count a run as failed if its output matches this regular expression",
    )
    parser.add_argument(
        "--no-trials", action="store_true", help="compare only; do not search for the cause by replaying"
    )
    parser.add_argument(
        "--trials", type=int, default=MOST, metavar="N", help=f"make at most N trials (default: {MOST})"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="run N trials at once (default: the number of processors)"
    )
    parser.add_argument(
        "--scope",
        choices=tuple(SCOPES),
        help="whose variables to compare (default: mine; all if the hash seed is the cause)",
    )
    parser.add_argument("--no-state", action="store_true", help="do not compare memory")
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="show no progress, and no notice about a recording that you did not make",
    )
    parser.add_argument("--md", action="store_true", help="print Markdown")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Compare them; return 1 if the cause of the difference was found, 3 if not."""
    if args.md and args.json:
        raise UsageError("--md and --json cannot be used together.")
    if args.trials < 1 or (args.jobs is not None and args.jobs < 1):
        raise UsageError("--trials and --jobs must be at least 1.")
    pattern = _pattern(args.fails)
    store = the_store()
    given = [args.good, *args.bad]
    paths = [store.resolve(each) for each in given]
    for path, name in zip(paths, given, strict=True):
        warn_if_foreign(path, name, quiet=args.quiet)
    progress = ProgressLine(sys.stderr, lambda: None, is_quiet=args.quiet)
    with ExitStack() as stack:
        twins = stack.enter_context(open_twins(paths[0], paths[1]))
        others = [stack.enter_context(open_twins(paths[0], each)) for each in paths[2:]]
        endings = _ending(twins.good, pattern, is_good=True), _ending(twins.bad, pattern, is_good=False)
        for other in others:
            _ending(other.bad, pattern, is_good=False)
        comparison = compare(twins.good_side, twins.bad_side)
        if not comparison.inputs and comparison.first is None:
            raise NotComparable("The two runs had the same inputs and the same behaviour.")
        code = compare_code(twins, with_trials=not args.no_trials)
        is_code = code is not None and code.is_cause
        flip = None if args.no_trials or is_code else _flip(args, twins, comparison, pattern, progress, others)
        travelled = _travelled(twins, comparison, flip, progress, _scopes(args, flip))
        progress.clear()
        names = store.name_of(paths[0]), store.name_of(paths[1])
        found = RecordingsReport(twins, names, endings, comparison, flip, travelled, code)
        if args.json:
            print_json(facts(found))
        else:
            print(as_markdown(found) if args.md else text(found), end="")
    return FOUND if flip is None or not flip.reason else INCONCLUSIVE


def _flip(
    args: argparse.Namespace,
    twins: Twins,
    comparison: Comparison,
    pattern: re.Pattern[bytes] | None,
    progress: ProgressLine,
    others: Sequence[Twins],
) -> Flip:
    began = time.monotonic()

    def show_trials(trials: int) -> None:
        progress(WorkProgress(f"trial {trials}", 0.0, time.monotonic() - began))

    jobs = args.jobs if args.jobs is not None else processors()
    flip = find_flip(twins, comparison, How(jobs=jobs, pattern=pattern, most=args.trials, progress=show_trials), others)
    progress.clear()
    return flip


def _pattern(fails: str) -> re.Pattern[bytes] | None:
    try:
        return re.compile(fails.encode("utf-8", "surrogateescape"), re.MULTILINE) if fails else None
    except re.error as error:
        raise UsageError(f"--fails {fails!r} is not a valid regular expression: {error}.") from error


def _ending(recording: Recording, pattern: re.Pattern[bytes] | None, *, is_good: bool) -> str:
    """Return how a run ended; raise NotComparable if a good run failed or a bad one passed."""
    assert recording.end is not None, "checked when it was opened"
    status = recording.end.status
    ending = show_status(status)
    has_failed = status != 0
    if not has_failed and pattern is not None:
        found = pattern.search(_output(recording.path))
        has_failed = found is not None
        ending += f", and wrote {found[0].decode(errors='replace')!r}" if found is not None else ""
    if has_failed is is_good:
        what = "failed" if has_failed else "passed"
        more = (
            ""
            if pattern is not None or has_failed
            else " If it failed without that, name the failure with --fails PATTERN."
        )
        raise NotComparable(
            f"{recording.name!r}, which should be the {'good' if is_good else 'bad'} one, {what} ({ending}).{more}"
        )
    return ending


def _output(path: Path) -> bytes:
    with captured() as capture:
        replay(path, stdout=capture.stdout.fileno(), stderr=capture.stderr.fileno())
        outside = capture.run(0)
    return outside.output + outside.errors


def _scopes(args: argparse.Namespace, flip: Flip | None) -> tuple[str, ...]:
    """Return whose variables are compared, each scope for a difference of its own."""
    kinds = [each.kind for each in flip.inputs] if flip is not None else []
    if args.no_state:
        return ()
    if args.scope:
        return (args.scope,)
    if InputKind.SCHEDULE in kinds:
        return ()  # the threads have progressed differently at every moment, and a comparison would show nothing else
    # A different iteration order in a library shows first in the library's own variables.
    return (MINE, "all") if kinds == [InputKind.HASH_SEED] else (MINE,)


def _travelled(
    twins: Twins, comparison: Comparison, flip: Flip | None, progress: ProgressLine, scopes: tuple[str, ...]
) -> Travelled:
    """Find the moments in both recordings: where the runs first differ, and where threads were preempted."""
    preemptions = flip.preemptions if flip is not None else ()
    turns = flip.turns if flip is not None else ()
    if not scopes and not preemptions and not turns:
        return Travelled()
    with ExitStack() as stack:
        bad = stack.enter_context(Session(twins.bad.path, progress=progress))
        gave = tuple(_unless_lost(gave_way, bad, each.number, each.own, each.nth, each.after) for each in preemptions)
        took = tuple(_unless_lost(took_turns, bad, each.after, each.instead) for each in turns)
        if not scopes:
            return Travelled(gave_way=gave, took_turns=took)
        if flip is None or flip.reason or flip.is_from_bad or preemptions:
            good = stack.enter_context(Session(twins.good.path, progress=progress))
            together = [(pair.good, pair.bad) for pair in comparison.pairs if pair.is_exact]
            found = [first_memory_difference(good, bad, together, scope=scope, since=_since(flip)) for scope in scopes]
            return Travelled(_different(found), gave_way=gave, took_turns=took)
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="replaydbg-flipped-"))
        good = stack.enter_context(Session(write_flipped(twins, flip, Path(place)), progress=progress))
        same = [(event, event) for event in range(1, min(good.index.events, bad.index.events) + 1)]
        asked = _since(flip)
        since = (asked[1], asked[1]) if asked is not None else None
        found = [
            first_memory_difference(good, bad, same, scope=scope, since=since, is_flipped=True) for scope in scopes
        ]
        return Travelled(_different(found), first_turn(good, bad), gave, took)


def _unless_lost(find: Callable[..., _T | None], *where: object) -> _T | None:
    """Return the result of `find`; None if that moment cannot be reached: the answer itself is known without it."""
    try:
        return find(*where)
    except (EngineLost, NoSuchMoment):
        return None


def _different(found: list[MemoryDifference | None]) -> tuple[MemoryDifference, ...]:
    """Return the places, without duplicates."""
    return tuple({(each.place, each.bad): each for each in reversed(found) if each is not None}.values())[::-1]


def _since(flip: Flip | None) -> tuple[int, int] | None:
    """Return the events of the first deciding answer in both runs; None: the difference exists from the start on."""
    answers = [each for each in (flip.inputs if flip is not None else ()) if each.kind is InputKind.ANSWER]
    return (answers[0].good_event, answers[0].bad_event) if answers else None
