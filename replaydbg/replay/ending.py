"""The end of a replayed program: status, exception, the value of the check; and the deviations of the replay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from replaydbg.classes import dataclass
from replaydbg.errors import ForgedMessage, ReplaydbgError
from replaydbg.events.records import Event
from replaydbg.events.show import show_call, show_crossing, show_value
from replaydbg.log.coding.shapes import COUNT, DictOf, ListOf, decoded, one_of
from replaydbg.replay.draws import NO_DRAWS, Draws, DrawSequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from replaydbg.log.reader import Recording

MOST_SHOWN_EVENTS = 300_000
"""Number of the event above which recorded data is not looked up for a deviation: reading that far takes seconds."""

MEANINGS = {
    "skipped": "recorded, but not requested",
    "reordered": "requested later than in the recording",
    "repeated": "requested once more: answered as last time",
    "written": "writes different bytes: treated as written",
    "accepted": "not recorded: treated as done",
    "spare": "answered by an event after the recorded end",
    "signal": "a signal handler runs at a different point",
    "preemption": "a thread switch during a computation was omitted",
    "thread": "threads run in a different order",
    "follows": "not requested in the recording, but follows from what was",
    "unused": "the program ended before requesting what was recorded",
}
"""The kinds of deviations, with their meanings."""

_TEXT_OR_NONE = one_of(None, str)
_LIBERTY = (one_of(*MEANINGS), COUNT, str, object, bytes, str, COUNT, str, COUNT, str)
_REPORT = {
    "liberties": ListOf(_LIBERTY),
    "counts": DictOf(COUNT),
    "uncaught": one_of((), (str, _TEXT_OR_NONE, ListOf((str, COUNT, str, bool)))),
    "check": one_of((), (str, str, _TEXT_OR_NONE)),
    "said": one_of((), (str,)),
    "kinds": ListOf((str, str)),
    "draws": ((bytes, COUNT), (bytes, COUNT)),
    "looked": ListOf((str, str)),
    "looked_all": COUNT,
}


@dataclass(frozen=True, slots=True)
class ExceptionFrame:
    """A frame of the exception that ended the program."""

    file: str
    """The file name as in its code object."""
    line: int
    """From 1; 0: unknown."""
    function: str
    """The qualified name."""
    is_library: bool
    """Whether its code is part of the interpreter, or of an installed package."""


@dataclass(frozen=True, slots=True)
class Uncaught:
    """The exception that ended the program."""

    type: str
    """The qualified name of its class; empty: a test failed, and no exception was raised (a strict xfail)."""
    text: str | None
    """`str()` of it; None if that could not be computed without running code of the program."""
    frames: tuple[ExceptionFrame, ...]
    """Innermost last; at most 60."""

    @property
    def place(self) -> ExceptionFrame | None:
        """Where it was raised: the innermost frame of the program's own code, or of any."""
        own = [frame for frame in self.frames if not frame.is_library]
        frames = own or list(self.frames)
        return frames[-1] if frames else None

    def __str__(self) -> str:
        """Return it in one line, with its place."""
        text = ": ".join(each for each in (self.type, (self.text or "").strip()) if each)
        place = self.place
        return f"{text} at {place.file}:{place.line}" if place is not None else text


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a program."""

    status: int | None
    """Its exit code, or minus the number of the signal that ended it; None if it did not end."""
    exception: Uncaught | None
    """The uncaught exception of the main thread, if there was one."""
    sentence: str = ""
    """A text in place of the other fields, if it is not a program that ended; else empty."""

    @property
    def is_failure(self) -> bool:
        """Whether it ended with an exception, or with a status other than 0."""
        return self.exception is not None or self.status != 0

    def is_like(self, other: Outcome) -> bool:
        """Whether both ended in the same way: the same status, and exceptions of the same type. Texts may differ."""
        mine = self.exception.type if self.exception is not None else ""
        theirs = other.exception.type if other.exception is not None else ""
        return mine == theirs and (self.status == other.status or None in (self.status, other.status))

    def __str__(self) -> str:
        """Return it in one line."""
        if self.exception is not None:
            return str(self.exception)
        if self.sentence:
            return self.sentence
        return "no exception" if self.status is None else f"exit code {self.status}"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of the expression that was evaluated at the program's end."""

    verdict: str
    """`holds`, `fails` or `raised`."""
    error: str
    """The exception that it raised, with its text; empty if none."""


