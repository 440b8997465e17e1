"""`python -m tests.children`: record every fixture as a forked and as a started child, and replay each process."""

import argparse
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.children.parents import PARENTS
from tests.harness.children import assert_all_replay
from tests.harness.replay_cases import FIXTURES, Case, cases_of
from tests.harness.replay_places import Form
from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text

# Folders with programs that the tests start in ways of their own.
NOT_PLAIN = frozenset(
    (
        "apart",
        "bisect",
        "children",
        "cuts",
        "data_frames",
        "flaky",
        "foreign",
        "formats",
        "fuzz",
        "heap",
        "pages",
        "programs",
        "pytest",
        "races",
        "standins",
        "travel",
    )
)


# They write to one file by two positions, which overwrite each other. The replay of a group shows all bytes.
_OVERWRITES = frozenset(("moves_about", "opened_again", "received"))


@dataclass(frozen=True, slots=True)
class Tried:
    """One case, one way."""

    area: str
    name: str
    way: str
    # Why it is not right; empty: each process replays equal.
    failure: str


def main(argv: Sequence[str] | None = None) -> int:
    """0: each process of each case replays equal; 1: not so."""
    options = _parser().parse_args(argv)
    restore_signals()
    orders = [
        (case, way)
        for area in sorted(path.name for path in FIXTURES.iterdir() if path.is_dir() and path.name not in NOT_PLAIN)
        for program in sorted((FIXTURES / area).iterdir())
        if program.suffix == ".py" and not program.name.startswith("_") and program.stem not in _OVERWRITES
        for case in cases_of(program)
        if case.fails is None and case.how.form is Form.SCRIPT
        for way in PARENTS
        if _is_wanted(program, way, options)
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        tried = list(pool.map(lambda order: _try(*order), orders))
    _show(tried)
    return int(any(each.failure for each in tried))


def _is_wanted(program: Path, way: str, options: argparse.Namespace) -> bool:
    names = {program.stem, program.parent.name}
    return (not options.only or bool(names & set(options.only))) and (not options.way or way in options.way)


def _try(case: Case, way: str) -> Tried:
    try:
        assert_all_replay(case, PARENTS[way])
        failure = ""
    except (AssertionError, OSError) as error:
        failure = str(error)[:1500] or type(error).__name__
    tried = Tried(case.program.parent.name, case.program.stem, way, failure)
    if failure:
        print(f"{tried.area}/{tried.name} in a {way} child: {failure}\n", file=sys.stderr, flush=True)
    return tried


def _show(tried: Sequence[Tried]) -> None:
    print(f"Python {platform.python_version()}")
    counts = Counter((each.area, each.way, not each.failure) for each in tried)
    rows = []
    for area in [*sorted({each.area for each in tried}), "all"]:
        row = [area]
        for way in PARENTS:
            right, wrong = (
                sum(
                    n
                    for (where, how, is_right), n in counts.items()
                    if area in (where, "all") and (how, is_right) == each
                )
                for each in ((way, True), (way, False))
            )
            row.append(f"{right} of {right + wrong}")
        rows.append(row)
    print(as_text(["area", *(f"{way}: equal" for way in PARENTS)], rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.children", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="a folder of fixtures, or one; can be repeated")
    parser.add_argument("--way", choices=tuple(PARENTS), action="append", help="can be repeated (default: all)")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="cases at once (default: 2)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
