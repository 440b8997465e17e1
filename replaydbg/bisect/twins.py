"""Two recordings of the same program compared: what it was told otherwise, and what it did otherwise."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from replaydbg.bisect.align import align, gaps, pairs
from replaydbg.events.environment import Header
from replaydbg.events.records import ControlKind, Entry, Event, Site, Why
from replaydbg.events.values import ContentRef, Value

LEAST_NAME = 256
"""Smaller numbers that are answers and arguments are the same by chance. Descriptors are told by their gates."""

LaneKey = tuple[tuple[str, int], ...]
"""Who a thread is in every run: the names from the main thread to it, each with how many of that name came before."""


class Told(enum.Enum):
    """In what way a program was told something else."""

    HASH_SEED = "hash seed"
    ENVIRONMENT = "environment variable"
    ARGUMENTS = "command line"
    DIRECTORY = "working directory"
    SCHEDULE = "switches of threads"
    ANSWER = "answer"


class Did(enum.Enum):
    """In what way a program did something else."""

    ASKED = "asked for something else"
    WROTE = "wrote something else"
    ONLY_GOOD = "only in the good run"
    ONLY_BAD = "only in the bad run"


# Each is one of its kind: values need not be hashable, and equal answers at two events are two inputs.
@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """One thing that the two runs were told otherwise."""

    told: Told
    """What it is."""
    name: str
    """Of an environment variable; otherwise empty."""
    good: Value
    """What the good run was told; None with an environment variable: it was not set."""
    bad: Value
    """What the bad run was told."""
    good_event: int = 0
    """Of an answer: the number of its event in the good run."""
    bad_event: int = 0
    """In the bad run."""
    gate: str = ""
    """What was asked."""
    is_handle: bool = False
    """Whether it only names something, as a process id or a descriptor does: exchanged, it names nothing any more."""
    is_elapsed: bool = False
    """Of a clock: `good` is as long after the first answer that `bad` had as in the good run."""
    bad_elapsed: Value = None
    """Then the other way round: what is as long after the first answer of the good run as in the bad one."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The first thing that the runs did otherwise."""

    did: Did
    """What it is."""
    good_event: int
    """The event in the good run; where that has none, the last one that both have before it."""
    bad_event: int
    """The event in the bad run; likewise."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """A place where a thread had to give way although it could have gone on."""

    lane: LaneKey
    """Whose computation was interrupted."""
    number: int
    """The number of that lane in its recording."""
    marks: int
    """How many events it had had, and threads started."""
    ticks: int
    """How far it had computed since."""
    own: int
    """The number of its last event; 0: it had none yet."""
    nth: int
    """How often it had given way since, for whatever reason."""
    after: int
    """The number of the last event before, of any thread."""


class Turn(NamedTuple):
    """One thread goes on after another one."""

    lane: LaneKey
    """Which one gave way."""
    marks: int
    """How many events it had had, and threads started."""
    to: LaneKey
    """Which one goes on."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two recordings, read."""

    header: Header
    """How the program was started."""
    events: Sequence[Event]
    """Its events; the first one has the number 1."""
    lanes: dict[int, LaneKey]
    """Who each lane is."""
    preemptions: tuple[Preemption, ...]
    """Where threads had to give way."""
    turns: tuple[Turn, ...]
    """In which order threads took turns."""
    line_key: Callable[[Site], Hashable]
    """What tells a place in the source in both recordings."""
    content: Callable[[ContentRef], bytes]
    """Gives what is kept apart from the events."""
    openers: frozenset[str]
    """The gates that answer with descriptors."""
    afters: tuple[int, ...] = ()
    """For each of the turns the number of the last event before it."""


class Pair(NamedTuple):
    """Two events that belong together."""

    good: int
    """The number of one."""
    bad: int
    """The number of the other."""
    is_exact: bool
    """Whether they ask the same; otherwise they are from the same place only."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs have in common and what not."""

    pairs: tuple[Pair, ...]
    """The events that belong together, in the order of the bad run."""
    inputs: tuple[Input, ...]
    """What the program was told otherwise: first what holds from the start on, then the answers, in order."""
    first: Behaviour | None
    """What it did otherwise first; None: nothing."""
    others: int
    """How many events did otherwise, that one included."""

    @property
    def first_answer(self) -> Input | None:
        """The first answer that was another one."""
        return next((each for each in self.inputs if each.told is Told.ANSWER), None)


