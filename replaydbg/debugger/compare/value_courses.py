"""Comparison of two runs line by line: the first line at which a thread took another path or had another value.

A course is what the first pass over a recording writes down (`course.c`): the program's own lines, thread by thread,
with digests of the variables that each can see. Digests depend on no address.
"""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import ne

from replaydbg.debugger.object_history import CodePlace
from replaydbg.debugger.session import Session
from replaydbg.debugger.session_results import Moment, Variable, are_other_values
from replaydbg.errors import ForgedMessage

MOST_RECORDS = 4 << 20
"""The most lines of a course; later ones are missing. The core has the same number."""

_WORDS = 3
"""Of a record: the count of lines, the digest, and the place with the thread above it."""


@dataclass(frozen=True, slots=True)
class ThreadCourse:
    """The program's own lines that one thread ran, in order."""

    counts: array[int]
    """The counts of lines of the run at which they did."""
    places: array[int]
    """The places of the lines."""
    values: array[int]
    """Digests of the variables before each of them."""


@dataclass(frozen=True, slots=True)
class Course:
    """A run's own lines."""

    lanes: Mapping[Hashable, ThreadCourse]
    """By thread: its key, which is the same in every run of the program."""
    is_cut: bool
    """Whether the run has more lines than a course has room for."""


@dataclass(frozen=True, slots=True)
class Step:
    """A line of one of the two runs."""

    moment: Moment
    """Before it."""
    place: CodePlace
    """The line."""
    source: str
    """Its text."""


@dataclass(frozen=True, slots=True)
class OtherWay:
    """The first line at which a thread of the two runs took another path."""

    lane: Hashable
    """The thread."""
    after: tuple[Step, Step] | None
    """The last line that it ran in both; None: it ran none."""
    next: tuple[Step | None, Step | None]
    """The line that it ran then, in each; None: none of the program's own."""

    @property
    def moments(self) -> tuple[Moment | None, Moment | None]:
        """The moment to inspect, in each run."""
        if self.after is not None:
            return self.after[0].moment, self.after[1].moment
        one, two = self.next
        return one.moment if one is not None else None, two.moment if two is not None else None


@dataclass(frozen=True, slots=True)
class OtherValues:
    """The first line before which a thread of the two runs had other values."""

    lane: Hashable
    """The thread."""
    at: tuple[Step, Step]
    """The line before which they are seen."""
    after: tuple[Step, Step] | None
    """The line that the thread ran before; None: there is none."""
    names: tuple[tuple[str, str, str], ...]
    """Variables and what they are in each run; empty of one: it has none there."""

    @property
    def moments(self) -> tuple[Moment, Moment]:
        """The moment to inspect, in each run."""
        return self.at[0].moment, self.at[1].moment


def read_course(session: Session, lanes: Mapping[int, Hashable]) -> Course:
    """Return the course of a session that was opened with `course=True`; `lanes` has the key of each thread.

    Raises ForgedMessage.
    """
    data = session.travel.engine.read_course()
    if len(data) % (8 * _WORDS) or sys.byteorder != "little":
        raise ForgedMessage("it wrote a malformed course")
    words = array("Q", data)
    counts = words[0::_WORDS]
    if counts and not 0 < min(counts) <= max(counts) <= session.index.total:
        raise ForgedMessage("it wrote a course with lines that the run does not have")
    found: dict[int, ThreadCourse] = {}
    for count_, digest, end in zip(counts, words[1::_WORDS], words[2::_WORDS], strict=True):
        number = end >> 32
        lines = found.get(number)
        if lines is None:
            lines = found[number] = ThreadCourse(array("Q"), array("Q"), array("Q"))
        lines.counts.append(count_)
        lines.places.append(end & 0xFFFFFFFF)
        lines.values.append(digest)
    named = {lanes.get(number, ("?", number)): lines for number, lines in found.items()}
    return Course(named, len(counts) >= MOST_RECORDS)


def _first_unequal(one: Sequence[int], two: Sequence[int]) -> int:
    """Return the first place at which the two differ; the shorter one's length if it begins the other one."""
    return next(compress(count(), map(ne, one, two)), min(len(one), len(two)))


