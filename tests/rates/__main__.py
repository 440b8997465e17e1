"""`python -m tests.rates`: do racy programs fail as often when they are recorded as they do plainly?"""

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text
from tests.rates.rate import Rated, rate

PROGRAMS = tuple(sorted((Path(__file__).parent / "programs").glob("*.py")))
_HEADING = ["program", "plain", "recorded", "near", "replays equal"]


def main(argv: Sequence[str] | None = None) -> int:
    """0: all rates are near to the plain ones, and all replays equal; 1: not so."""
    options = _parser().parse_args(argv)
    restore_signals()
    rated = []
    for program in PROGRAMS:
        if not options.only or program.stem in options.only:
            how = {"runs": options.runs, "thorough": options.thorough, "replays": options.replays}
            rated.append(rate(program, keep=options.keep, **how))
            print(*_row(rated[-1]), sep="  ", flush=True)
    print(f"\nPython {platform.python_version()}")
    print(as_text(_HEADING, [_row(each) for each in rated]))
    for each in rated:
        if each.failure is not None:
            print(f"\n{each.name} FAILED: {each.failure}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in rated], indent=2) + "\n", encoding="utf-8")
    return int(not all(each.is_right for each in rated))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.rates", description=__doc__)
    names = ", ".join(each.stem for each in PROGRAMS)
    parser.add_argument("--only", metavar="NAME", action="append", help=f"one program; can be repeated: {names}")
    parser.add_argument("--runs", metavar="N", type=int, default=200, help="of each kind (default: %(default)s)")
    parser.add_argument(
        "--replays", metavar="N", type=int, default=20, help="of a thorough check (default: %(default)s)"
    )
    parser.add_argument(
        "--thorough",
        metavar="N",
        type=int,
        default=5,
        help="failing recordings that are replayed so often, the others once (default: %(default)s)",
    )
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, default=Path("test-results/rates"), help="recordings whose replay differs"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures as JSON, too")
    return parser


def _row(rated: Rated) -> list[str]:
    is_near = "yes" if rated.plain.is_near(rated.recorded) else "NO"
    return [rated.name, str(rated.plain), str(rated.recorded), is_near, f"{rated.equal} of {rated.replays}"]


if __name__ == "__main__":
    sys.exit(main())
