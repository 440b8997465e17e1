"""Which tests run in which stage: `python -m tests.harness.stages JUNIT.xml ...` writes the lists anew from all runs.

The first stage (`tox -e py`) has a test of each file, and of all tests the quick ones: mechanisms rather than
repetitions. The second one (`tox -e long`, also in CI) has a case of each other test, unless that takes too long.
Further cases of those run in the third (`tox -e exhaustive`), which is run before a release and where it concerns a
change.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

LONG = Path(__file__).with_name("long.txt")
"""The tests of the second stage."""
EXHAUSTIVE = Path(__file__).with_name("exhaustive.txt")
"""Those of the third."""
FIRST, SECOND = 0.045, 0.28
"""Share of the time of all tests that the first two stages may take: machines differ in speed."""
LONGEST = 8.0
"""Seconds that a test may take in the second stage."""
FURTHER = 3.0
"""How much less a further case of a parametrized test is worth than its first one."""


class Timed(NamedTuple):
    """A test of a report."""

    seconds: float
    node: str

    @property
    def file(self) -> str:
        """The path of its file."""
        return self.node.partition("::")[0]

    @property
    def function(self) -> str:
        """Its name without the case."""
        return self.node.partition("[")[0]


class Stages(NamedTuple):
    """The node ids of the tests outside the first stage, relative to the project's directory."""

    long: frozenset[str]
    exhaustive: frozenset[str]


def stages() -> Stages:
    """Return the lists as they are written."""
    return Stages(*(frozenset(each.read_text(encoding="utf-8").splitlines()) for each in (LONG, EXHAUSTIVE)))


def chosen(tests: list[Timed]) -> Stages:
    """Return the stages for tests with the times that they took."""
    total = sum(test.seconds for test in tests)
    firsts = _cheapest(tests, "function")
    order = sorted(tests, key=lambda test: test.seconds * (1 if test in firsts else FURTHER))
    first = _filled(order, _cheapest(tests, "file"), FIRST * total)
    rest = [test for test in order if test not in first]
    # Of a test with a quick case in the first stage, none has to be in the second.
    known = {test.function for test in first}
    wanted = {test for test in _cheapest(rest, "function") if test.function not in known and test.seconds <= LONGEST}
    second = _filled([test for test in rest if test.seconds <= LONGEST], wanted, SECOND * total)
    return Stages(frozenset(test.node for test in second), frozenset(test.node for test in rest if test not in second))


def _cheapest(tests: Iterable[Timed], of: str) -> set[Timed]:
    """Return the quickest test of each file, or of each function."""
    found: dict[str, Timed] = {}
    for test in tests:
        found[getattr(test, of)] = min(test, found.get(getattr(test, of), test))
    return set(found.values())


def _filled(order: Iterable[Timed], wanted: set[Timed], seconds: float) -> set[Timed]:
    """Return those wanted, and others in order for as long as the time lasts."""
    left = seconds - sum(test.seconds for test in wanted)
    found = set(wanted)
    for test in order:
        if test not in found and test.seconds <= left:
            found.add(test)
            left -= test.seconds
    return found


def read(report: Path) -> list[Timed]:
    """Return the tests of a report of pytest's `--junitxml`."""
    tests = []
    for case in ElementTree.parse(report).iter("testcase"):
        if not case.get("classname") or case.find("skipped") is not None:
            continue
        parts = str(case.get("classname")).split(".")
        at = next(at for at, part in enumerate(parts) if part.startswith("test_")) + 1
        node = "::".join(["/".join(parts[:at]) + ".py", *parts[at:], str(case.get("name"))])
        tests.append(Timed(float(case.get("time") or 0), node))
    return tests


def _write(reports: Iterable[Path]) -> None:
    every = [test for report in reports for test in read(report)]
    measured = {test.node for test in every}
    found, before = chosen(every), stages()
    for path, nodes, old in ((LONG, found.long, before.long), (EXHAUSTIVE, found.exhaustive, before.exhaustive)):
        # Others are skipped on this machine or this Python: they stay where they are.
        path.write_text("\n".join(sorted(nodes | (old - measured))) + "\n", encoding="utf-8")
    by_stage: defaultdict[str, list[float]] = defaultdict(list)
    for test in every:
        stage = "second" if test.node in found.long else "third" if test.node in found.exhaustive else "first"
        by_stage[stage].append(test.seconds)
    for stage, seconds in sorted(by_stage.items()):
        print(f"{stage}: {len(seconds)} tests, {sum(seconds):.0f} s")


if __name__ == "__main__":
    _write(map(Path, sys.argv[1:]))
