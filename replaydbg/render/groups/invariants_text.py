"""Where an invariant of a group stops to hold, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from replaydbg.bisect.search import Answer, Found
from replaydbg.events.show import printable
from replaydbg.groups.cut_values import ChangingLine
from replaydbg.groups.invariants import CutValue, InvariantSearch
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.render.groups.cuts_text import cut_text, short
from replaydbg.render.paths import short_path
from replaydbg.render.texts import moment_text


def result_lines(
    opened: OpenedGroup, search: InvariantSearch, found: Found, changes: Sequence[ChangingLine] | None
) -> Iterator[str]:
    """Yield the last cut in which it holds, the first one in which it does not, and the lines between them."""
    number = f"{len(search.found):,} of {len(search.chain):,} {'quiet ' if search.is_quiet else ''}cuts"
    if found.answer in (Answer.NEVER, Answer.UNKNOWN):
        last = search.found[len(search.chain) - 1]
        if last.reason:
            yield f"The last cut could not be evaluated: {last.reason} ({number} evaluated)."
        else:
            yield f"The invariant holds in the last cut ({number} evaluated)."
        if found.unfit:
            earlier = counted(len(found.unfit), "earlier cut")
            yield f"It did not hold in {earlier} (first: {_cut(search, min(found.unfit))})."
        return
    if found.last_good >= 0:
        yield f"holds until  {_cut(search, found.last_good)}"
    yield f"wrong from   {_cut(search, found.first_bad)}"
    if found.last_good >= 0 and changes is None:
        yield "Too many lines ran between the two cuts to look at each."
    suspects = _suspects(search, found, changes or ())
    for change in changes or ():
        mark = "  <- the difference" if change in suspects and len(suspects) < len(changes or ()) else ""
        file = printable(short_path(change.file, opened.cwd.get(change.process, "")))
        yield (
            f"  {change.process}@{moment_text(change.moment)}  {file}:{change.line}  {printable(change.text)}  "
            f"{printable(short(change.before))} -> {printable(short(change.after))}{mark}"
        )
    yield f"{number} evaluated."


def _cut(search: InvariantSearch, place: int) -> str:
    return f"{cut_text(search.chain[place])}  {_value(search.found[place])}"


def _value(value: CutValue) -> str:
    if value.reason:
        return value.reason
    if value.total is not None:
        return f"total {shown_value(value.total)}"
    return f"locals {printable(short(shown_value(value.locals)))}"


def shown_value(value: object) -> str:
    """Return the repr() of a value, or what it is if there is none."""
    try:
        return repr(value)
    except (ValueError, RecursionError):  # an integer of more digits than Python prints
        return f"a very large {type(value).__name__}"


def _suspects(search: InvariantSearch, found: Found, changes: Sequence[ChangingLine]) -> list[ChangingLine]:
    """Return the changes by as much as the total changed."""
    if found.last_good < 0:
        return []
    good, bad = search.found[found.last_good].total, search.found[found.first_bad].total
    if good is None or bad is None:
        return []
    try:
        lost = bad - good
    except OverflowError:
        return []
    return [each for each in changes if (by := _by(each)) is not None and math.isclose(by, lost)]


def _by(change: ChangingLine) -> float | None:
    try:
        return float(change.after) - float(change.before)
    except ValueError:
        return None


def result_remarks(search: InvariantSearch, found: Found) -> Iterator[str]:
    """Yield sentences about what was not evaluated."""
    for process, reason in search.without_value().items():
        yield f"Process {process} does not count: {reason}."
    undecided = [each for each in search.found.values() if each.reason]
    if undecided:
        yield undecided_sentence(undecided)
    if found.answer is Answer.FOUND and found.unfit:
        yield f"It holds again in {counted(len(found.unfit), 'later cut')}."
    yield ONE_CHAIN


ONE_CHAIN = (
    "The cuts are a chain, one path through all consistent ones. Concurrent events can also come in another order."
)


def undecided_sentence(undecided: Sequence[CutValue]) -> str:
    """Return how many cuts could not be evaluated, and why."""
    return f"{counted(len(undecided), 'cut')} could not be evaluated (first reason: {undecided[0].reason})."


def counted(count: int, what: str) -> str:
    """Return a number of things, such as `2 cuts`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
