"""`python -m tests.valgrind`: record and replay fixtures under memcheck; no error may have the core in its stack."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.harness.replay_cases import FIXTURES, Case, cases_of
from tests.harness.replays import Scene
from tests.harness.surroundings import without_steering
from tests.valgrind.chosen import CHOSEN
from tests.valgrind.memcheck import Found, read_found, write_python

# Memcheck makes a program 20 to 50 times slower.
_TIMEOUT = 1800.0
# Errors of a run, and frames of an error.
_SHOWN = 15


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one case."""

    found: tuple[Found, ...]
    # How the replay differs from the recording, or the run that took too long; empty if there is no problem.
    trouble: str
    # Seconds.
    wall: float

    @property
    def ours(self) -> tuple[Found, ...]:
        """The errors in which the core is involved."""
        return tuple(each for each in self.found if each.is_ours)


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 for no error in the core and equal replays, 1 for findings, 2 if it cannot run here."""
    options = _parser().parse_args(argv)
    if shutil.which("valgrind") is None:
        print("valgrind is not installed (Debian, Ubuntu, Fedora: the package valgrind)", file=sys.stderr)
        return 2
    if sys.hexversion < 0x030C0000:
        # Its int.from_bytes computes with digits that were never set: every zero that it makes would be reported.
        print("needs Python 3.12 or newer, whose own code has no errors for memcheck", file=sys.stderr)
        return 2
    environment = without_steering(os.environ)
    os.environ.clear()
    os.environ.update(environment, PYTHONMALLOC="malloc")
    bad = other = count = 0
    for area, case in _wanted(options):
        result = _check(case)
        count += 1
        bad += bool(result.ours or result.trouble)
        other += len(result.found) - len(result.ours)
        print(f"{area}/{case.program.stem}: {_summary(result)} ({result.wall:.0f} s)", flush=True)
        _print_details(result)
    print(f"{count} runs, {bad} bad, {other} errors in which the core has no part")
    return int(bad > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.valgrind", description=__doc__)
    parser.add_argument("names", metavar="AREA[/FIXTURE]", nargs="*", help="default: those in tests/valgrind/chosen.py")
    parser.add_argument("--all", action="store_true", help="every fixture (an hour)")
    return parser


def _wanted(options: argparse.Namespace) -> Iterator[tuple[str, Case]]:
    for area in sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()):
        for program in sorted((FIXTURES / area).iterdir()):
            names = (area, f"{area}/{program.stem}")
            is_chosen = any(name in options.names for name in names)
            if not options.names:
                is_chosen = options.all or program.stem in CHOSEN.get(area, ())
            if is_chosen and not program.name.startswith(("_", ".")):
                # One kind of start is enough, except where the start is tested.
                yield from ((area, case) for case in list(cases_of(program))[: None if options.all else 1])


def _check(case: Case) -> Result:
    # Unrecorded it runs no code of ours, and nothing is quick.
    how = replace(case.how, is_steady=False, replay_within=None)
    scene = Scene.make(case.program, args=case.args, stdin=case.stdin, flags=case.flags, env=case.env, how=how)
    scene = replace(scene, python=str(write_python(scene.base / "valgrind")), timeout=_TIMEOUT)
    began, trouble = time.monotonic(), ""
    try:
        scene.check(case.status)
    except AssertionError as error:
        trouble = "" if case.fails else str(error)
    found = tuple(read_found(scene.base / "valgrind"))
    if not trouble:
        scene.remove()
    return Result(found, trouble, time.monotonic() - began)


def _summary(result: Result) -> str:
    if result.ours:
        return f"{len(result.ours)} ERRORS"
    return "DIFFERS" if result.trouble else "good"


def _print_details(result: Result) -> None:
    if result.trouble:
        print("  " + result.trouble.replace("\n", "\n  "))
    for each in result.ours[:_SHOWN]:
        print(f"  {each.kind}: {each.what}")
        print("".join(f"    {frame}\n" for frame in each.stack[:_SHOWN]), end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())
