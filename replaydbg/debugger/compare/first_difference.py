"""The first moment at which the memory of two recordings of one program differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replaydbg.debugger.object_history import CodePlace, holdings, line_before
from replaydbg.debugger.session import Session
from replaydbg.debugger.session_results import Moment
from replaydbg.heap.comparison.diff_results import REORDERED, Change, Diff, Grown
from replaydbg.heap.comparison.drift import drift
from replaydbg.heap.retention.holding import MINE
from replaydbg.installed import is_installed

PROBES = 6
"""Moments of one round of the search; each is a snapshot in both recordings."""

MOST_TURNS = 20
"""Stretches between two events that are searched for where two runs diverged."""

OF_THE_END = frozenset({"__file__", "__cached__"})
"""Variables that the interpreter takes away when a script has ended."""

BY_CONTENT = frozenset({"builtins.str", "builtins.bytes", "builtins.bytearray", "builtins.int"})
"""Types whose values are compared whole, and shown by their beginning."""

NOISE_DIGITS = 15
"""Numbers as long as that are hashes, addresses or nanoseconds as a rule; amounts and counts are shorter."""


@dataclass(frozen=True, slots=True)
class MemoryDifference:
    """The first moment at which the two have something else in memory."""

    scope: str
    """Whose variables count."""
    is_flipped: bool
    """Whether the good run was replaced by the bad one with the inputs that make the difference."""
    good: Moment
    """The moment in the good run: before this line."""
    bad: Moment
    """The moment in the bad run that belongs to it."""
    place: CodePlace | None
    """The line of the bad run that ran last; None: no Python code did."""
    source: str
    """Its text."""
    returned_to: CodePlace | None
    """The line of the caller that may have done it just as well, after the call of which that line was the last."""
    returned_to_source: str
    """Its text."""
    changed: tuple[Change, ...]
    """Variables, attributes and items that are not the same."""
    grown: tuple[Grown, ...]
    """Containers that have more items, or fewer."""


def first_memory_difference(
    good: Session,
    bad: Session,
    events: Sequence[tuple[int, int]],
    *,
    scope: str = MINE,
    since: tuple[int, int] | None = None,
    is_flipped: bool = False,
) -> MemoryDifference | None:
    """Return where the memory of two runs first differs in what the program's own code reaches; None: nowhere seen.

    `scope`: whose objects count, see SCOPES of `replaydbg.heap.comparison.snapshot_diff`.

    `events` are the numbers of corresponding events, in order. The search is for the first difference, as if a
    difference lasted once it is there. Differences at the beginning are ignored: at the program's first line, or with
    `since`, a pair of events, before their answers. `is_flipped`: see MemoryDifference.
    """
    counts = _counts(good, bad, events, since)
    ends = (good.index.end, bad.index.end)
    if is_flipped:
        # Behind the last event that both have they go on alike for a while.
        last = min(good.index.events, bad.index.events)
        lines = min(good.index.lines_after(last), bad.index.lines_after(last))
        ends = (good.index.starts[last] + lines, bad.index.starts[last] + lines)
    if ends[0] > counts[-1][0] and ends[1] > counts[-1][1]:
        counts.append(ends)
    search = _MemorySearch(good, bad, scope, is_flipped=is_flipped)
    search.know_noise(counts[0])
    at = search.first(counts)
    if at is None:
        return None
    counts = _between(counts[at - 1] if at else counts[0], counts[at])
    at = search.first(counts)
    assert at is not None, "the last one differs"
    return search.difference_at(counts[at])


def _counts(
    good: Session, bad: Session, events: Sequence[tuple[int, int]], since: tuple[int, int] | None
) -> list[tuple[int, int]]:
    """Return the counts of lines at moments that belong together: after each event, before the next line."""
    found = [(good.first_own, bad.first_own)]
    if since is not None:
        # The line that asks has begun by then, and nothing of the answer is there yet.
        asked = good.index.starts[since[0]], bad.index.starts[since[1]]
        found = [(max(found[0][0], asked[0]), max(found[0][1], asked[1]))]
    for one, two in events:
        if good.index.lines_after(one) and bad.index.lines_after(two):
            counts = good.count_of(Moment(one, 1)), bad.count_of(Moment(two, 1))
            if counts[0] > found[-1][0] and counts[1] > found[-1][1]:
                found.append(counts)
    return found


def _between(first: tuple[int, int], last: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the moments between two: line by line from the first one on, as long as both have one."""
    lines = min(last[0] - first[0], last[1] - first[1])
    return [(first[0] + line, first[1] + line) for line in range(lines)] + [last]


