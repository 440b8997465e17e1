"""Compare two recordings of the same program: differences in its inputs, and differences in its behaviour."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from replaydbg.bisect.align import align, gaps, pairs
from replaydbg.bisect.lane_turns import LaneKey, LaneSwitch, Preemption
from replaydbg.events.records import Event, Site
from replaydbg.events.run_facts import Header
from replaydbg.events.values import ContentRef, Value

LEAST_NAME = 256
"""Smaller numbers are equal by chance in answers and arguments. Descriptors are recognised by their gates."""


class InputKind(enum.Enum):
    """The kind of an input that differs."""

    HASH_SEED = "hash seed"
    ENVIRONMENT = "environment variable"
    ARGUMENTS = "command line"
    DIRECTORY = "working directory"
    SCHEDULE = "thread switches"
    ANSWER = "answer"


class BehaviourKind(enum.Enum):
    """The kind of behaviour that differs."""

    ASKED = "asked for something else"
    WROTE = "wrote something else"
    ONLY_GOOD = "only in the good run"
    ONLY_BAD = "only in the bad run"


# eq=False: values need not be hashable, and equal answers at two events are two inputs.
@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """One input that differs between the two runs."""

    kind: InputKind
    """Its kind."""
    name: str
    """The name of an environment variable; empty for other kinds."""
    good: Value
    """The value in the good run; None for an environment variable: it was not set."""
    bad: Value
    """The value in the bad run."""
    good_event: int = 0
    """For an answer: the number of its event in the good run."""
    bad_event: int = 0
    """The same in the bad run."""
    gate: str = ""
    """The gate that returned the answer."""
    is_handle: bool = False
    """Whether it is only an identifier, as a process id or a descriptor is: exchanged, it no longer identifies
    anything.
    """
    is_elapsed: bool = False
    """For a clock: `good` is the bad run's first answer plus the time elapsed in the good run."""
    bad_elapsed: Value = None
    """The reverse: the good run's first answer plus the time elapsed in the bad run."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The first difference in behaviour."""

    kind: BehaviourKind
    """Its kind."""
    good_event: int
    """The event in the good run; if it has none, the last common one before it."""
    bad_event: int
    """The event in the bad run; likewise."""


@dataclass(frozen=True, slots=True)
class ReadRecording:
    """One of the two recordings, read into memory."""

    header: Header
    """How the program was started."""
    events: Sequence[Event]
    """Its events; the first one has the number 1."""
    lanes: dict[int, LaneKey]
    """The identity of each lane."""
    preemptions: tuple[Preemption, ...]
    """Where threads were preempted."""
    turns: tuple[LaneSwitch, ...]
    """The order in which threads took turns."""
    line_key: Callable[[Site], Hashable]
    """Identifies a place in the source across both recordings."""
    content: Callable[[ContentRef], bytes]
    """Returns content that is stored apart from the events."""
    openers: frozenset[str]
    """The gates that return descriptors."""
    afters: tuple[int, ...] = ()
    """For each of the turns the number of the last event before it."""


class Pair(NamedTuple):
    """Two corresponding events."""

    good: int
    """The event number in the good run."""
    bad: int
    """The event number in the bad run."""
    is_exact: bool
    """Whether the two requests are equal; if false, they only come from the same place."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The common parts and the differences of two runs."""

    pairs: tuple[Pair, ...]
    """The corresponding events, in the order of the bad run."""
    inputs: tuple[Input, ...]
    """The inputs that differ: first those fixed at the start, then the answers, in order."""
    first: Behaviour | None
    """The first difference in behaviour; None: there is none."""
    others: int
    """Number of events that differ in behaviour, including the first."""

    @property
    def first_answer(self) -> Input | None:
        """The first answer that differs."""
        return next((each for each in self.inputs if each.kind is InputKind.ANSWER), None)


def compare(good: ReadRecording, bad: ReadRecording) -> Comparison:
    """Compare two recordings of the same program."""
    together = sorted(_pairs(good, bad), key=lambda pair: pair.bad)
    answers: list[Input] = []
    others: list[Behaviour] = []
    names = _names(good) | _names(bad)
    for pair in together:
        one, two = good.events[pair.good - 1], bad.events[pair.bad - 1]
        if not pair.is_exact:
            others.append(Behaviour(BehaviourKind.ASKED, pair.good, pair.bad))
        elif one.digest != two.digest:
            others.append(Behaviour(BehaviourKind.WROTE, pair.good, pair.bad))
        # The number of bytes written is redundant.
        if one.digest is None and two.digest is None and not _is_same_answer(good, one, bad, two):
            is_handle = two.gate in bad.openers or _is_handle(one, two, names)
            values = _values_apart(one, two)
            answers.append(Input(InputKind.ANSWER, "", *values, pair.good, pair.bad, two.gate, is_handle))
    others += _lonely(together, len(good.events), len(bad.events))
    first = min(others, key=lambda each: (each.bad_event, each.kind is not BehaviourKind.ONLY_GOOD), default=None)
    return Comparison(tuple(together), (*_of_the_start(good, bad), *answers), first, len(others))


def elapsed(answers: Sequence[Input]) -> list[Input]:
    """Return a clock's answers shifted as if the good run had begun when the bad run did; none if not of a clock.

    The two runs may be hours apart: an answer of one among those of the other is a jump in time, where a few
    milliseconds more or less were meant.
    """
    if not answers or not answers[0].gate.startswith("time.") or not all(map(_is_time, answers)):
        return []
    first = answers[0]
    return [
        replace(
            each,
            good=first.bad + (each.good - first.good),
            is_elapsed=True,
            bad_elapsed=first.good + (each.bad - first.bad),
        )
        for each in answers
        if each.bad - first.bad != each.good - first.good
    ]


