"""The first differences between two recordings of one program: in control flow, in inputs and in values."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from replaydbg.bisect.twins import Input, LaneKey, Told, compare
from replaydbg.debugger.compare.value_courses import (
    Course,
    OtherValues,
    OtherWay,
    Step,
    other_values,
    other_way,
    read_course,
)
from replaydbg.debugger.session import Session
from replaydbg.debugger.session_results import Moment, WorkProgress
from replaydbg.events.show import show_call, show_value
from replaydbg.hunt.mixture import mixture
from replaydbg.hunt.reading import Twins, open_twins
from replaydbg.log.edit.mix import Mixer
from replaydbg.render.tables import Table
from replaydbg.render.texts import moment_text

_WIDTH = 60
MOST_NAMES = 5
"""Variables that are named."""

_CLOCKS = ("time.", "_datetime.", "posix.times", "resource.getrusage")
_NUMBERS = ("posix.getpid", "posix.getppid", "_thread.get_native_id")
"""Calls that return process or thread IDs, which differ in each run as the time does."""


@dataclass(frozen=True, slots=True)
class FirstDifferences:
    """Each of the three, with what else is known."""

    way: OtherWay | None
    """Control flow: the first line at which a thread took another path."""
    start: tuple[tuple[str, str, str], ...]
    """Start conditions that differ: the name, and the value in each run."""
    input: Input | None
    """The first input after the start that is not incidental."""
    input_text: tuple[str, str, str]
    """That input and its value in each run, as text; empty if there is none."""
    clock: Input | None
    """The first incidental input: a clock reading, or the number of a process or thread."""
    clock_text: tuple[str, str, str]
    """The same of it."""
    values: OtherValues | None
    """The first line before which a thread had other values."""
    notes: tuple[str, ...]
    """Notes about the comparison and its limits."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing but incidental inputs and the seeds of string hashes differs."""
        is_same_start = all(name == Told.HASH_SEED.value for name, _, _ in self.start)
        return self.way is None and self.input is None and self.values is None and is_same_start


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
        start = tuple(_input_text(twins, each) for each in inputs if each.told is not Told.ANSWER)
        others = [each for each in inputs if each.told is Told.ANSWER and not is_incidental(each)]
        other, clock = _first(others, began), _first(clocks, began)
        texts = _input_text(twins, other), _input_text(twins, clock)
        return FirstDifferences(way, start, other, texts[0], clock, texts[1], values, tuple(notes))


def is_incidental(each: Input) -> bool:
    """Whether an input is the reading of a clock, or the number of a process or thread: no two runs have the same."""
    return each.told is Told.ANSWER and (each.gate.startswith(_CLOCKS) or each.gate in _NUMBERS)


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


def _input_text(twins: Twins, each: Input | None) -> tuple[str, str, str]:
    if each is None:
        return ("", "", "")
    one, two = (show_value(value, _WIDTH) for value in (each.good, each.bad))
    if each.told is Told.SCHEDULE:
        return ("order of the threads", f"{each.good} times preempted", f"{each.bad} times preempted")
    if each.told is not Told.ANSWER:
        return (f"{each.told.value} {each.name}".strip(), one, two)
    event = twins.bad_side.events[each.bad_event - 1]
    place = f"{PurePath(event.site.file).name}:{event.site.line}" if event.site.file else event.site.function
    return (f"{show_call(event, _WIDTH)} at {place}", one, two)


# ---- as tables ----


def lane_text(lane: Any) -> str:
    """Return a thread as it is named in both runs."""
    return str(lane[-1][0]) if lane and isinstance(lane[-1], tuple) else "the main thread"


def tables(found: FirstDifferences) -> Iterator[Table]:
    """Yield the three answers, each under its name."""
    yield _way_table(found.way)
    yield _input_table(found)
    yield _values_table(found)


def _at(step: Step | None) -> str:
    if step is None:
        return "runs no further line of your code"
    return f"{PurePath(step.place.file).name}:{step.place.line} {step.source}"


