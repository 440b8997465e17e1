"""How the replay of a copy ends: as that of the original, with pseudonyms in it.

The log has nothing of what the program did after its last event: a signal that it sent itself, a crash, another program
that took its place, a call in which another thread waited.
"""

from __future__ import annotations

from itertools import zip_longest

from replaydbg.classes import NamedTuple
from replaydbg.errors import CannotRedact
from replaydbg.events.show import show_status
from replaydbg.redaction.told import NOTHING_RAISED, OpenCall, ToldEnd, UncaughtException
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


def check_same_texts(original: ReplayedEnd, copy: ReplayedEnd, name: str, *, may_derive: bool) -> None:
    """Raise CannotRedact, with the line, if an uncaught exception has another text in the copy.

    It is output, if the program prints it: `may_derive` accepts another text of the same length.
    """
    if original.end is None or copy.end is None:
        return
    pairs = [*zip(original.end.threads, copy.end.threads, strict=True), (original.end.raised, copy.end.raised)]
    for was, now in pairs:
        is_longer_or_shorter = was.text is None or now.text is None or len(was.text) != len(now.text)
        if was.text == now.text or (may_derive and not is_longer_or_shorter):
            continue
        hint = "" if is_longer_or_shorter else " (--derived accepts that)"
        reason = (
            f"the text of an exception depends on the value of a secret{hint}: the copy would raise {now.exception}"
        )
        raise CannotRedact(name, reason, now.place or copy.end.place)


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
        for old, new in zip_longest(was.threads, now.threads, fillvalue=NOTHING_RAISED):
            if old.kind != new.kind:
                return _thread_difference(old, new)
        if _end_of(was) != _end_of(now):
            return f"at its end, {_shown(now, copy.result, was.raised)}", now.place or was.place
    if (was is None) != (now is None) or not is_same_result(original.result, copy.result):
        told = now or was
        return f"at its end, {_shown(now, copy.result)}", told.place if told is not None else ""
    return None


def _call_difference(was: ToldEnd, now: ToldEnd, before: OpenCall | None, after: OpenCall | None) -> tuple[str, str]:
    if after is not None:
        return f"at its end, the copy would call {after}", _line_of(after, now) or was.place
    assert before is not None
    return f"at its end, the copy would not call {before}", now.place or _line_of(before, was)


def _thread_difference(was: UncaughtException, now: UncaughtException) -> tuple[str, str]:
    if now.exception is not None:
        return f"{now.exception.kind} would end a thread of the copy", now.place
    assert was.exception is not None
    return f"{was.exception.kind} would end no thread of the copy", was.place


def _line_of(call: OpenCall, end: ToldEnd) -> str:
    return str(call.place) if call.place.is_own else end.place


def _end_of(end: ToldEnd) -> tuple[object, ...]:
    facts = (end.event, end.how, end.number)
    return facts if end.how == _COMPUTING else (*facts, end.stack, end.raised.kind)


def _shown(end: ToldEnd | None, result: ReplayResult, was: UncaughtException = NOTHING_RAISED) -> str:
    how, number = (end.how, end.number) if end is not None else ("", 0)
    raised = end.raised.exception if end is not None else None
    if raised is not None and (was.exception is None or was.exception.kind != raised.kind):
        return f"the copy would end with {raised.kind}"
    if how == "exit":
        return f"the copy would end with {show_status(number)}"
    if how == "signal":
        return f"the copy would be {show_status(-number)}"
    if how == _COMPUTING:
        return "the copy would compute"
    return f"the copy would end after event {result.events:,}"
