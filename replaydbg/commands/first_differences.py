"""The first differences between two recordings of one program: in control flow, in inputs and in values."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from replaydbg.bisect.lane_turns import LaneKey
from replaydbg.bisect.twins import Input, InputKind, compare
from replaydbg.debugger.compare.value_courses import (
    Course,
    OtherValues,
    other_values,
    other_way,
    read_course,
)
from replaydbg.debugger.session import Session
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.hunt.mixture import mixture
from replaydbg.hunt.reading import Twins, open_twins
from replaydbg.log.edit.mix import Mixer
from replaydbg.render.first_differences_text import FirstDifferences, input_text

_CLOCKS = ("time.", "_datetime.", "posix.times", "resource.getrusage", "libc.clock_", "libc.gettimeofday")
_NUMBERS = ("posix.getpid", "posix.getppid", "_thread.get_native_id")
"""Calls that return process or thread IDs, which differ in each run as the time does."""


def first_differences(
    one: Path, two: Path, *, progress: Callable[[WorkProgress], None] | None = None
) -> FirstDifferences:
    """Compare two recordings of one program. Raises NotComparable, and what opening a session does.

    Values are compared with the clock readings and process numbers of `two` in `one`: so those that follow from them
    alone are equal.
    """
    with ExitStack() as stack:
        twins = stack.enter_context(open_twins(one, two))
        inputs = compare(twins.good_side, twins.bad_side).inputs
        clocks = [each for each in inputs if is_incidental(each)]
        sessions = (_session(stack, one, progress), _session(stack, two, progress))
        courses = (_course(sessions[0], twins.good_side.lanes), _course(sessions[1], twins.bad_side.lanes))
        way = other_way(sessions, courses)
        notes: list[str] = []
        values = _values(stack, twins, sessions, courses, clocks, notes, progress)
        if any(each.is_cut for each in courses):
            notes.append("Only the first 4,194,304 lines of your own code are compared.")
        began = tuple(session.index.moment(session.first_own).event for session in sessions)
        start = tuple(input_text(twins, each) for each in inputs if each.kind is not InputKind.ANSWER)
        others = [each for each in inputs if each.kind is InputKind.ANSWER and not is_incidental(each)]
        other, clock = _first(others, began), _first(clocks, began)
        texts = input_text(twins, other), input_text(twins, clock)
        return FirstDifferences(way, start, other, texts[0], clock, texts[1], values, tuple(notes))


def is_incidental(each: Input) -> bool:
    """Whether an input is the reading of a clock, or the number of a process or thread: no two runs have the same."""
    return each.kind is InputKind.ANSWER and (each.gate.startswith(_CLOCKS) or each.gate in _NUMBERS)


def _session(stack: ExitStack, path: Path, progress: Callable[[WorkProgress], None] | None) -> Session:
    return stack.enter_context(Session(path, progress=progress, course=True))


def _course(session: Session, lanes: dict[int, LaneKey]) -> Course:
    return read_course(session, lanes)


def _first(inputs: list[Input], began: tuple[int, ...]) -> Input | None:
    """Return the first one that the program's own code can have met, or else the first of all."""
    own = [each for each in inputs if each.good_event > began[0] and each.bad_event > began[1]]
    return next(iter([*own, *inputs]), None)


def _values(
    stack: ExitStack,
    twins: Twins,
    sessions: tuple[Session, Session],
    courses: tuple[Course, Course],
    clocks: list[Input],
    notes: list[str],
    progress: Callable[[WorkProgress], None] | None,
) -> OtherValues | None:
    """Return the first other values, where the first run has the clock readings of the second."""
    found = other_values(sessions, courses)
    if found is None or not clocks:
        return found
    place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="replaydbg-clocks-")))
    mixed = place / "same-clock.rdbg-live"
    Mixer(twins.good, twins.bad, place).write(mixed, mixture(clocks, is_bad_base=False))
    same = _session(stack, mixed, progress)
    both = same, sessions[1]
    course = _course(same, twins.good_side.lanes)
    notes.append("The first run is compared with the clock readings and process IDs of the second.")
    if other_way((sessions[0], same), (courses[0], course)) is not None:
        notes.append("With these, the first run takes a different path or ends early; values are compared up to there.")
    return other_values(both, (course, courses[1]))
