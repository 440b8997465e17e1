"""`python -m tests.stdlib_groups`: CPython's own tests of processes, recorded with their children, and replayed."""

import argparse
import platform
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text, with_unit
from tests.stdlib.exceptions import allowing, read_exceptions
from tests.stdlib.outcomes import Difference
from tests.stdlib_groups.document import update
from tests.stdlib_groups.judged import Judged
from tests.stdlib_groups.parts import SUITES, Part, lay_out, parts_of, read_left_out
from tests.stdlib_groups.run import PartResult, run_part

_DOCUMENT = Path(__file__).parents[2] / "docs" / "stdlib-groups.md"
_EXCEPTIONS = Path(__file__).with_name("exceptions.toml")
_LEFT_OUT = Path(__file__).with_name("left_out.json")
_VERSION = ".".join(platform.python_version_tuple()[:2])
_HEADING = ("tests", "cases", "same result", "processes", "recorded", "equal", "share", "cut", "events", "size")

_INTRODUCTION = """\
# CPython's tests of processes

CPython's own tests are run plain, then with `record --children=python`, in parts of at most eight test cases. Each test
case must have the result that it has unrecorded; one that does not is run again both ways, since many of these tests
depend on time. Then the working directory is removed, and every recorded process is replayed. A process is *equal* if
its replay has no divergence up to the last event, and ends with the recorded exit code. *cut* counts recordings that
end before their process did; they are equal up to their end. *processes* includes those that are not recorded, such as
programs that are not Python. `tox -e stdlib-groups` writes this page.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """0: all results are the same, and all recorded processes replay equal; 1: not so."""
    options = _parser().parse_args(argv)
    restore_signals()
    left_out = read_left_out(_LEFT_OUT)
    results: dict[str, list[PartResult]] = {}
    for suite in options.suites or SUITES:
        parts = [part for part in _parts(suite, tuple(left_out)) if _is_wanted(part, options.only)]
        with ThreadPoolExecutor(options.jobs) as pool:
            results[suite] = list(pool.map(lambda part: _run(part, options), parts))
    rows = [_row(suite, found) for suite, found in results.items()]
    print(f"Python {platform.python_version()}")
    print(as_text(_HEADING, rows))
    _print_counts(results)
    if not options.only:
        update(options.docs, _INTRODUCTION, platform.python_version(), _HEADING, rows)
    return int(any(_is_bad(each) for found in results.values() for each in found))


def _parts(suite: str, left_out: tuple[str, ...]) -> list[Part]:
    with tempfile.TemporaryDirectory() as place:
        lay_out(Path(place), suite)
        return parts_of(suite, Path(place), left_out)


def _is_wanted(part: Part, only: Sequence[str]) -> bool:
    return not only or any(word in part.name or any(word in case for case in part.cases) for word in only)


def _run(part: Part, options: argparse.Namespace) -> PartResult:
    result = run_part(part, options.keep)
    if _different(result):
        # Many of these tests depend on time: only what differs twice does so because it is recorded.
        again = run_part(part, options.keep)
        both = {each.test for each in result.different} & {each.test for each in again.different}
        kept = tuple(each for each in again.different if each.test in both)
        _print_differences("once", result)
        result = PartResult(part, again.cases, kept, again.judged, again.size, again.troubles)
    found = result.judged
    print(
        f"{part.name}: {result.cases} cases, {len(_different(result))} differ; "
        f"{found.equal} of {found.recorded} equal, {found.cut.total()} cut",
        file=sys.stderr,
        flush=True,
    )
    _print_differences("twice", result)
    for text in (*result.troubles, *found.wrong):
        print(f"  {text}", file=sys.stderr, flush=True)
    return result


def _different(result: PartResult) -> list[Difference]:
    """Return the differences without a stated reason."""
    exceptions = read_exceptions(_EXCEPTIONS)
    return [each for each in result.different if allowing(each.test, _VERSION, exceptions) is None]


def _print_differences(how_often: str, result: PartResult) -> None:
    for each in _different(result):
        text = f"  {each.test}: plain {each.plain.value}, recorded {each.recorded.value} ({how_often})"
        print(text, file=sys.stderr, flush=True)


def _is_bad(result: PartResult) -> bool:
    return bool(_different(result) or result.troubles or result.judged.wrong)


def _row(suite: str, results: Sequence[PartResult]) -> list[str]:
    total = Judged()
    for each in results:
        total.add(each.judged)
    if not results:
        return [suite, "not installed", *["-"] * (len(_HEADING) - 2)]
    cases = sum(each.cases for each in results)
    same = cases - sum(len(each.different) for each in results)
    share = f"{100 * total.equal / total.recorded:.1f} %" if total.recorded else "-"
    return [
        suite,
        f"{cases:,}",
        f"{same:,}",
        f"{total.processes:,}",
        f"{total.recorded:,}",
        f"{total.equal:,}",
        share,
        f"{total.cut.total():,}",
        f"{total.events:,}",
        with_unit(sum(each.size for each in results)),
    ]


def _print_counts(results: dict[str, list[PartResult]]) -> None:
    cut, why_not = Counter[str](), Counter[str]()
    for each in (result.judged for found in results.values() for result in found):
        cut += each.cut
        why_not += each.why_not
    for title, counts in (("cut", cut), ("not recorded", why_not)):
        for text, count in counts.most_common():
            print(f"{title}, {count} times: {text}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.stdlib_groups", description=__doc__)
    parser.add_argument("suites", metavar="test_x", nargs="*", help=f"default: {', '.join(SUITES)}")
    parser.add_argument(
        "--only", metavar="WORD", action="append", default=[], help="parts or cases with this in their names"
    )
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="parts at once (default: %(default)s)")
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, default=Path("test-results/stdlib-groups"), help="what is not equal"
    )
    parser.add_argument("--docs", metavar="FILE", type=Path, default=_DOCUMENT, help="where the table is written")
    return parser


if __name__ == "__main__":
    sys.exit(main())
