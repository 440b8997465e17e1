"""`python -m tests.monkey`: random keys, sizes and mouse events for the terminal UI."""

from __future__ import annotations

import argparse
import platform
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text
from tests.monkey.recordings import RECORDINGS
from tests.monkey.visit import MonkeyFound, Visit, visit


def main(argv: Sequence[str] | None = None) -> int:
    """0: nothing was found; 1: something was."""
    options = _parser().parse_args(argv)
    restore_signals()
    seed = options.seed if options.seed is not None else random.randrange(1 << 24)
    names = options.only or list(RECORDINGS)
    print(f"seed {seed}, {options.seconds:g} s on {', '.join(names)}", flush=True)
    base = Path(tempfile.mkdtemp(prefix="replaydbg-monkey-")).resolve()
    done: list[Visit] = []
    findings = 0
    try:
        for name in names:
            folder = base / name
            folder.mkdir()
            words = RECORDINGS[name](folder)
            for number, seconds in _visits(options.seconds / len(names)):
                try:
                    done.append(visit(f"{seed} {name} {number}", name, words, seconds, folder))
                    print(_line(done[-1]), flush=True)
                except MonkeyFound as found:
                    findings += 1
                    kept = _keep(options.keep / f"{seed}-{name}-{number}", folder, str(found))
                    print(f"{name}, visit {number}: {found}\nkept in {kept}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(f"Python {platform.python_version()}")
    print(as_text(_HEADING, [_row(name, done) for name in names]))
    return int(findings > 0)


def _visits(seconds: float) -> Iterator[tuple[int, float]]:
    """Yield a number and the time that is left, until none is: a random key may end a visit."""
    until, number = time.monotonic() + seconds, 0
    while (left := until - time.monotonic()) > 0:
        number += 1
        yield number, left


_HEADING = ("recording", "visits", "actions", "looks", "slowest look", "resident memory", "open files")


def _row(name: str, done: Sequence[Visit]) -> list[str]:
    visits = [each for each in done if each.name == name]
    longest = max(visits, key=lambda each: each.looks, default=Visit(name, ()))
    slowest = max((each.longest for each in visits), default=0.0)
    sums = [len(visits), sum(each.actions for each in visits), sum(each.looks for each in visits)]
    return [name, *(f"{each:,}" for each in sums), f"{slowest:.1f} s", _memory(longest), _files(longest)]


def _memory(of: Visit) -> str:
    """Return the memory after the warm-up and at the end."""
    return f"{_third(of.resident) >> 20} -> {of.resident[-1] >> 20} MB" if of.resident else ""


def _files(of: Visit) -> str:
    return f"{_third(of.files)} -> {of.files[-1]}" if of.files else ""


def _third(samples: Sequence[int]) -> int:
    return samples[len(samples) // 3]


def _line(each: Visit) -> str:
    return f"{each.name}: {each.actions:,} actions, {each.looks:,} looks, {_memory(each)}, {_files(each)} files"


def _keep(to: Path, folder: Path, found: str) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("store"))
    (to / "finding.txt").write_text(found, encoding="utf-8")
    return to


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.monkey", description=__doc__)
    parser.add_argument("--seconds", metavar="N", type=float, default=3600.0, help="default: %(default)s")
    parser.add_argument("--seed", metavar="N", type=int, help="of all choices (default: random)")
    parser.add_argument("--only", metavar="NAME", action="append", choices=list(RECORDINGS), help="a recording")
    parser.add_argument("--keep", metavar="DIR", type=Path, default=Path("test-results/monkey"), help="for findings")
    return parser


if __name__ == "__main__":
    sys.exit(main())
