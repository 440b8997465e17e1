"""The decisions that were taken in a future, as the core reports them (native/lanes/schedules.c)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replaydbg.classes import NamedTuple
from replaydbg.errors import ForgedMessage
from replaydbg.futures.schedules.given import Deviation, DeviationKind

_PREEMPTED, _ENDED = 2, 3


class ThreadPlace(NamedTuple):
    """Where a thread stands: in the program's own code, if it has been called from there."""

    file: str
    line: int
    """From 1; 0: it has not begun, or has ended."""
    function: str


class ThreadChoice(NamedTuple):
    """A switch from one thread to another."""

    lane: int
    """The number of the thread that gives way."""
    marks: int
    ticks: int
    """Its place, see Deviation."""
    computed: int
    """Ticks of all threads since the future began."""
    event: int
    """The last event before, of any thread."""
    is_preemption: bool
    has_ended: bool
    to: int
    """The number of the thread that goes on."""
    place: int
    """Its place among those that could run, from 0."""
    is_usual: bool
    """Whether the usual schedule, too, gives way there: a preemption after a long time."""
    ready: tuple[int, ...]
    """Those that could run, the one that has waited longest first."""
    left: ThreadPlace
    """Where the one that gives way stands."""
    entered: ThreadPlace
    """Where the one that goes on stands."""

    @property
    def deviation(self) -> Deviation | None:
        """What it is other than in the usual schedule; None: nothing."""
        if self.is_preemption:
            return None if self.is_usual else Deviation(DeviationKind.PREEMPTION, *self[:3], self.to)
        return Deviation(DeviationKind.CHOICE, *self[:3], self.to) if self.place else None


class PreemptionPoint(NamedTuple):
    """A line at which a thread could have been preempted."""

    lane: int
    marks: int
    ticks: int
    computed: int
    event: int
    ready: tuple[int, ...]
    """The other threads that could run."""
    at: ThreadPlace
    plain: frozenset[str]
    """Variables that only the running call has, with a number, a text or nothing in each."""
    plain_globals: frozenset[str]
    """Variables of its module with a number or a text in each."""


class ReadyOrder(NamedTuple):
    """Several descriptors were ready at once."""

    lane: int
    marks: int
    ticks: int
    computed: int
    event: int
    number: int
    """Of the order in which they were reported, 0 being that of the kernel."""
    orders: int
    """How many there are."""
    at: ThreadPlace

    @property
    def deviation(self) -> Deviation | None:
        """What it is other than in the usual schedule; None: nothing."""
        return Deviation(DeviationKind.ORDER, *self[:3], self.number) if self.number else None


class LoopPause(NamedTuple):
    """An event loop looked later than it could for what was ready."""

    lane: int
    marks: int
    ticks: int
    computed: int
    event: int
    microseconds: int
    at: ThreadPlace

    @property
    def deviation(self) -> Deviation | None:
        """What it is other than in the usual schedule, in which there is none."""
        return Deviation(DeviationKind.PAUSE, *self[:3], self.microseconds)


class FutureBegin(NamedTuple):
    """Where each thread stands when the future begins."""

    lane: int
    """The one that runs."""
    marks: int
    ticks: int
    computed: int
    event: int
    places: dict[int, ThreadPlace]
    """By the numbers of the threads."""


Deviating = ThreadChoice | ReadyOrder | LoopPause
"""A decision that can be other than in the usual schedule."""
Decision = Deviating | PreemptionPoint | FutureBegin


def deviations_of(decisions: Sequence[Decision]) -> tuple[Deviation, ...]:
    """Return how a future deviated from the usual schedule."""
    found = (each.deviation for each in decisions if isinstance(each, Deviating))
    return tuple(each for each in found if each is not None)


def read_decisions(data: bytes) -> list[Decision]:
    """Return the decisions of a future, in their order. Raises ForgedMessage."""
    try:
        return list(_Reader(data).decisions())
    except IndexError as error:
        raise ForgedMessage("decisions of a future that cannot be read") from error


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def decisions(self) -> Iterator[Decision]:
        while self._at < len(self._data):
            kind = self._data[self._at : self._at + 1]
            self._at += 1
            lane, marks, ticks, computed, event = (self._number() for _ in range(5))
            if kind == b"S":
                why, to, place, is_usual = (self._number() for _ in range(4))
                ready, left, entered = self._ready(), self._place(), self._place()
                is_preemption, has_ended = why == _PREEMPTED, why == _ENDED
                head = (lane, marks, ticks, computed, event)
                yield ThreadChoice(*head, is_preemption, has_ended, to, place, bool(is_usual), ready, left, entered)
            elif kind == b"P":
                ready, at = self._ready(), self._place()
                yield PreemptionPoint(lane, marks, ticks, computed, event, ready, at, self._names(), self._names())
            elif kind == b"B":
                places = {self._number(): self._place() for _ in range(self._number())}
                yield FutureBegin(lane, marks, ticks, computed, event, places)
            elif kind == b"T":
                yield LoopPause(lane, marks, ticks, computed, event, self._number(), self._place())
            elif kind == b"O":
                number, orders = self._number(), self._number()
                yield ReadyOrder(lane, marks, ticks, computed, event, number, orders, self._place())
            else:
                raise IndexError

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _ready(self) -> tuple[int, ...]:
        return tuple(self._number() for _ in range(self._number()))

    def _text(self) -> str:
        size = self._number()
        if self._at + size > len(self._data):
            raise IndexError
        self._at += size
        return self._data[self._at - size : self._at].decode(errors="replace")

    def _names(self) -> frozenset[str]:
        return frozenset(self._text() for _ in range(self._number()))

    def _place(self) -> ThreadPlace:
        line = self._number()
        return ThreadPlace(self._text(), line, self._text()) if line else ThreadPlace("", 0, "")
