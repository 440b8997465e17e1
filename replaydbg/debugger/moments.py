"""The grammar for moments: `120`, `120:35`, `71%`, `@exc`, `@end`, `@start`, `@t+1.2s`, `@out:17`, `@#3`, `@name`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from replaydbg.debugger.index import Index
from replaydbg.debugger.values import Raised
from replaydbg.errors import NoSuchMoment
from replaydbg.replay.clock import Moment

_TIME = re.compile(r"@t\+?(\d+(?:\.\d+)?)(ms|s|m)?\Z")
_UNITS = {"ms": 1e6, "s": 1e9, "m": 60e9, None: 1e9}


def parse_moment(
    text: str,
    index: Index,
    marks: Mapping[str, int],
    event_at: Callable[[float], int],
    failure: Raised | None = None,
) -> int:
    """Return the count of lines at the moment that `text` names.

    `marks` are the named ones; `event_at` returns the last event before so many nanoseconds; `failure` is what `@exc`
    means. Raises NoSuchMoment.
    """
    word = text.strip()
    word = word.partition("@")[2] if word.startswith("rdbg://") else word
    word = f"@{word}" if text.strip().startswith("rdbg://") and not _is_plain(word) else word
    if word == "@exc":
        return _exception(word, failure)
    if word.startswith("@"):
        return _named(word, index, marks, event_at)
    if word.endswith("%"):
        share = _number(word[:-1], text)
        if not 0 <= share <= 100:
            raise NoSuchMoment(text, "a share of the run lies between 0 % and 100 %")
        return max(1, min(round(index.total * share / 100), index.total))
    event, _, step = word.partition(":")
    if not event.isdecimal() or (step and not step.isdecimal()):
        raise NoSuchMoment(text, "a moment is an event (120), an event and a step (120:35), 71%, or a name (@exc)")
    if int(event) > index.events:
        raise NoSuchMoment(text, f"the recording has {index.events:,} events")
    lines = index.lines_after(int(event))
    if step and int(step) > lines:
        until = "the end" if int(event) == index.events else "the next one"
        raise NoSuchMoment(text, f"{lines:,} lines ran between event {event} and {until}")
    return index.count(Moment(int(event), int(step or 1)))


def _is_plain(word: str) -> bool:
    return word[:1].isdecimal()


def _named(word: str, index: Index, marks: Mapping[str, int], event_at: Callable[[float], int]) -> int:
    if word in ("@start", "@0"):
        return 1
    if word == "@end":
        return index.end
    if word == "@last":
        return index.total
    if word.startswith("@out:"):
        return _line_of_output(word, index)
    if match := _TIME.match(word):
        return index.count(Moment(_event_then(word, match, event_at), 1))
    if word[1:] in marks:
        return marks[word[1:]]
    known = ", ".join(f"@{name}" for name in ("start", "end", "last", "exc", "out:N", "t+SECONDS", *sorted(marks)))
    raise NoSuchMoment(word, f"known are {known}")


def _event_then(word: str, match: re.Match[str], event_at: Callable[[float], int]) -> int:
    nanoseconds = float(match[1]) * _UNITS[match[2]]
    event = event_at(nanoseconds)
    # The clock is read at events only: a moment behind the last of them may be any time after the run.
    if event_at(nanoseconds - 1) == event == event_at(float("inf")):
        raise NoSuchMoment(word, "the last event was before that time")
    return event


def _exception(word: str, failure: Raised | None) -> int:
    if failure is None:
        raise NoSuchMoment(word, "no exception ended the program, or made a test fail")
    return failure.count


def _line_of_output(word: str, index: Index) -> int:
    wanted = int(_number(word[5:], word))
    lines = 0
    for each in index.output:
        lines += each.data.count(b"\n")
        if lines >= wanted > 0:
            return each.line
    raise NoSuchMoment(word, f"the program wrote {lines:,} lines")


def _number(text: str, moment: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise NoSuchMoment(moment, f"{text!r} is no number") from None