@dataclass(frozen=True, slots=True)
class Liberty:
    """One deviation of a replay of edited code from the recording."""

    kind: str
    """One of MEANINGS."""
    event: int
    """The number of the recorded event concerned; 0: none."""
    recorded: str
    """A text for that event; empty if there is none."""
    asked: str
    """The program's request; empty if there was none."""
    detail: str
    """More about it; may be empty."""
    lane: int
    """The lane that deviated: 0 is the main one."""
    file: str
    """The program's own source file that was running."""
    line: int
    """The line there."""
    function: str
    """The function there."""

    def __str__(self) -> str:
        """Return it in one line."""
        number = f"event {self.event}, " if self.event else ""
        what = self.recorded or self.asked
        if self.kind == "unused":
            return f"unused: {self.detail} recorded events were not requested; the first is event {self.event}, {what}"
        if self.kind == "written" and self.asked:
            what = self.asked
        text = f"{self.kind}: {number}{what}".rstrip(": ,")
        if self.detail:
            text += f" ({self.detail})"
        text += f" -- {MEANINGS[self.kind]}"
        return f"{text}; {self.function} at {self.file}:{self.line}" if self.line else text


@dataclass(frozen=True, slots=True)
class ReplayEnding:
    """The core's report at the end of a replay."""

    liberties: tuple[Liberty, ...]
    """In order of occurrence; at most 2000."""
    liberty_counts: dict[str, int]
    """Number of deviations of each kind; kinds without any are left out."""
    exception: Uncaught | None
    """The cause of the program's end."""
    check: CheckResult | None
    """None if no check was requested, or if the program's end was not reached."""
    answer: str = ""
    """The program's own report of its result, such as a test's; empty: none."""
    draws: Draws = NO_DRAWS
    """The random numbers and readings of the clock that it took."""
    looked: frozenset[tuple[str, str]] | None = None
    """The questions about today's disk that a replay of edited code asked: `stat`, `listdir`, `read` or `data`, and the
    path as recorded. None: unknown.
    """


NOTHING = ReplayEnding((), {}, None, None)
"""For a replay that was ended before the core could report."""


def read_ending(data: bytes, recording: Recording) -> ReplayEnding:
    """Return the core's report."""
    if not data:
        return NOTHING
    report = decoded(data, _REPORT, "report of the end")
    liberties = tuple(_liberty(*each) for each in report["liberties"])
    return ReplayEnding(
        liberties=_with_events(liberties, recording),
        liberty_counts={kind: count for kind, count in report["counts"].items() if count},
        exception=_uncaught(*report["uncaught"]) if report["uncaught"] else None,
        check=_check(*report["check"]) if report["check"] else None,
        answer=report["said"][0] if report["said"] else "",
        draws=Draws(*(_taken(report["kinds"], *each) for each in report["draws"])),
        looked=frozenset(map(tuple, report["looked"])) if report["looked_all"] else None,
    )


def _taken(kinds: Sequence[tuple[str, str]], data: bytes, total: int) -> DrawSequence:
    """Decode a sequence: two bytes for each draw, the number of its kind from 1."""
    numbers = [data[at] | data[at + 1] << 8 for at in range(0, len(data) - 1, 2)]
    if max(numbers, default=0) > len(kinds) or min(numbers, default=1) < 1:
        raise ForgedMessage("it sent a malformed report of the end")
    return DrawSequence(tuple((kinds[number - 1][0], kinds[number - 1][1]) for number in numbers), total)


def _uncaught(name: str, text: str | None, frames: list[tuple[str, int, str, bool]]) -> Uncaught:
    return Uncaught(name, text, tuple(ExceptionFrame(*frame) for frame in frames))


def _check(verdict: str, error: str, text: str | None) -> CheckResult:
    return CheckResult(verdict, f"{error}: {text}" if error and text else error)


def _liberty(
    kind: str,
    event: int,
    gate: str,
    arguments: Any,
    written: bytes,
    detail: str,
    lane: int,
    file: str,
    line: int,
    function: str,
) -> Liberty:
    asked = show_crossing(gate, arguments if isinstance(arguments, tuple) else ()) if gate else ""
    if written and kind == "written":
        asked += f" with {show_value(written, 60)}"
    return Liberty(kind, event, "", asked, detail, lane, file, line, function)


def _with_events(liberties: tuple[Liberty, ...], recording: Recording) -> tuple[Liberty, ...]:
    wanted = {each.event for each in liberties if 0 < each.event <= MOST_SHOWN_EVENTS}
    texts: dict[int, str] = {}
    last = max(wanted, default=0)
    try:
        for event in recording.events() if wanted else ():
            if isinstance(event, Event) and event.number in wanted:
                texts[event.number] = show_call(event)
            if isinstance(event, Event) and event.number >= last:
                break
    except ReplaydbgError:
        # The recording is damaged further on: later events get no text.
        return liberties
    return tuple(replace(each, recorded=texts.get(each.event, "")) for each in liberties)
