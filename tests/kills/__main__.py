"""`python -m tests.kills`: processes of recorded groups are killed at random times; what is left opens and replays."""

import argparse
import platform
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text
from tests.kills.rounds import VICTIMS, Round, WrongRound, one_round


def main(argv: Sequence[str] | None = None) -> int:
    """0: every recording opens and replays up to its last event; 1: one does not."""
    options = _parser().parse_args(argv)
    restore_signals()
    seed = options.seed if options.seed is not None else random.randrange(1 << 24)
    print(f"seed {seed}", flush=True)
    orders = [(seed + number, VICTIMS[number % len(VICTIMS)]) for number in range(options.rounds)]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda order: _played(order[0], order[1], options.keep), orders))
    print(f"Python {platform.python_version()}")
    print(as_text(_HEADING, [_row(victim, results) for victim in (*VICTIMS, "all")]))
    for problem, count in Counter(problem for each in results if each for problem in each.problems).items():
        print(f"{count} times: {problem}")
    return int(None in results)


def _played(seed: int, victim: str, keep: Path) -> Round | None:
    base = Path(tempfile.mkdtemp(prefix=f"replaydbg-kill-{seed}-")).resolve()
    try:
        return one_round(seed, victim, base)
    except WrongRound as wrong:
        kept = keep / str(seed)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(base, kept, ignore=shutil.ignore_patterns("wake"))
        print(f"seed {seed}, {victim} killed: {wrong}; kept in {kept}\n", file=sys.stderr, flush=True)
        return None
    finally:
        shutil.rmtree(base, ignore_errors=True)


_HEADING = ("killed", "rounds", "right", "processes", "recorded", "replayed", "sealed", "events")


def _row(victim: str, results: Sequence[Round | None]) -> list[str]:
    """Return the sums of the rounds of one kind. A wrong round counts nowhere but in the number of rounds."""
    numbers = [index for index in range(len(results)) if victim in (VICTIMS[index % len(VICTIMS)], "all")]
    right = [each for index in numbers if (each := results[index]) is not None]
    sums = [
        sum(getattr(each, name) for each in right) for name in ("processes", "recorded", "replayed", "sealed", "events")
    ]
    return [victim, str(len(numbers)), str(len(right)), *(f"{each:,}" for each in sums)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--rounds", metavar="N", type=int, default=300, help="default: %(default)s")
    parser.add_argument("--seed", metavar="N", type=int, help="of the first round (default: random)")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="rounds at once (default: %(default)s)")
    parser.add_argument("--keep", metavar="DIR", type=Path, default=Path("test-results/kills"), help="for failures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
