"""Find the first bad place of many in a row, with few looks at them.

Bisection in k + 1 parts at a time, for k looks at once (k = 1: halves). That it finds *the* first one needs a history
that is good up to some place and bad from there on. Nobody knows beforehand whether it is, so further looks check it:
the places before a bad one outside the result are searched again, and all contradictions are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum

from replaydbg.classes import dataclass
from replaydbg.events.verdict import Verdict

Look = Callable[[Sequence[int]], Iterable[Verdict]]
"""Looks at some places, at once if possible, and returns their verdicts in the same order."""

CHECKS = 8
"""Number of places that are looked at after the first bad one was found, to check that all others fit."""


class Answer(Enum):
    """The outcome of a search."""

    FOUND = "found"
    """`first_bad` is bad, and `last_good` before it good; all places between them are undecided."""
    NEVER = "never"
    """The last place is not bad."""
    ALWAYS = "always"
    """The first place is bad."""
    UNKNOWN = "unknown"
    """Some places that had to be looked at were undecided; the last one is not bad."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search over places 0 to n - 1."""

    answer: Answer
    first_bad: int
    """-1: none was found."""
    last_good: int
    """The last good place before it; -1: there is none, and all before it are undecided as far as was looked."""
    undecided: tuple[int, ...]
    """The places between the two: any of them may be the first bad one."""
    verdicts: dict[int, Verdict]
    """All places that were looked at, in the order of the looks."""
    searched: int
    """Number of looks that found it; the others checked it."""
    unfit: tuple[int, ...]
    """Places that contradict it: bad ones before, good ones after. Empty: no contradiction was found."""

    @property
    def is_monotone(self) -> bool:
        """Whether every place that was looked at fits a history that changes once."""
        return not self.unfit


def search(
    places: int, look: Look, *, width: int = 1, checks: int = CHECKS, most_undecided: int | None = None
) -> Found:
    """Find the first bad one of `places`, looking at `width` at once.

    At most log2(places) + 2 looks find it if all are decided and `width` is 1; with more at once there are more looks
    and fewer rounds, log(places) to the base of width + 1. `checks` more looks at most check it. After `most_undecided`
    looks that decided nothing, nothing good is expected among the places that cannot be decided, and only the last one
    of them is looked for. Raises what `look` raises.
    """
    assert places > 0, "a search has at least one place"
    memory = _Memory(look)
    if memory.at_all([places - 1])[0] is not Verdict.BAD:
        _check(memory, places - 1, places, places, checks, width)
        return memory.found(Answer.NEVER, -1, -1, ())
    # Before the first place nothing is bad: if the search ends there, that place is bad.
    low, high = _narrow(memory, -1, places - 1, width, most_undecided)
    searched = len(memory.known)
    _check(memory, low, high, places, checks, width)
    earlier = min(at for at, each in memory.known.items() if each is Verdict.BAD)
    if earlier < high:
        low, high = _narrow(memory, -1, earlier, width, most_undecided)
    good = memory.last_good_before(high)
    between = tuple(range(good + 1, high))
    return memory.found(Answer.FOUND if high else Answer.ALWAYS, high, good, between, searched)


class _Memory:
    """The verdicts so far, and the looks that add more."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self.known: dict[int, Verdict] = {}

    def at_all(self, places: Sequence[int]) -> list[Verdict]:
        new = [at for at in dict.fromkeys(places) if at not in self.known]
        if new:
            self.known.update(zip(new, self._look(new), strict=True))
        return [self.known[at] for at in places]

    def last_good_before(self, place: int) -> int:
        return max((at for at, each in self.known.items() if at < place and each is Verdict.GOOD), default=-1)

    def found(self, answer: Answer, bad: int, good: int, between: tuple[int, ...], searched: int = 0) -> Found:
        unfit = [
            at
            for at, each in self.known.items()
            if (each is Verdict.BAD and (bad < 0 or at < bad)) or (each is Verdict.GOOD and 0 <= bad < at)
        ]
        number = searched or len(self.known)
        return Found(answer, bad, good, between, dict(self.known), number, tuple(sorted(unfit)))


def _narrow(memory: _Memory, low: int, high: int, width: int, most_undecided: int | None) -> tuple[int, int]:
    """Bring `low`, which is not bad, and `high`, which is, together, until only undecided places are between them."""
    while True:
        undecided = [at for at in memory.known if low < at < high]
        if most_undecided is not None and len(undecided) > most_undecided:
            low = max(undecided)
        chosen = _inner(memory, low, high, width)
        if not chosen:
            return low, high
        memory.at_all(chosen)
        for at in sorted(at for at in memory.known if low < at < high):
            if memory.known[at] is Verdict.BAD:
                high = at
                break
            if memory.known[at] is Verdict.GOOD:
                low = at


def _inner(memory: _Memory, low: int, high: int, width: int) -> list[int]:
    """Return up to `width` places between the two that nobody has looked at, spread evenly."""
    open_places = high - low - 1 - sum(low < at < high for at in memory.known)
    chosen: list[int] = []
    if open_places == high - low - 1:
        parts = min(width, open_places)
        chosen = [low + (high - low) * part // (parts + 1) for part in range(1, parts + 1)]
    for at in _spread(low, high):
        if len(chosen) >= min(width, open_places):
            break
        if at not in memory.known and at not in chosen:
            chosen.append(at)
    return chosen


def _spread(low: int, high: int) -> Iterator[int]:
    """Yield the places between the two: the middle, the middles of the halves, of the quarters, and so on."""
    bits = max(high - low - 1, 1).bit_length()
    for number in range(1, 1 << bits):
        at = low + int(f"{number:0{bits}b}"[::-1], 2) * (high - low) // (1 << bits)
        if low < at < high:
            yield at
    # Rounding may have left some out.
    yield from range(low + 1, high)


def _check(memory: _Memory, low: int, high: int, places: int, number: int, width: int) -> None:
    """Look at `number` places, half of them before and half after, spread evenly."""
    before = _unknown(memory, -1, low, number - min(number // 2, places - 1 - high if high < places else 0))
    after = _unknown(memory, high, places, number - len(before))
    chosen = before + after
    for begin in range(0, len(chosen), width):
        memory.at_all(chosen[begin : begin + width])


def _unknown(memory: _Memory, low: int, high: int, number: int) -> list[int]:
    chosen: dict[int, None] = {}
    for at in _spread(low, high):
        if len(chosen) >= number:
            break
        if at not in memory.known:
            chosen[at] = None
    return list(chosen)
