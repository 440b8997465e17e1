"""`python -m tests.finders`: how soon do futures find known bugs of scheduling, compared with other ways?"""

import argparse
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.finders.finder import Found, find
from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text

_FIXTURES = Path(__file__).parents[2] / "fixtures"
PROGRAMS = tuple(
    path for folder in ("races", "futures", "futures/tasks") for path in sorted((_FIXTURES / folder).glob("*.py"))
)
_HEADING = ["program", "plain runs", "hunt --chaos", "futures", "deviations", "confirmed", "replays equal"]


def main(argv: Sequence[str] | None = None) -> int:
    """0: futures have found each bug, and each failing future replays equal; 1: not so."""
    options = _parser().parse_args(argv)
    restore_signals()
    rows, is_right = [], True
    for program in PROGRAMS:
        if options.only and program.stem not in options.only:
            continue
        with tempfile.TemporaryDirectory(prefix="finders-") as ground:
            found = find(program, Path(ground), runs=options.runs, replays=options.replays)
        rows.append(_row(found))
        print(*rows[-1], sep="  ", flush=True)
        is_right = is_right and found.futures.is_found and found.equal == found.replays
    print(f"\nPython {platform.python_version()}, at most {options.runs} runs or futures")
    print(as_text(_HEADING, rows))
    return int(not is_right)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.finders", description=__doc__)
    names = ", ".join(each.stem for each in PROGRAMS)
    parser.add_argument("--only", metavar="NAME", action="append", help=f"one program; can be repeated: {names}")
    parser.add_argument(
        "--runs", metavar="N", type=int, default=200, help="at most, in each way (default: %(default)s)"
    )
    parser.add_argument(
        "--replays", metavar="N", type=int, default=20, help="of each failing future (default: %(default)s)"
    )
    return parser


def _row(found: Found) -> list[str]:
    confirmed = "yes" if found.is_confirmed else "no"
    equal = f"{found.equal} of {found.replays}"
    return [
        found.program,
        str(found.plain),
        str(found.hunt),
        str(found.futures),
        str(found.deviations),
        confirmed,
        equal,
    ]


if __name__ == "__main__":
    sys.exit(main())