def _is_time(each: Input) -> bool:
    return type(each.good) is type(each.bad) and type(each.good) in (int, float)


# ---- matching events ----


def _pairs(good: ReadRecording, bad: ReadRecording) -> Iterator[Pair]:
    """Yield the corresponding events: thread by thread, equal requests first, then equal places."""
    ours, theirs = _by_lane(good), _by_lane(bad)
    for key in ours.keys() & theirs.keys():
        one, two = ours[key], theirs[key]
        exact = align([_question(good, each) for each in one], [_question(bad, each) for each in two])
        for old, new in pairs(exact):
            yield Pair(one[old].number, two[new].number, True)
        for here, there in gaps(exact, len(one), len(two)):
            if here and there:
                left, right = one[here.start : here.stop], two[there.start : there.stop]
                loose = align([_place(good, each) for each in left], [_place(bad, each) for each in right])
                for old, new in pairs(loose):
                    yield Pair(left[old].number, right[new].number, False)


def _by_lane(side: ReadRecording) -> dict[LaneKey, list[Event]]:
    found: dict[LaneKey, list[Event]] = defaultdict(list)
    for event in side.events:
        found[side.lanes.get(event.lane, ())].append(event)
    return found


def _place(side: ReadRecording, event: Event) -> Hashable:
    return event.site.gate, event.site.function, side.line_key(event.site)


def _question(side: ReadRecording, event: Event) -> Hashable:
    # repr: arguments may hold lists; and equal numbers of different types count as different requests.
    return _place(side, event), repr(event.arguments)


def _lonely(together: Sequence[Pair], good: int, bad: int) -> Iterator[Behaviour]:
    """Yield the events that only one of the two has."""
    to_bad = {pair.good: pair.bad for pair in together}
    to_good = {pair.bad: pair.good for pair in together}
    last = 0
    for number in range(1, bad + 1):
        if number not in to_good:
            yield Behaviour(BehaviourKind.ONLY_BAD, last, number)
        last = to_good.get(number, last)
    last = 0
    for number in range(1, good + 1):
        if number not in to_bad:
            yield Behaviour(BehaviourKind.ONLY_GOOD, number, last)
        last = to_bad.get(number, last)


# ---- differences ----


def _is_same_answer(good: ReadRecording, one: Event, bad: ReadRecording, two: Event) -> bool:
    return (
        one.raised == two.raised
        and _is_same(good, one.outcome, bad, two.outcome)
        and _is_same(good, one.filled, bad, two.filled)
    )


def _values_apart(one: Event, two: Event) -> tuple[Value, Value]:
    """Return the values that distinguish two answers: the content of a buffer shows more than its length."""
    is_filled = one.filled is not None and two.filled is not None and not one.raised and not two.raised
    return (one.filled, two.filled) if is_filled else (one.outcome, two.outcome)


def _is_same(good: ReadRecording, one: Value, bad: ReadRecording, two: Value) -> bool:
    if isinstance(one, ContentRef) and isinstance(two, ContentRef):
        return one.length == two.length and good.content(one) == bad.content(two)
    # By repr, too: it distinguishes 0.0 from -0.0 and 1 from True, and a NaN equals itself.
    return repr(one) == repr(two) or (one == two and type(one) in (set, frozenset, dict))


def _names(side: ReadRecording) -> frozenset[int]:
    """Return the numbers that are used as arguments: as answers they are identifiers, such as process ids."""
    found: set[int] = set()
    for arguments in {id(event.arguments): event.arguments for event in side.events if event.arguments}.values():
        found.update(_numbers(arguments))
    return frozenset(found)


def _numbers(value: Value) -> Iterator[int]:
    """Yield the numbers in a value, without those that are too small to be identifiers."""
    if type(value) is int and value >= LEAST_NAME:
        yield value
    elif type(value) in (tuple, list):
        for each in value:
            yield from _numbers(each)


def _is_handle(one: Event, two: Event, names: frozenset[int]) -> bool:
    """Whether two answers differ only in identifiers."""
    left = [_without(event.outcome, names) for event in (one, two)]
    is_equal = repr(left[0]) == repr(left[1]) and one.filled is None and two.filled is None
    return is_equal and one.raised == two.raised


def _without(value: Value, names: frozenset[int]) -> Value:
    if type(value) is int:
        return None if value in names else value
    return type(value)(_without(each, names) for each in value) if type(value) in (tuple, list) else value


def _of_the_start(good: ReadRecording, bad: ReadRecording) -> Iterator[Input]:
    one, two = good.header, bad.header
    if one.hash_seed != two.hash_seed:
        yield Input(InputKind.HASH_SEED, "", one.hash_seed, two.hash_seed)
    for name in sorted({*one.env, *two.env}):
        if one.env.get(name) != two.env.get(name):
            yield Input(InputKind.ENVIRONMENT, name, one.env.get(name), two.env.get(name))
    if one.argv != two.argv:
        yield Input(InputKind.ARGUMENTS, "", list(one.argv), list(two.argv))
    if one.cwd != two.cwd:
        yield Input(InputKind.DIRECTORY, "", one.cwd, two.cwd)
    if good.turns != bad.turns or _places(good) != _places(bad):
        yield Input(InputKind.SCHEDULE, "", len(good.preemptions), len(bad.preemptions))


def _places(side: ReadRecording) -> list[tuple[LaneKey, int, int]]:
    return [(each.lane, each.marks, each.ticks) for each in side.preemptions]
