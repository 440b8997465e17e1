"""The first differences between two recordings as tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from replaydbg.bisect.twins import Input, InputKind
from replaydbg.debugger.compare.value_courses import (
    OtherValues,
    OtherWay,
    Step,
)
from replaydbg.debugger.session_results import Moment
from replaydbg.events.show import show_call, show_value
from replaydbg.hunt.reading import Twins
from replaydbg.render.tables import Table
from replaydbg.render.texts import moment_text, preemptions_text

_WIDTH = 60
MOST_NAMES = 5
"""Variables that are named."""


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
        is_same_start = all(name == InputKind.HASH_SEED.value for name, _, _ in self.start)
        return self.way is None and self.input is None and self.values is None and is_same_start


def input_text(twins: Twins, each: Input | None) -> tuple[str, str, str]:
    """Return an input and its value in each run; empty texts for None."""
    if each is None:
        return ("", "", "")
    one, two = (show_value(value, _WIDTH) for value in (each.good, each.bad))
    if each.kind is InputKind.SCHEDULE:
        return ("order of the threads", preemptions_text(each.good), preemptions_text(each.bad))
    if each.kind is not InputKind.ANSWER:
        return (f"{each.kind.value} {each.name}".strip(), one, two)
    event = twins.bad_side.events[each.bad_event - 1]
    place = f"{PurePath(event.site.file).name}:{event.site.line}" if event.site.file else event.site.function
    return (f"{show_call(event, _WIDTH)} at {place}", one, two)


# ---- as tables ----


def lane_text(lane: Hashable) -> str:
    """Return a thread as it is named in both runs."""
    return str(lane[-1][0]) if isinstance(lane, tuple) and lane and isinstance(lane[-1], tuple) else "the main thread"


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