class Lanes(NamedTuple):
    """What a log says of its lanes."""

    events: list[Event]
    lanes: dict[int, LaneKey]
    preemptions: tuple[Preemption, ...]
    turns: tuple[Turn, ...]
    afters: tuple[int, ...]


@dataclass(slots=True)
class _Progress:
    """How far one lane has come."""

    marks: int = 0
    ticks: int = 0
    own: int = 0
    nth: int = 0


def read_lanes(entries: Iterable[Entry]) -> Lanes:
    """Return the events of a log, who the lanes are, and where they gave way."""
    events: list[Event] = []
    keys: dict[int, LaneKey] = {0: ()}
    named: dict[tuple[LaneKey, str], int] = defaultdict(int)
    far: dict[int, _Progress] = defaultdict(_Progress)
    preemptions: list[Preemption] = []
    turns: list[Turn] = []
    afters: list[int] = []
    for entry in entries:
        at, key = far[entry.lane], keys.get(entry.lane, ())
        if isinstance(entry, Event):
            events.append(entry)
            far[entry.lane] = _Progress(at.marks + 1, own=entry.number)
        elif entry.kind is ControlKind.LANE_STARTED and entry.number is not None:
            name = entry.name or "?"
            keys[entry.number] = (*key, (name, named[key, name]))
            named[key, name] += 1
            at.marks, at.ticks = at.marks + 1, 0
        elif entry.kind is ControlKind.LANE:
            at.ticks += entry.ticks or 0
            turns.append(Turn(key, at.marks, keys.get(entry.number or 0, ())))
            afters.append(entry.after)
            if entry.why is Why.PREEMPTED:
                found = Preemption(key, entry.lane, at.marks, at.ticks, at.own, at.nth, entry.after)
                preemptions.append(found)
            at.nth += 1
    return Lanes(events, keys, tuple(preemptions), tuple(turns), tuple(afters))


def rank_of_turns(side: Side) -> Callable[[LaneKey, int], int]:
    """Return what gives the place, in the order of a run, of a thread that has come to so many events and starts."""
    begun: dict[LaneKey, list[tuple[int, int]]] = defaultdict(list)
    come: dict[LaneKey, int] = defaultdict(int)
    begun[()].append((0, 0))
    for number, turn in enumerate(side.turns, 1):
        come[turn.lane] = turn.marks
        begun[turn.to].append((come[turn.to], number))

    def rank(key: LaneKey, marks: int) -> int:
        # The last stretch that begins there or before: it has the next event.
        found = [number for at, number in begun.get(key, ()) if at <= marks]
        return found[-1] if found else len(side.turns) + 1

    return rank


def compare(good: Side, bad: Side) -> Comparison:
    """Compare two recordings of the same program."""
    together = sorted(_pairs(good, bad), key=lambda pair: pair.bad)
    answers: list[Input] = []
    others: list[Behaviour] = []
    names = _names(good) | _names(bad)
    for pair in together:
        one, two = good.events[pair.good - 1], bad.events[pair.bad - 1]
        if not pair.is_exact:
            others.append(Behaviour(Did.ASKED, pair.good, pair.bad))
        elif one.digest != two.digest:
            others.append(Behaviour(Did.WROTE, pair.good, pair.bad))
        # How much was written says nothing new.
        if one.digest is None and two.digest is None and not _is_same_answer(good, one, bad, two):
            is_handle = two.gate in bad.openers or _is_handle(one, two, names)
            told = _told(one, two)
            answers.append(Input(Told.ANSWER, "", *told, pair.good, pair.bad, two.gate, is_handle))
    others += _lonely(together, len(good.events), len(bad.events))
    first = min(others, key=lambda each: (each.bad_event, each.did is not Did.ONLY_GOOD), default=None)
    return Comparison(tuple(together), (*_of_the_start(good, bad), *answers), first, len(others))


