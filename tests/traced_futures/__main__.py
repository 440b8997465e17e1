"""`python -m tests.traced_futures`: futures of every fixture under strace; none of them reaches the outside."""

import argparse
import json
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.harness.replay_cases import FIXTURES, Case, cases_of
from tests.harness.replays import Scene
from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text
from tests.traced_futures.acts import acts_of_futures, strace

TIMEOUT = 120.0
COUNT = 4


@dataclass(frozen=True, slots=True)
class Traced:
    """A fixture."""

    area: str
    name: str
    # How many futures were seen, and their verdicts.
    futures: int
    verdicts: Counter[str]
    # Why there were none; empty: there were.
    none: str
    # What they did outside.
    acts: tuple[str, ...]


def main(argv: Sequence[str] | None = None) -> int:
    """0: no future did anything outside; 1: one did."""
    options = _parser().parse_args(argv)
    restore_signals()
    programs = [
        program
        for program in sorted(FIXTURES.rglob("*.py"))
        if not program.name.startswith("_") and program.relative_to(FIXTURES).parts[0] not in ("programs", "pytest")
    ]
    found = [(program, next(iter(cases_of(program)), None)) for program in programs if _is_wanted(program, options)]
    with ThreadPoolExecutor(options.jobs) as pool:
        traced = list(pool.map(_trace, [case for _, case in found if case is not None]))
    _show(traced)
    return int(any(each.acts for each in traced))


def _is_wanted(program: object, options: argparse.Namespace) -> bool:
    return not options.only or any(word in str(program) for word in options.only)


def _trace(case: Case) -> Traced:
    scene = Scene.make(case.program, args=case.args, stdin=case.stdin, flags=case.flags, env=case.env, how=case.how)
    area, name = case.program.parent.name, case.program.stem
    try:
        scene.record()
        command = [sys.executable, "-m", "replaydbg", "futures", str(scene.recording), "-n", str(COUNT), "--json"]
        finished = subprocess.run(
            strace([*command, "--timeout", "5", "-o", str(scene.base / "kept")], scene.base / "trace"),
            cwd=scene.base,
            env=scene._env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
        replays, copies, acts = acts_of_futures(scene.base / "trace")
        if finished.returncode not in (0, 1, 3):
            return Traced(area, name, copies, Counter(), finished.stderr.decode()[-300:].strip() or "?", tuple(acts))
        groups = json.loads(finished.stdout)["groups"]
        verdicts = Counter({verdict: 0 for verdict in ("passed", "failed", "inconclusive")})
        for group in groups:
            verdicts[group["verdict"]] += group["count"]
        assert replays and copies >= sum(verdicts.values()), (replays, copies, verdicts)
        return Traced(area, name, copies, verdicts, "", tuple(acts))
    except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
        return Traced(area, name, 0, Counter(), f"{type(error).__name__}: {str(error)[:300]}", ())
    finally:
        scene.remove()


def _show(traced: Sequence[Traced]) -> None:
    print(f"Python {platform.python_version()}")
    rows = []
    for area in [*sorted({each.area for each in traced}), "all"]:
        some = [each for each in traced if area in (each.area, "all")]
        verdicts = sum((each.verdicts for each in some), Counter[str]())
        counts = [str(verdicts[verdict]) for verdict in ("passed", "failed", "inconclusive")]
        with_some = [each for each in some if not each.none]
        acts = sum(len(each.acts) for each in some)
        rows.append([area, f"{len(with_some)} of {len(some)}", str(sum(verdicts.values())), *counts, str(acts)])
    head = ["area", "programs with futures", "futures", "passed", "failed", "inconclusive", "acts outside"]
    print(as_text(head, rows))
    for each in traced:
        for act in each.acts[:3]:
            print(f"{each.area}/{each.name}: {act[:200]}")
    for reason, count in Counter(each.none.partition("\n")[0][-120:] for each in traced if each.none).most_common(30):
        print(f"{count} without futures: {reason}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.traced_futures", description=__doc__)
    parser.add_argument("--only", metavar="WORD", action="append", help="fixtures whose paths have it; can be repeated")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="programs at once (default: 2)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
