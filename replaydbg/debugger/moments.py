"""The grammar for moments: `120`, `120:35`, `71%`, `@exc`, `@end`, `@start`, `@t+1.2s`, `@out:17`, `@#3`, `@name`.

`120:0` is inside the line that asked for event 120, and `120:35.2` at the second point inside that line. `@log:TEXT` is
where the program has noted such a text (`replaydbg.moment`), and `run-12:120:0` what that function has returned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from replaydbg.classes import dataclass
from replaydbg.debugger.first_pass.run_index import Index
from replaydbg.debugger.session_results import Raised
from replaydbg.errors import NoSuchMoment
from replaydbg.replay.clock import Moment

_TIME = re.compile(r"@t\+?(\d+(?:\.\d+)?)(ms|s|m)?\Z")
_NUMBERS = re.compile(r"(?P<event>\d+)(?::(?P<step>\d+)?(?:\.(?P<point>\d+))?)?\Z", re.ASCII)
_NOTED = re.compile(r"@(?!out:)(?P<kind>\w+):(?P<text>.+)\Z", re.DOTALL)
_OF_RECORDING = re.compile(r"(?!\d+:)[^@:\s][^@:]*:(?=\d+:\d+\Z)", re.ASCII)
"""The name in front of what `replaydbg.moment` returns."""
_MISSING = {
    "request": "no request has this text; `replaydbg requests` lists them",
    "response": "no request that has not failed has this text; `replaydbg requests` lists them",
    "failed": "no failed request has this text; `replaydbg requests` lists them",
    "cell": "no cell with this number ran",
    "code": "no cell that ran contains this text",
}
"""Why there is no moment, by the kind that replaydbg itself notes."""
_NOT_NOTED = "no call of replaydbg.moment() had this kind and text"
_UNITS = {"ms": 1e6, "s": 1e9, "m": 60e9, None: 1e9}


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a process at a moment: before a line, or inside one."""

    count: int
    """Lines so far, that line included."""
    point: int = 0
    """The point of the line; 0: before it, unless an event is given."""
    event: int = 0
    """Inside the line, where this event has been consumed."""
    is_exact: bool = True
    """Whether a missing point is an error; if not, the beginning of the line is used."""


def parse_moment(
    text: str,
    index: Index,
    marks: Mapping[str, int],
    event_at: Callable[[float], int],
    noted: Callable[[str, str], int],
    failure: Raised | None = None,
) -> Position:
    """Return the position of the moment that `text` names.

    `marks` are the named ones; `event_at` returns the last event before a time in nanoseconds; `noted` returns the
    first event at which the program has noted a kind and a text, or 0; `failure` is what `@exc` means.

    Raises NoSuchMoment.
    """
    word = _OF_RECORDING.sub("", text.strip())
    word = word.partition("@")[2] if word.startswith("rdbg://") else word
    word = f"@{word}" if text.strip().startswith("rdbg://") and not _is_plain(word) else word
    if word == "@exc":
        return Position(_exception(word, failure))
    if word.startswith("@out:"):
        return _line_of_output(word, index)
    if match := _NOTED.match(word):
        kind, text = match["kind"], match["text"]
        return _noted_moment(word, index, kind, text, noted(kind, text))
    if word.startswith("@"):
        return Position(_named(word, index, marks, event_at))
    if word.endswith("%"):
        share = _number(word[:-1], text)
        if not 0 <= share <= 100:
            raise NoSuchMoment(text, "a percentage must be between 0 % and 100 %")
        return Position(max(1, min(round(index.total * share / 100), index.total)))
    match = _NUMBERS.match(word)
    if match is None:
        raise NoSuchMoment(
            text, "a moment is an event (120), an event and lines after it (120:35), 71%, or a name (@exc)"
        )
    event, step, point = match["event"], match["step"], match["point"]
    if int(event) > index.events:
        raise NoSuchMoment(text, f"the recording has {index.events:,} events")
    lines = index.lines_after(int(event))
    if step and int(step) > lines:
        until = "the end" if int(event) == index.events else "the next one"
        raise NoSuchMoment(text, f"{lines:,} lines ran between event {event} and {until}")
    if step and not int(step) and int(event):
        if point:
            raise NoSuchMoment(text, f"points belong to lines, and step 0 is event {event} itself")
        return Position(index.count(Moment(int(event), 0)), event=int(event))
    return Position(index.count(Moment(int(event), int(step or 1))), int(point or 0))


def _is_plain(word: str) -> bool:
    return word[:1].isdecimal()


def _named(word: str, index: Index, marks: Mapping[str, int], event_at: Callable[[float], int]) -> int:
    if word in ("@start", "@0"):
        return 1
    if word == "@end":
        return index.end
    if word == "@last":
        return index.total
    if match := _TIME.match(word):
        return index.count(Moment(_event_then(word, match, event_at), 1))
    if word[1:] in marks:
        return marks[word[1:]]
    known = ", ".join(
        f"@{name}" for name in ("start", "end", "last", "exc", "out:N", "KIND:TEXT", "t+SECONDS", *sorted(marks))
    )
    raise NoSuchMoment(word, f"known names: {known}")


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


def _line_of_output(word: str, index: Index) -> Position:
    wanted = int(_number(word[5:], word))
    lines = 0
    for each in index.output:
        lines += each.data.count(b"\n")
        if lines >= wanted > 0:
            return Position(each.count, each.point, is_exact=False) if each.point else Position(each.line)
    raise NoSuchMoment(word, f"the program wrote {lines:,} lines")


def _noted_moment(word: str, index: Index, kind: str, text: str, event: int) -> Position:
    if not event:
        printed = _printed_at(text, index) if kind == "log" else 0
        line = f"; the program printed it in line {printed:,} of its output, @out:{printed}" if printed else ""
        raise NoSuchMoment(word, f"{_MISSING.get(kind, _NOT_NOTED)}{line}")
    return Position(index.count(Moment(event, 0)), event=event)


def _printed_at(text: str, index: Index) -> int:
    """Return the number of the first line of output with a text, as `@out:N` counts; 0: none has it."""
    output = b"".join(each.data for each in index.output)
    at = output.find(text.encode("utf-8", "backslashreplace"))
    return output.count(b"\n", 0, at) + 1 if at >= 0 else 0


def _number(text: str, moment: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise NoSuchMoment(moment, f"{text!r} is not a number") from None