def _moments(moments: tuple[Moment | None, Moment | None]) -> str:
    texts = [moment_text(each) if each is not None else "-" for each in moments]
    return f"See `--at {texts[0]}` in the first recording and `--at {texts[1]}` in the second."


def _way_table(way: OtherWay | None) -> Table:
    title = "First difference in control flow"
    if way is None:
        return Table(title, (), (), notes=("None: every thread ran the same lines of your code.",))
    after = _at(way.after[1]) if way.after is not None else "its beginning"
    rows = ((lane_text(way.lane), after, _at(way.next[0]), _at(way.next[1])),)
    return Table(title, ("thread", "after", "first run", "second run"), rows, notes=(_moments(way.moments),))


def _input_table(found: FirstDifferences) -> Table:
    title = "First difference in inputs"
    notes = []
    if found.clock is not None:
        name, one, two = found.clock_text
        events = f"events {found.clock.good_event} and {found.clock.bad_event}"
        notes.append(f"First clock reading or process ID that differs: {name}: {one} and {two} ({events}).")
    rows = (*(() if found.input is None else (found.input_text,)), *found.start)
    if found.input is not None:
        moments = (
            f"`--at {found.input.good_event}` in the first recording and `--at {found.input.bad_event}` in the second"
        )
        notes.insert(0, f"See {moments}.")
    elif not rows:
        notes.insert(
            0,
            "Only clock readings and process IDs."
            if found.clock is not None
            else "None: both runs had the same inputs.",
        )
    return Table(title, ("input", "first run", "second run"), rows, notes=tuple(notes))


def _values_table(found: FirstDifferences) -> Table:
    title, values = "First difference in values", found.values
    limit = "Objects are compared by content, not by address; objects of C code mostly by type."
    notes = (*found.notes, limit)
    if values is None:
        same = "None, as long as the threads took the same path." if found.way is not None else "None."
        return Table(title, (), (), notes=(same, *notes))
    after = (
        f"{lane_text(values.lane)}, after {_at(values.after[1])}"
        if values.after is not None
        else lane_text(values.lane)
    )
    rows = tuple((name, one or "(not set)", two or "(not set)") for name, one, two in values.names[:MOST_NAMES])
    left = len(values.names) - len(rows)
    more = f"and {left:,} more variables" if left > 0 else ""
    return Table(
        title, ("variable", "first run", "second run"), rows, more=more, notes=(after, _moments(values.moments), *notes)
    )


def facts(found: FirstDifferences) -> dict[str, Any]:
    """Return it for programs."""
    return {
        "control_flow": _way_facts(found.way),
        "start": [{"input": name, "first": one, "second": two} for name, one, two in found.start],
        "input": _input_facts(found.input, found.input_text),
        "clock": _input_facts(found.clock, found.clock_text),
        "values": _values_facts(found.values),
        "notes": list(found.notes),
    }


def _step_facts(step: Step | None) -> dict[str, Any] | None:
    if step is None:
        return None
    place = step.place
    return {
        "moment": moment_text(step.moment),
        "file": place.file,
        "line": place.line,
        "function": place.function,
        "source": step.source,
    }


def _way_facts(way: OtherWay | None) -> dict[str, Any] | None:
    if way is None:
        return None
    after = [_step_facts(each) for each in way.after] if way.after is not None else None
    return {"thread": lane_text(way.lane), "after": after, "next": [_step_facts(each) for each in way.next]}


def _values_facts(values: OtherValues | None) -> dict[str, Any] | None:
    if values is None:
        return None
    after = [_step_facts(each) for each in values.after] if values.after is not None else None
    names = [{"name": name, "first": one, "second": two} for name, one, two in values.names]
    return {
        "thread": lane_text(values.lane),
        "at": [_step_facts(each) for each in values.at],
        "after": after,
        "variables": names,
    }


def _input_facts(each: Input | None, text: tuple[str, str, str]) -> dict[str, Any] | None:
    if each is None:
        return None
    return {"input": text[0], "first": text[1], "second": text[2], "events": [each.good_event, each.bad_event]}
