"""Recordings of single tests: their metadata, and where in them the test failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from replaydbg.classes import dataclass
from replaydbg.debugger.first_pass.run_index import Index
from replaydbg.debugger.session_results import Moment, Raised
from replaydbg.log.reader import Recording

_MOST_LOOKS = 50
"""The most exceptions that are checked, from the last one back: each costs a seek."""


@dataclass(frozen=True, slots=True)
class TestFailure:
    """The exception that a test failed with."""

    __test__ = False

    type: str
    """Its type's name."""
    file: str
    """Where it was raised."""
    line: int
    """Where it was raised."""
    own_file: str
    """Where in the test's own file it came from, or as `file`."""
    own_line: int
    """The line there."""
    event: int
    """How many events there were when the test had failed."""


@dataclass(frozen=True, slots=True)
class Named:
    """A place in a test that has a name."""

    name: str
    """Without `@`."""
    event: int
    """How many events there were before it."""
    is_called: bool
    """Whether the test named it, by a call that a replay comes to again."""


@dataclass(frozen=True, slots=True)
class Test:
    """The test that a recording is of."""

    __test__ = False

    nodeid: str
    """As pytest names it."""
    outcome: str
    """`failed`, `passed`, `skipped`, `interrupted` or `crashed`."""
    failure: TestFailure | None
    """The exception that it failed with, if it did."""
    marks: tuple[Named, ...]
    """Named places, in order."""

    def marks_in(self, index: Index) -> dict[str, int]:
        """Return the counts of lines behind the last events before the named places; of one name, the last one."""
        return {each.name: index.count(Moment(min(each.event, index.events), 1)) for each in self.marks}


def test_of(recording: Recording) -> Test | None:
    """Return the test that a recording is of; None: it is not of a test."""
    return test_in(recording.end.raw if recording.end is not None else {})


def test_in(raw: Mapping[str, Any]) -> Test | None:
    """Return the test in the end of a recording; None: there is none."""
    test = raw.get("test")
    if not isinstance(test, dict):
        return None
    try:
        read = test.get("failure")
        failure = (
            TestFailure(
                str(read["type"]),
                str(read["file"]),
                int(read["line"]),
                str(read["own_file"]),
                int(read["own_line"]),
                int(read["event"]),
            )
            if read
            else None
        )
        marks = tuple(
            Named(str(each["name"]), int(each["event"]), bool(each.get("is_called"))) for each in raw.get("marks", ())
        )
        return Test(str(test["nodeid"]), str(test["outcome"]), failure, marks)
    except (TypeError, KeyError, ValueError, AttributeError):
        return None  # the field may hold anything; the recording is as good without it


test_of.__test__ = test_in.__test__ = False  # type: ignore[attr-defined]


def find_failure(
    test: Test,
    index: Index,
    stack_at: Callable[[int], Sequence[tuple[str, int]]],
    last_passage: Callable[[str, int, int], tuple[int, int]],
) -> Raised | None:
    """Return where the test's exception was raised, or passed through the test's own file on its way from elsewhere.

    `stack_at` returns file and line of each frame at a count, `last_passage` the last count of a line up to another
    count, and its thread; 0: there is none.
    """
    failure = test.failure
    if failure is None or not failure.file:
        return None
    last = index.count(Moment(min(failure.event + 1, index.events), 1))
    name = failure.type.rpartition(".")[2]
    raised = [each for each in index.raised if each.count <= last and each.type.rpartition(".")[2] == name]
    # C code may have passed it on, which has no lines: then the nearest line in the test's own file counts.
    places = ((failure.file, failure.line), (failure.own_file, failure.own_line))
    found = next((each for each in reversed(raised) if (each.file, each.line) in places), None)
    if found is not None or not name:
        return found
    for each in raised[: -_MOST_LOOKS - 1 : -1]:
        if places[1] in stack_at(each.count):
            return each
    # No such exception is known: at least the line that failed is.
    count, lane = last_passage(*places[1], last)
    return Raised(count, lane, name, "", file=failure.own_file, line=failure.own_line) if count else None
