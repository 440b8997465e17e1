"""`python -m tests.stress`: many threads, interleaved at random, recorded once and replayed fifty times."""

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text, with_unit
from tests.real.peer import PORT, Peer
from tests.stress.races import RACES, Raced, race
from tests.stress.repeat import Repeated, Stressed, repeat

_PROGRAMS = Path(__file__).parent / "programs"
_REAL = Path(__file__).parents[1] / "real" / "programs"

STRESSED = (
    Stressed(
        "flask_outside",
        _REAL / "site_flask.py",
        "a threaded Flask server, 500 requests of 8 clients of another process",
        "the server has ended",
        (PORT,),
        Peer("ask_http", ("500", "end"), is_client=True),
    ),
    Stressed(
        "flask_inside",
        _PROGRAMS / "flask_inside.py",
        "a threaded Flask server, 240 requests of 6 threads of its own process",
        "all were answered",
    ),
    Stressed(
        "four_loops",
        _PROGRAMS / "four_loops.py",
        "four event loops in four threads, with streams, threads and calls between them",
        "all loops have ended True",
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """0: every replay is equal and every bug was met; 1: not so."""
    options = _parser().parse_args(argv)
    restore_signals()
    keep, timeout = options.keep, options.timeout
    repeated = []
    for stressed in _wanted(STRESSED, options.only):
        for chaos in (None, options.chaos):
            repeated.append(repeat(stressed, chaos, replays=options.replays, timeout=timeout, keep=keep))
            _say(_row(repeated[-1]))
    raced = []
    seeds = range(options.chaos, options.chaos + options.seeds)
    for program in RACES:
        if not options.only or program.stem in options.only:
            raced.append(race(program, seeds, jobs=options.jobs, timeout=timeout, keep=keep))
            _say(_race_row(raced[-1]))
    print(f"Python {platform.python_version()}")
    if repeated:
        print(as_text(["program", "slices", "events", "log", "replays equal"], [_row(each) for each in repeated]))
    if raced:
        print(as_text(["race", "seeds equal", "bug met in", "first seed"], [_race_row(each) for each in raced]))
    for name, failure, kept in [
        *((each.stressed.name, each.failure, each.kept) for each in repeated),
        *((each.name, each.failure, each.kept) for each in raced),
    ]:
        if failure is not None:
            print(f"\n{name} FAILED: {failure}\n  kept in {kept}")
    if options.json is not None:
        options.json.write_text(json.dumps(_as_json(repeated, raced), indent=2) + "\n")
    return int(any(each.failure for each in repeated) or not all(each.is_right for each in raced))


def _parser() -> argparse.ArgumentParser:
    names = ", ".join([*(each.name for each in STRESSED), *(each.stem for each in RACES)])
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help=f"one program; can be repeated: {names}")
    parser.add_argument("--replays", metavar="N", type=int, default=50, help="of each recording (default: 50)")
    parser.add_argument("--seeds", metavar="N", type=int, default=200, help="for each race (default: 200)")
    parser.add_argument("--chaos", metavar="SEED", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="races recorded at once (default: 1)")
    parser.add_argument("--keep", metavar="DIR", type=Path, default=Path("test-results/stress"), help="for failures")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=120.0, help="for each command")
    parser.add_argument("--json", metavar="FILE", type=Path, help="the figures go there, too")
    return parser


def _wanted(all_of_them: Sequence[Stressed], only: Sequence[str] | None) -> list[Stressed]:
    return [each for each in all_of_them if not only or each.name in only]


def _say(row: Sequence[str]) -> None:
    print("  ".join(row), file=sys.stderr, flush=True)


def _row(each: Repeated) -> list[str]:
    return [
        each.stressed.name,
        "usual" if each.chaos is None else f"chaos {each.chaos}",
        f"{each.figures.events:,}" if each.figures else "-",
        with_unit(each.figures.log_stored) if each.figures else "-",
        f"{each.equal} of {each.replays}",
    ]


def _race_row(each: Raced) -> list[str]:
    return [
        each.name,
        f"{each.equal} of {each.seeds}",
        f"{len(each.found)} of {each.seeds}",
        str(each.found[0]) if each.found else "-",
    ]


def _as_json(repeated: Sequence[Repeated], raced: Sequence[Raced]) -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "repeated": [
            {
                "name": each.stressed.name,
                "chaos": each.chaos,
                "replays": each.replays,
                "equal": each.equal,
                "figures": asdict(each.figures) if each.figures else None,
                "failure": each.failure,
            }
            for each in repeated
        ],
        "races": [
            {"name": each.name, "seeds": each.seeds, "equal": each.equal, "found": each.found, "failure": each.failure}
            for each in raced
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
