"""How the replay of a copy ends: as that of the original, with pseudonyms in it.

The log has nothing of what the program did after its last event: a signal that it sent itself, a crash, another program
that took its place, a call in which another thread waited.
"""

from __future__ import annotations

from itertools import zip_longest

from replaydbg.classes import NamedTuple
from replaydbg.errors import CannotRedact
from replaydbg.events.show import show_status
from replaydbg.redaction.told import OpenCall, ToldEnd
from replaydbg.replay.result import ReplayResult

_COMPUTING = "computing"
"""How a replay ends that was stopped after an amount of computation: its line is of no meaning."""


class ReplayedEnd(NamedTuple):
    """The end of a replay."""

    result: ReplayResult
    """Its result, without a divergence."""
    end: ToldEnd | None
    """What the core told of it."""


def check_same_end(original: ReplayedEnd, copy: ReplayedEnd, name: str) -> None:
    """Raise CannotRedact, with the line, if the copy's replay ended in another way; `original` has pseudonyms."""
    difference = _difference(original, copy)
    if difference is not None:
        seen, where = difference
        raise CannotRedact(name, f"its run depends on the value of a secret: {seen}", where)


def is_same_result(one: ReplayResult, other: ReplayResult) -> bool:
    """Whether two replays came to the same end, as far as their results say."""
    return (one.status, one.events, one.is_whole) == (other.status, other.events, other.is_whole)


def _difference(original: ReplayedEnd, copy: ReplayedEnd) -> tuple[str, str] | None:
    """Return what is different, and the line; None: nothing."""
    was, now = original.end, copy.end
    if was is not None and now is not None:
        for before, after in zip_longest(was.calls, now.calls):
            if before != after:
                return _call_difference(was, now, before, after)
        if _end_of(was) != _end_of(now):
            return f"at its end, {_shown(now, copy.result)}", now.place or was.place
    if (was is None) != (now is None) or not is_same_result(original.result, copy.result):
        told = now or was
        return f"at its end, {_shown(now, copy.result)}", told.place if told is not None else ""
    return None


def _call_difference(was: ToldEnd, now: ToldEnd, before: OpenCall | None, after: OpenCall | None) -> tuple[str, str]:
    if after is not None:
        return f"at its end, the copy would call {after}", _line_of(after, now) or was.place
    assert before is not None
    return f"at its end, the copy would not call {before}", now.place or _line_of(before, was)


def _line_of(call: OpenCall, end: ToldEnd) -> str:
    return str(call.place) if call.place.is_own else end.place


def _end_of(end: ToldEnd) -> tuple[object, ...]:
    return end[:3] if end.how == _COMPUTING else end[:5]


def _shown(end: ToldEnd | None, result: ReplayResult) -> str:
    how, number = (end.how, end.number) if end is not None else ("", 0)
    if how == "exit":
        return f"the copy would end with {show_status(number)}"
    if how == "signal":
        return f"the copy would be {show_status(-number)}"
    if how == _COMPUTING:
        return "the copy would compute"
    return f"the copy would end after event {result.events:,}"
