"""`python -m tests.real`: real programs are recorded once and replayed five times, their inputs changed, then gone."""

import argparse
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.harness.surroundings import restore_signals
from tests.harness.table import as_markdown, as_text, with_unit
from tests.real.run import REPLAYS, Result, check_plainly, check_replays
from tests.real.scenario import Scenario
from tests.real.scenarios import SCENARIOS

_DOCUMENT = Path(__file__).parents[2] / "docs" / "real-programs.md"

_HEADING = ["program", "version", "what it does", "events", "size", "record s", "replay s", "result"]

_INTRODUCTION = """\
# Real programs

Each program is recorded once, then replayed five times in another environment (time zone, locale, home directory,
terminal width): twice with every file of its working directory changed, three times with the directory removed. stdout,
stderr and the exit code must be the recorded ones each time, and nothing may be written. Child processes are not
recorded (`--children=none`), and what they print directly is not compared. A server or client that the program talks
to runs unrecorded beside it, and has ended before the first replay. `tox -e real` writes this page;
[how to run it](contributing/run-real.md).
"""


def main(argv: Sequence[str] | None = None) -> int:
    """0: all are equal; 1: one is not, or is not installed."""
    options = _parser().parse_args(argv)
    restore_signals()
    unknown = set(options.only or ()) - {each.name for each in SCENARIOS}
    if unknown:
        print(f"no such program: {', '.join(sorted(unknown))}; see --list", file=sys.stderr)
        return 2
    wanted = [each for each in SCENARIOS if not options.only or each.name in options.only]
    if options.list:
        print(as_text(["program", "what it does"], [[each.name, each.does] for each in wanted]))
        return 0
    results = []
    for scenario in wanted:
        results.append(_check(scenario, options))
        print(f"{scenario.name}: {_outcome(results[-1], options.plain)}", file=sys.stderr, flush=True)
    print(as_text(_HEADING, [_row(each, options.plain) for each in results]))
    for each in results:
        if _is_wrong(each, options.plain):
            print(
                f"\n{each.scenario.name} FAILED: {each.failure or 'it waits for nothing any more: take off the mark'}"
            )
            if each.kept:
                print(f"  kept in {each.kept}; replaydbg replay {each.kept / each.scenario.name}.rdbg")
    if not options.plain and not options.only:
        _write_document(options.docs, results)
    return int(any(_is_wrong(each, options.plain) for each in results))


def _is_wrong(result: Result, is_plain: bool) -> bool:
    """Whether a row is not as it must be. What waits must not be equal: no mark outlives its reason."""
    if result.scenario.waits_for is None or is_plain:
        return result.failure is not None
    return not _waits(result)


def _waits(result: Result) -> bool:
    """Whether it failed where it may: the program ran as its row says, but its replay did not."""
    return result.scenario.waits_for is not None and result.failure is not None and result.has_run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.real", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="one program; can be repeated")
    parser.add_argument("--list", action="store_true", help="name the programs and end")
    parser.add_argument("--keep", metavar="DIR", type=Path, default=Path("test-results/real"), help="for failures")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=120.0, help="for each command")
    parser.add_argument(
        "--docs", metavar="FILE", type=Path, default=_DOCUMENT, help="where a full run writes its table"
    )
    parser.add_argument("--plain", action="store_true", help="run the programs plain, to check the scenarios")
    return parser


def _check(scenario: Scenario, options: argparse.Namespace) -> Result:
    if scenario.missing is not None:
        return Result(scenario, scenario.missing, has_run=False)
    if options.plain:
        return check_plainly(scenario, timeout=options.timeout)
    return check_replays(scenario, timeout=options.timeout, keep=options.keep)


def _row(result: Result, is_plain: bool) -> list[str]:
    scenario, figures = result.scenario, result.figures
    return [
        scenario.name,
        scenario.version or "-",
        scenario.does,
        f"{figures.events:,}" if figures else "-",
        with_unit(figures.size) if figures else "-",
        _seconds(result.record_seconds),
        _seconds(result.replay_seconds),
        _outcome(result, is_plain),
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _outcome(result: Result, is_plain: bool) -> str:
    if _waits(result) and not is_plain:
        return f"waits for {result.scenario.waits_for}"
    if result.failure:
        return f"FAILED after {result.replays_equal} of {REPLAYS}" if result.replay_seconds else "FAILED"
    return "runs plain" if is_plain else f"equal {result.replays_equal} of {REPLAYS}"


def _write_document(file: Path, results: Sequence[Result]) -> None:
    equal = sum(each.failure is None for each in results)
    waiting = sum(_waits(each) for each in results)
    summary = (
        f"Python {platform.python_version()} on {platform.system()}: {equal} of {len(results)} programs are equal, "
        f"{waiting} are not yet: their C code reaches the outside directly."
    )
    table = as_markdown(_HEADING, [_row(each, False) for each in results])
    file.write_text(f"{_INTRODUCTION}\n{summary}\n\n{table}\n")


if __name__ == "__main__":
    sys.exit(main())