def other_way(sessions: tuple[Session, Session], courses: tuple[Course, Course]) -> OtherWay | None:
    """Return the first line at which a thread took another path; None: all took the same."""
    one, two = courses
    found: list[tuple[int, Hashable, int]] = []
    nothing = ThreadCourse(array("Q"), array("Q"), array("Q"))
    for lane in {**one.lanes, **two.lanes}:
        left, right = one.lanes.get(lane, nothing), two.lanes.get(lane, nothing)
        at = _first_unequal(left.places, right.places)
        if at < max(len(left.places), len(right.places)) and not _is_cut_at(at, (left, right), courses):
            line = right.counts[min(at, len(right.counts) - 1)] if right.counts else sessions[1].index.total
            found.append((line, lane, at))
    if not found:
        return None
    _, lane, at = min(found, key=lambda each: each[0])
    lines = one.lanes.get(lane, nothing), two.lanes.get(lane, nothing)
    after = _steps(sessions, lines, at - 1) if at else None
    ways = [
        _step(session, each.counts[at]) if at < len(each.counts) else None
        for session, each in zip(sessions, lines, strict=True)
    ]
    return OtherWay(lane, after, (ways[0], ways[1]))


def _is_cut_at(at: int, lines: tuple[ThreadCourse, ThreadCourse], courses: tuple[Course, Course]) -> bool:
    """Whether one of the two ends there because its course is full."""
    return any(at >= len(each.places) and course.is_cut for each, course in zip(lines, courses, strict=True))


def other_values(sessions: tuple[Session, Session], courses: tuple[Course, Course]) -> OtherValues | None:
    """Return the first line before which a thread had other values, as long as it takes the same way.

    Differences for which no variable can be named are passed over: what is seen then is inside of what cannot be shown.
    """
    one, two = courses
    found: dict[Hashable, list[int]] = defaultdict(list)
    for lane in one.lanes.keys() & two.lanes.keys():
        left, right = one.lanes[lane], two.lanes[lane]
        same_way = _first_unequal(left.places, right.places)
        at = _first_unequal(left.values[:same_way], right.values[:same_way])
        if at < same_way:
            found[lane].append(at)
    order = sorted((two.lanes[lane].counts[at], lane, at) for lane, ats in found.items() for at in ats) if found else []
    for _, lane, at in order:
        lines = one.lanes[lane], two.lanes[lane]
        steps = _steps(sessions, lines, at)
        names = _names(sessions, (lines[0].counts[at], lines[1].counts[at]))
        if names:
            return OtherValues(lane, steps, _steps(sessions, lines, at - 1) if at else None, names)
    return None


def _steps(sessions: tuple[Session, Session], lines: tuple[ThreadCourse, ThreadCourse], at: int) -> tuple[Step, Step]:
    return _step(sessions[0], lines[0].counts[at]), _step(sessions[1], lines[1].counts[at])


def _step(session: Session, line: int) -> Step:
    top = session.look_at(line).stack[0]
    return Step(
        session.index.moment(line), CodePlace(top.file, top.line, top.function), session.source_line(top.file, top.line)
    )


def _names(sessions: tuple[Session, Session], lines: tuple[int, int]) -> tuple[tuple[str, str, str], ...]:
    """Return the variables that differ: those of the frame, then those of its module."""
    found: dict[str, tuple[str, str, str]] = {}
    for of_module in (False, True):
        left, right = (
            _variables(session, line, of_module=of_module) for session, line in zip(sessions, lines, strict=True)
        )
        for name in {**left, **right}:
            here, there = left.get(name), right.get(name)
            if is_other(here, there):
                texts = [each.text if each is not None else "" for each in (here, there)]
                found.setdefault(name, (name, texts[0], texts[1]))
    return tuple(found.values())


def _variables(session: Session, line: int, *, of_module: bool) -> dict[str, Variable]:
    session.seek(line)
    return {each.name: each for each in session.ask.variables(of_module=of_module) if not each.name.startswith("__")}


def is_other(one: Variable | None, two: Variable | None) -> bool:
    """Whether two variables of one name have other values, wherever those lie; not if one has no text."""
    if one is None or two is None:
        return one is not two
    if one.type == two.type and not (one.is_shown and two.is_shown):
        return False
    return one.type != two.type or are_other_values((one.text, one.digest), (two.text, two.digest))
