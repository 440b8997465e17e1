"""Reads the result of each test case from what `python -m test -v --junit-xml` leaves behind."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Outcome(Enum):
    """How a test case ended."""

    OK = "ok"
    FAIL = "FAIL"
    ERROR = "ERROR"
    SKIPPED = "skipped"
    EXPECTED_FAILURE = "expected failure"
    UNEXPECTED_SUCCESS = "unexpected success"
    # It was run in one of the two runs only.
    ABSENT = "not run"


@dataclass(frozen=True, slots=True)
class Difference:
    """A test case that ended differently."""

    test: str
    plain: Outcome
    recorded: Outcome


# A header of the summary that unittest prints for each failure: `FAIL: test_x (test.test_m.C.test_x) (i=1)`. It is
# read because the XML has no name for a test with a failing subtest, and nothing for a failing setUpClass.
_HEADER = re.compile(r"^={70}\n(?P<outcome>FAIL|ERROR|UNEXPECTED SUCCESS): (?P<title>.+)$", re.MULTILINE)
_TITLE = re.compile(r"^(?P<method>\w+) \((?P<test>[\w.<>]+)\)")
# `test_x (test.test_m.C.test_x)` or, before 3.11.4, `test_x (test.test_m.C)`
_STARTED = re.compile(r"^(?P<method>test\w*) \((?P<test>[\w.<>]+)\)", re.MULTILINE)


def read_outcomes(junit: Path, output: str) -> dict[str, Outcome]:
    """The outcome of each test id; without the XML file (the run died) those that the output still shows as failed."""
    outcomes: dict[str, Outcome] = {}
    if junit.exists() and junit.stat().st_size:
        for case in ElementTree.parse(junit).iter("testcase"):
            name = case.get("name")
            if name is not None:
                outcomes[_unused_name(_without_addresses(name), outcomes)] = _outcome(case)
    for match in _HEADER.finditer(output):
        outcomes[_test_id(match["title"])] = Outcome(
            match["outcome"].replace("UNEXPECTED SUCCESS", "unexpected success")
        )
    return outcomes


def _outcome(case: ElementTree.Element) -> Outcome:
    if case.find("error") is not None:
        return Outcome.ERROR
    if case.find("failure") is not None:
        return Outcome.FAIL
    if case.find("skipped") is not None:
        return Outcome.SKIPPED
    if case.find("output") is not None:
        return Outcome.EXPECTED_FAILURE
    if case.find("outcome") is not None:
        return Outcome.UNEXPECTED_SUCCESS
    return Outcome.OK


def _test_id(title: str) -> str:
    match = _TITLE.match(title)
    if match is None:
        return title
    test = match["test"]
    # setUpClass and setUpModule stand before a class or a module; a test's id ends with its method.
    return test if test.endswith("." + match["method"]) else f"{test}.{match['method']}"


def _unused_name(name: str, outcomes: Mapping[str, Outcome]) -> str:
    """Some modules run the same test id several times, such as test_datetime for its C and Python halves."""
    number, unused = 1, name
    while unused in outcomes:
        number += 1
        unused = f"{name} #{number}"
    return unused


def _without_addresses(name: str) -> str:
    return re.sub(r"\b0x[0-9a-f]+\b", "0x", name)


def last_started(output: str) -> str | None:
    """The test that ran when the output ended, for runs that died."""
    started = [_test_id(match.group()) for match in _STARTED.finditer(output)]
    return started[-1] if started else None


def differences(plain: Mapping[str, Outcome], recorded: Mapping[str, Outcome]) -> list[Difference]:
    """The test cases whose outcome is not the same, by name."""
    return [
        Difference(test, plain.get(test, Outcome.ABSENT), recorded.get(test, Outcome.ABSENT))
        for test in sorted(plain.keys() | recorded.keys())
        if plain.get(test) is not recorded.get(test)
    ]
