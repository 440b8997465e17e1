"""`python -m tests.suites`: tests of packages end recorded as they do plainly, and their recordings replay equal."""

import argparse
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.harness.surroundings import restore_signals
from tests.harness.table import as_markdown, as_text
from tests.suites.outcomes import counted, reason_for
from tests.suites.prepare import PrepareFailed, prepare
from tests.suites.run import Options, Pass, Result, check
from tests.suites.suites import SUITES

_DOCUMENT = Path(__file__).parents[2] / "docs" / "test-suites.md"

_HEADING = [
    "suite",
    "version",
    "what it does",
    "tests",
    "differ",
    "replays",
    "plain s",
    "recorded s",
    "times",
    "result",
]

_INTRODUCTION = """\
# Test suites of packages

The tests of each package are run plainly and with `--replaydbg=on`, which keeps a recording of every test, one run
after the other. The outcomes are compared test by test. Then twenty recordings are replayed in another environment:
each replay must reach the end of the test, and print what the session printed until there. Seconds are CPU time of all
processes of a run; *times* is recorded divided by plain. `tox -e suites` writes this page;
[how to run it](contributing/run-suites.md).
"""


def main(argv: Sequence[str] | None = None) -> int:
    """0: all are equal; 1: one is not, or could not be laid out; 2: there is no such suite."""
    options = _parser().parse_args(argv)
    restore_signals()
    unknown = set(options.only or ()) - {each.name for each in SUITES}
    if unknown:
        print(f"no such suite: {', '.join(sorted(unknown))}; see --list", file=sys.stderr)
        return 2
    wanted = [each for each in SUITES if not options.only or each.name in options.only]
    if options.list:
        print(
            as_text(
                ["suite", "tests of", "what it does"], [[each.name, each.distribution, each.does] for each in wanted]
            )
        )
        return 0
    results, failures = [], 0
    for suite in wanted:
        _say(f"{suite.name} ...")
        try:
            prepared = prepare(suite, options.cache.absolute())
        except PrepareFailed as error:
            _say(f"{suite.name} FAILED: {error}")
            failures += 1
            continue
        limits = Options(options.timeout, options.rounds, options.replays, options.keep)
        results.append(check(prepared, limits, is_plain=options.plain, say=_say))
        _print_details(results[-1], options.keep)
    print(as_text(_HEADING, [_row(each) for each in results]))
    if not options.plain and (not options.only or options.docs):
        rows = [_row(each) for each in results]
        _write_document(options.docs or _DOCUMENT, rows, is_whole=not options.only)
    return int(failures > 0 or any(each.is_failed for each in results))


def _parser() -> argparse.ArgumentParser:
    cache = Path(tempfile.gettempdir()) / "replaydbg-suites"
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="one suite; can be repeated")
    parser.add_argument("--list", action="store_true", help="name the suites and end")
    parser.add_argument(
        "--plain", action="store_true", help="run the tests plainly alone, to check the table of suites"
    )
    parser.add_argument("--cache", metavar="DIR", type=Path, default=cache, help="where packages are laid out, once")
    parser.add_argument(
        "--rounds", metavar="N", type=int, default=1, help="pairs of runs; the fastest of each kind counts"
    )
    parser.add_argument("--replays", metavar="N", type=int, default=20, help="tests whose recordings are replayed")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=900.0, help="for each run and each replay")
    parser.add_argument("--keep", metavar="DIR", type=Path, default=Path("test-results/suites"), help="for failures")
    parser.add_argument(
        "--docs", metavar="FILE", type=Path, help="where the table goes (a full run: docs/test-suites.md)"
    )
    return parser


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print_details(result: Result, keep: Path) -> None:
    suite = result.prepared.suite
    if result.trouble:
        print(f"{suite.name}: a run has no results: {result.trouble}")
    for each in result.different:
        reason = "it depends on how busy the machine is" if each.is_unsteady else reason_for(each.test, suite.differs)
        print(f"{suite.name}: {each}{f' ({reason})' if reason else ''}")
    for test in result.outdated if result.recorded else []:
        print(f"{suite.name}: {test} is not different any more: take its reason away")
    if result.is_failed:
        print(f"{suite.name} FAILED; what there is of it is in {keep / suite.name}")
    sys.stdout.flush()


def _row(result: Result) -> list[str]:
    suite = result.prepared.suite
    plain, recorded = _fastest(result.plain), _fastest(result.recorded)
    equal = sum(each.failure is None for each in result.replays)
    return [
        suite.name,
        suite.version,
        suite.does,
        counted(result.plain[0].outcomes),
        _difference_count(result) if result.recorded else "-",
        f"{equal} of {len(result.replays)}" if result.replays else "-",
        f"{plain:.1f}" if plain else "-",
        f"{recorded:.1f}" if recorded else "-",
        f"{recorded / plain:.2f}" if recorded and plain else "-",
        "FAILED" if result.is_failed else "equal" if result.recorded else "runs plain",
    ]


def _difference_count(result: Result) -> str:
    kinds = {
        "": len(result.unexplained),
        " with a reason": len(
            [each for each in result.different if reason_for(each.test, result.prepared.suite.differs)]
        ),
        " unsteady": len([each for each in result.different if each.is_unsteady]),
    }
    return ", ".join(f"{number}{kind}" for kind, number in kinds.items() if number) or "0"


def _fastest(passes: Sequence[Pass]) -> float | None:
    return min((each.finished.cpu for each in passes), default=None)


def _write_document(file: Path, rows: Sequence[Sequence[str]], *, is_whole: bool) -> None:
    """Write the page. Unless `is_whole`, the rows of other suites that are in it stay."""
    known = {} if is_whole else rows_in(file)
    known |= {row[0]: list(row) for row in rows}
    ordered = [known[each.name] for each in SUITES if each.name in known]
    parts = [_INTRODUCTION, _summary(ordered), "", as_markdown(_HEADING, ordered)]
    reasons = [
        f"- `{test}` ({each.name}) {what}: {reason}"
        for each in SUITES
        for what, which in (("ends otherwise", each.differs), ("is left out", each.left_out))
        for test, reason in which.items()
        if each.name in known
    ]
    file.write_text("\n".join([*parts, *(["", *reasons] if reasons else [])]) + "\n", encoding="utf-8")


def rows_in(file: Path) -> dict[str, list[str]]:
    """The rows of a page that was written before, by suite."""
    if not file.exists():
        return {}
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    return {row[0]: row for row in rows[2:] if len(row) == len(_HEADING)}


def _summary(rows: Sequence[Sequence[str]]) -> str:
    equal = sum(row[-1] == "equal" for row in rows)
    text = f"Python {platform.python_version()} on {platform.system()}: {equal} of {len(rows)} suites are equal."
    plain, recorded = (_HEADING.index(f"{kind} s") for kind in ("plain", "recorded"))
    pairs = [(float(row[plain]), float(row[recorded])) for row in rows if "-" not in (row[plain], row[recorded])]
    if not pairs:
        return text
    times = sum(it for _, it in pairs) / sum(it for it, _ in pairs)
    middle = median(recorded / plain for plain, recorded in pairs)
    return f"{text} In total they take {times:.2f} times as long when recorded (median: {middle:.2f})."


if __name__ == "__main__":
    sys.exit(main())
