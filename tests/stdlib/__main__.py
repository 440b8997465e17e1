"""`python -m tests.stdlib`: CPython's own tests give the same results recorded as plain, test by test."""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text
from tests.stdlib.exceptions import Allowed, allowing, read_exceptions
from tests.stdlib.modules import modules_of
from tests.stdlib.outcomes import Difference, Outcome, differences
from tests.stdlib.run import BEGINNING_EQUAL, EQUAL, ModuleRun, Pass, Passes, run_module


def main(argv: Sequence[str] | None = None) -> int:
    """0: no difference without a reason; 1: there is one, a run died, or (with --replay) a replay is not equal."""
    options = _parser().parse_args(argv)
    restore_signals()
    passes = Passes.PLAIN if options.plain else Passes.REPLAYED if options.replay else Passes.RECORDED
    python = _version_of(options.python)
    exceptions = read_exceptions()
    runs = []
    for module in options.modules or modules_of(python):
        print(f"running {module} ...", file=sys.stderr, flush=True)
        runs.append(run_module(module, python=options.python, passes=passes, keep=options.keep, ignored=options.ignore))
        _print_details(runs[-1], python, exceptions)
    print(f"\nPython {python}\n" + _table(runs, python, exceptions))
    if not options.modules and passes is not Passes.PLAIN:
        _print_unused(runs, python, exceptions)
    if options.json is not None:
        options.json.write_text(json.dumps([_as_json(each) for each in runs], indent=2) + "\n")
    return int(any(_is_bad(each, python, exceptions) for each in runs))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.stdlib", description=__doc__)
    parser.add_argument("modules", metavar="test_x", nargs="*", help="default: those in tests/stdlib/modules.py")
    parser.add_argument("--python", metavar="EXE", default=sys.executable, help="an interpreter that has replaydbg")
    parser.add_argument("--replay", action="store_true", help="replay each recording too and compare its output")
    parser.add_argument(
        "--ignore",
        metavar="PATTERN",
        action="append",
        default=[],
        help="leave these tests out, such as those that start threads: at the first thread a recording ends",
    )
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep recordings and outputs there")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the outcome of every test there")
    parser.add_argument("--plain", action="store_true", help="run the tests plain alone, to check this harness")
    return parser


def _version_of(python: str) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _differences(run: ModuleRun) -> list[Difference]:
    return differences(run.plain.outcomes, run.recorded.outcomes) if run.recorded else []


def _unexplained(run: ModuleRun, python: str, exceptions: Sequence[Allowed]) -> list[Difference]:
    return [each for each in _differences(run) if allowing(each.test, python, exceptions) is None]


def _is_bad(run: ModuleRun, python: str, exceptions: Sequence[Allowed]) -> bool:
    troubles = [run.plain.trouble, run.recorded and run.recorded.trouble]
    return bool(
        any(troubles) or _unexplained(run, python, exceptions) or run.replay not in (None, EQUAL, BEGINNING_EQUAL)
    )


def _print_details(run: ModuleRun, python: str, exceptions: Sequence[Allowed]) -> None:
    for name, each in (("plain", run.plain), ("recorded", run.recorded)):
        if each is not None and each.trouble:
            print(f"{run.module}: the {name} run has no results: {each.trouble}")
    if run.recorded and not run.recorded.outcomes:
        # Every test would be listed as not run.
        return
    for found in _differences(run):
        allowed = allowing(found.test, python, exceptions)
        reason = f" (allowed: {allowed.reason})" if allowed else ""
        print(f"{found.test}: plain {found.plain.value}, recorded {found.recorded.value}{reason}")
    sys.stdout.flush()


def _table(runs: Sequence[ModuleRun], python: str, exceptions: Sequence[Allowed]) -> str:
    heading = [
        "module",
        "plain",
        "recorded",
        "differ",
        "allowed",
        "plain s",
        "recorded s",
        "events",
        "replay",
        "result",
    ]
    return as_text(heading, [_row(run, python, exceptions) for run in runs])


def _row(run: ModuleRun, python: str, exceptions: Sequence[Allowed]) -> list[str]:
    different = len(_differences(run))
    return [
        run.module,
        _counted(run.plain),
        _counted(run.recorded) if run.recorded else "-",
        str(different),
        str(different - len(_unexplained(run, python, exceptions))),
        f"{run.plain.finished.wall:.1f}",
        f"{run.recorded.finished.wall:.1f}" if run.recorded else "-",
        f"{run.figures.events:,}" if run.figures else "-",
        run.replay or "-",
        "BAD" if _is_bad(run, python, exceptions) else "good",
    ]


def _counted(run: Pass) -> str:
    counts = Counter(run.outcomes.values())
    return ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome]) or "no results"


def _print_unused(runs: Iterable[ModuleRun], python: str, exceptions: Sequence[Allowed]) -> None:
    used = {allowing(each.test, python, exceptions) for run in runs for each in _differences(run)}
    for allowed in exceptions:
        if allowed not in used and (not allowed.pythons or python in allowed.pythons):
            print(f"exceptions.toml: {allowed.test!r} allows nothing on {python}: {allowed.reason}")


def _as_json(run: ModuleRun) -> dict[str, Any]:
    recorded = run.recorded
    return {
        "module": run.module,
        "plain": {test: outcome.value for test, outcome in run.plain.outcomes.items()},
        "recorded": {test: outcome.value for test, outcome in recorded.outcomes.items()} if recorded else None,
        "trouble": {"plain": run.plain.trouble, "recorded": recorded.trouble if recorded else None},
        "replay": run.replay,
        "events": run.figures.events if run.figures else None,
        "seconds": {"plain": run.plain.finished.wall, "recorded": recorded.finished.wall if recorded else None},
    }


if __name__ == "__main__":
    sys.exit(main())