def elapsed(answers: Sequence[Input]) -> list[Input]:
    """Return answers of one clock as if the good run had begun when the bad run did; nothing if they are of no clock.

    Two runs are hours apart, perhaps: an answer of one among those of the other is a jump in time, where a few
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


# ---- what belongs together ----


def _pairs(good: Side, bad: Side) -> Iterator[Pair]:
    """Yield the events that belong together: thread by thread, the same questions first, then the same places."""
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


def _by_lane(side: Side) -> dict[LaneKey, list[Event]]:
    found: dict[LaneKey, list[Event]] = defaultdict(list)
    for event in side.events:
        found[side.lanes.get(event.lane, ())].append(event)
    return found


def _place(side: Side, event: Event) -> Hashable:
    return event.site.gate, event.site.function, side.line_key(event.site)


def _question(side: Side, event: Event) -> Hashable:
    # repr: arguments may hold lists; and of equal numbers of different types only one is asked for.
    return _place(side, event), repr(event.arguments)


def _lonely(together: Sequence[Pair], good: int, bad: int) -> Iterator[Behaviour]:
    """Yield the events that one of the two does not have."""
    to_bad = {pair.good: pair.bad for pair in together}
    to_good = {pair.bad: pair.good for pair in together}
    last = 0
    for number in range(1, bad + 1):
        if number not in to_good:
            yield Behaviour(Did.ONLY_BAD, last, number)
        last = to_good.get(number, last)
    last = 0
    for number in range(1, good + 1):
        if number not in to_bad:
            yield Behaviour(Did.ONLY_GOOD, number, last)
        last = to_bad.get(number, last)


# ---- what differs ----


def _is_same_answer(good: Side, one: Event, bad: Side, two: Event) -> bool:
    return (
        one.raised == two.raised
        and _is_same(good, one.outcome, bad, two.outcome)
        and _is_same(good, one.filled, bad, two.filled)
    )


def _told(one: Event, two: Event) -> tuple[Value, Value]:
    """Return what tells two answers apart: what a buffer was filled with says more than how much that was."""
    is_filled = one.filled is not None and two.filled is not None and not one.raised and not two.raised
    return (one.filled, two.filled) if is_filled else (one.outcome, two.outcome)


def _is_same(good: Side, one: Value, bad: Side, two: Value) -> bool:
    if isinstance(one, ContentRef) and isinstance(two, ContentRef):
        return one.length == two.length and good.content(one) == bad.content(two)
    # By repr, too: it tells 0.0 from -0.0 and 1 from True, and a NaN is itself.
    return repr(one) == repr(two) or (one == two and type(one) in (set, frozenset, dict))


def _names(side: Side) -> frozenset[int]:
    """Return the numbers that are used as arguments: where they are answers they are names, as process ids are."""
    found: set[int] = set()
    for arguments in {id(event.arguments): event.arguments for event in side.events if event.arguments}.values():
        found.update(_numbers(arguments))
    return frozenset(found)


def _numbers(value: Value) -> Iterator[int]:
    """Yield the numbers in a value, without those that are too small to name anything."""
    if type(value) is int and value >= LEAST_NAME:
        yield value
    elif type(value) in (tuple, list):
        for each in value:
            yield from _numbers(each)


def _is_handle(one: Event, two: Event, names: frozenset[int]) -> bool:
    """Whether two answers differ in nothing but names."""
    left = [_without(event.outcome, names) for event in (one, two)]
    is_equal = repr(left[0]) == repr(left[1]) and one.filled is None and two.filled is None
    return is_equal and one.raised == two.raised


def _without(value: Value, names: frozenset[int]) -> Value:
    if type(value) is int:
        return None if value in names else value
    return type(value)(_without(each, names) for each in value) if type(value) in (tuple, list) else value


def _of_the_start(good: Side, bad: Side) -> Iterator[Input]:
    one, two = good.header, bad.header
    if one.hash_seed != two.hash_seed:
        yield Input(Told.HASH_SEED, "", one.hash_seed, two.hash_seed)
    for name in sorted({*one.env, *two.env}):
        if one.env.get(name) != two.env.get(name):
            yield Input(Told.ENVIRONMENT, name, one.env.get(name), two.env.get(name))
    if one.argv != two.argv:
        yield Input(Told.ARGUMENTS, "", list(one.argv), list(two.argv))
    if one.cwd != two.cwd:
        yield Input(Told.DIRECTORY, "", one.cwd, two.cwd)
    if good.turns != bad.turns or _places(good) != _places(bad):
        yield Input(Told.SCHEDULE, "", len(good.preemptions), len(bad.preemptions))


def _places(side: Side) -> list[tuple[LaneKey, int, int]]:
    return [(each.lane, each.marks, each.ticks) for each in side.preemptions]
