"""Which tests run in the second stage: `python -m tests.harness.stages JUNIT.xml ...` writes the list anew from a run.

The first stage (`tox -e py`) keeps every mechanism: the fastest case of each parametrized test, and a test of
each file. What repeats or takes long runs in the second (`tox -e long`).
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("long.txt")
SINGLE = 2.0
"""A test is long if it takes more than this, in means of all tests: machines differ in speed."""
REPEATED = 1.0
"""The same for a further case of a parametrized test."""


class _Test(NamedTuple):
    seconds: float
    node: str


def long_tests() -> frozenset[str]:
    """Return the node ids of the tests of the second stage, relative to the project's directory."""
    return frozenset(LIST.read_text(encoding="utf-8").splitlines())


def chosen(tests: list[_Test]) -> set[str]:
    """Return the node ids of those tests that belong to the second stage."""
    mean = sum(test.seconds for test in tests) / len(tests)
    functions: dict[str, list[_Test]] = defaultdict(list)
    files: dict[str, list[_Test]] = defaultdict(list)
    for test in tests:
        functions[test.node.partition("[")[0]].append(test)
        files[test.node.partition("::")[0]].append(test)
    found: set[str] = set()
    for cases in functions.values():
        first, *others = sorted(cases)
        found |= {test.node for test in others if test.seconds > REPEATED * mean}
        if first.seconds > SINGLE * mean * (2 if others else 1):
            found.add(first.node)
    for every in files.values():
        if all(test.node in found for test in every):
            found.discard(min(every).node)
    return found


def read(report: Path) -> list[_Test]:
    """Return the tests of a report of pytest's `--junitxml`."""
    tests = []
    for case in ElementTree.parse(report).iter("testcase"):
        if not case.get("classname") or case.find("skipped") is not None:
            continue
        parts = str(case.get("classname")).split(".")
        at = next(at for at, part in enumerate(parts) if part.startswith("test_")) + 1
        node = "::".join(["/".join(parts[:at]) + ".py", *parts[at:], str(case.get("name"))])
        tests.append(_Test(float(case.get("time") or 0), node))
    return tests


if __name__ == "__main__":
    every = [test for report in sys.argv[1:] for test in read(Path(report))]
    # Others are skipped on this machine or this Python: they stay where they are.
    slow = chosen(every) | (long_tests() - {test.node for test in every})
    LIST.write_text("\n".join(sorted(slow)) + "\n", encoding="utf-8")
    left = sum(test.seconds for test in every if test.node not in slow)
    print(f"{len(slow)} of {len(every)} tests; {left:.0f} of {sum(test.seconds for test in every):.0f} s stay")