class _MemorySearch:
    def __init__(self, good: Session, bad: Session, scope: str, *, is_flipped: bool) -> None:
        self.good, self.bad, self.scope, self.is_flipped = good, bad, scope, is_flipped
        self.noise: frozenset[str] = frozenset()

    def know_noise(self, counts: tuple[int, int]) -> None:
        self.noise = OF_THE_END | {each.path for each in _meaningful(self._all([counts])[0])}

    def first(self, counts: Sequence[tuple[int, int]]) -> int | None:
        """Return the first of the moments at which the two differ, each time at PROBES of those that are left."""
        low, high = 0, len(counts)
        while low < high:
            probes = sorted({low + (high - low) * number // (PROBES + 1) for number in range(PROBES + 1)} | {high - 1})
            looked = [self._is_apart(each) for each in self._all([counts[probe] for probe in probes])]
            if True not in looked:
                return None if high == len(counts) else high
            number = looked.index(True)
            low, high = (probes[number - 1] + 1 if number else low), probes[number]
        return high

    def difference_at(self, counts: tuple[int, int]) -> MemoryDifference:
        found = self._all([counts])[0]
        made = line_before(self.bad, counts[1], max(counts[1] - 1, 1))
        return MemoryDifference(
            scope=self.scope,
            is_flipped=self.is_flipped,
            good=self.good.index.moment(counts[0]),
            bad=self.bad.index.moment(counts[1]),
            place=made.place,
            source=self._source(made.place),
            returned_to=made.returned_to,
            returned_to_source=self._source(made.returned_to),
            changed=tuple(each for each in _meaningful(found) if each.path not in self.noise),
            grown=found.grown.items,
        )

    def _source(self, place: CodePlace | None) -> str:
        return self.bad.source_line(place.file, place.line) if place is not None else ""

    def _all(self, counts: Sequence[tuple[int, int]]) -> list[Diff]:
        """Compare several moments; one run of each recording passes them all."""
        ours = holdings(self.good, [each[0] for each in counts])
        theirs = holdings(self.bad, [each[1] for each in counts])
        return [drift(one, two, most=None, scope=self.scope) for one, two in zip(ours, theirs, strict=True)]

    def _is_apart(self, found: Diff) -> bool:
        return any(each.path not in self.noise for each in _meaningful(found)) or bool(found.grown.total)


def _meaningful(found: Diff) -> list[Change]:
    """Return the meaningful changes: not those between two objects with equal texts.

    Hashes, addresses and nanoseconds are not meaningful either: they differ in any two runs.
    """
    return [each for each in found.changed.items if _is_meaningful(each) and not _is_noise(each)]


def _is_meaningful(each: Change) -> bool:
    return each.before != each.after or each.kind == REORDERED or {each.type_before, each.type_after} <= BY_CONTENT


def _is_noise(each: Change) -> bool:
    numbers = [text.lstrip("-") for text in (each.before, each.after)]
    return all(text.isdigit() and len(text) >= NOISE_DIGITS for text in numbers)


@dataclass(frozen=True, slots=True)
class TurningPoint:
    """Where the paths of two runs diverged."""

    moment: Moment
    """In the bad run, before the line that ran last in both."""
    place: CodePlace
    """That line."""
    source: str
    """Its text."""
    good: CodePlace | None
    """The line that came then in the good run; None: none, it ended, or asked for something else."""
    bad: CodePlace | None
    """In the bad run."""


def first_turn(good: Session, bad: Session) -> TurningPoint | None:
    """Return where two runs of equal events diverged before one of them asked for something else.

    `good` is a replay that ends there, at its first divergence from what `bad` has recorded. None: they ran the same
    lines until then, and only the value of what was asked differed. Of several such places the first one in the
    program's own code is returned.
    """
    last = min(good.index.events, bad.index.events)
    other = [event for event in range(last) if good.index.lines_after(event) != bad.index.lines_after(event)]
    turns = (_turn(good, bad, event) for event in [*other[:MOST_TURNS], last])
    found = [turn for turn in turns if turn is not None]
    return next((turn for turn in found if is_own(turn.place.file)), found[0] if found else None)


def _turn(good: Session, bad: Session, event: int) -> TurningPoint | None:
    """Return where the two diverged between an event and the next one."""
    before = good.index.starts[event], bad.index.starts[event]
    lines = min(good.index.lines_after(event), bad.index.lines_after(event))
    low, high = 0, lines + 1
    # The first line that is another one, as if they never met again.
    while low + 1 < high:
        middle = (low + high) // 2
        if _top(good, before[0] + middle) == _top(bad, before[1] + middle):
            low = middle
        else:
            high = middle
    # Behind the last event one of them may have ended there, or asked for something, while the other went on.
    both = [session.index.lines_after(event) for session in (good, bad)]
    is_end = low == lines and both[0] != both[1] and event == min(good.index.events, bad.index.events)
    place = _top(bad, before[1] + low) if 0 < low < lines or is_end else None
    if place is None:
        return None
    moment, source = bad.here.moment, bad.source_line(place.file, place.line)
    ways = [
        _top(session, start + high) if high <= count else None
        for session, start, count in zip((good, bad), before, both, strict=True)
    ]
    return TurningPoint(moment, place, source, *ways)


def is_own(file: str) -> bool:
    """Whether a file is the program's own: neither installed nor of the standard library."""
    return not file.startswith("<") and not is_installed(file)


def _top(session: Session, count: int) -> CodePlace | None:
    top = session.seek(count).top
    return CodePlace(top.file, top.line, top.function) if top is not None else None
