"""The core's report when it ends a replay: parsed, compared with the recording, and turned into messages."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from replaydbg.classes import dataclass
from replaydbg.errors import Divergence, ReplaydbgError
from replaydbg.events.records import Event
from replaydbg.events.show import show_call, show_crossing, show_value
from replaydbg.log.coding.shapes import COUNT, ListOf, checked, decoded, one_of
from replaydbg.log.reader import Recording
from replaydbg.log.soundness import is_sound

UNSURE_PLACE = one_of((), (range(1, 65), (str, COUNT, str)))
"""The shape of a handler's place in doubt: the signal's number, and file, line and function; or nothing."""

_REPORT = {
    "kind": str,
    "detail": str,
    "gate": str,
    "event": COUNT,
    "lane": COUNT,
    "drift": COUNT,
    "unsure": COUNT,
    "unsure_place": UNSURE_PLACE,
    "memory": COUNT,
    "stack": ListOf((str, COUNT, str)),
}

# Each kind is a section of docs/reference/messages.md, `divergence-KIND`.
CAUSES = {
    "call": "The program made a different call from the recorded one. "
    "Common cause: an input that replaydbg does not record.",
    "site": "The program made the same call from a different place: the running code is not the recorded code.",
    "arguments": "The program made the call with different arguments. "
    "Common cause: an input that replaydbg does not record (an address, an order).",
    "bytes": "The program wrote different bytes than in the recording. "
    "Common cause: an address in a text, or an input that replaydbg does not record.",
    "early": "The program ended earlier than in the recording.",
    "endless": "The replay computes here for much longer than the program ever did between two events. "
    "Common cause: a loop that waits for memory that another process writes.",
    "computing": "The program was computing when its recording ended; the replay ends after about as much computation.",
    "shortage": "Memory ran out for a small object when this was recorded, and a replay cannot repeat which "
    "allocation failed.",
    "end": "The program continued after the point at which the recorded program ended.",
    "signal": "The replay never reached the recorded point at which a signal handler interrupted the program.",
    "unrecordable": "The result of this call could not be recorded, because it is an object of a C library, "
    "not plain data.",
    "unsupported": "The program did something that cannot be recorded yet.",
    "resume": "The log of the new recording cannot be written, so the program did not go live.",
    "refused": "Code tried to act on the system outside the replay, which is never allowed.",
    "content": "The content of a file that the program read is missing from the recording, "
    "or the recording was modified while it was replayed.",
    "corrupt": "The recording is damaged here.",
    "memory": "The replay ran out of memory while it read the recording.",
    "unusable": "The record here does not match what the replay does, although the recording is intact. "
    "Common causes: an earlier divergence that was not noticed, or a recording by another "
    "version of replaydbg.",
    "uncovered": "The program did something that replaydbg cannot record.",
    "status": "The program exited differently (exit code or signal), although every event matched.",
    "collector": "The state of the garbage collector differs from the recording "
    "(only replaydbg's own tests stop here).",
    "thread": "A different thread was running here in the recording.",
    "ticks": "The thread executed more or less code than in the recording. "
    "Common cause: an input that replaydbg does not record.",
    "unanswered": "The edited program needs an input that is not in the recording.",
    "stuck": "All threads of the edited program wait for each other; in the recording they did not.",
    "tools": "The program uses every tracing and monitoring slot of the interpreter, so lines cannot be counted.",
    "outside": "A future needed something from outside its process, which the recording does not have.",
    "deadlock": "All threads of a future wait, and nothing can wake one.",
    "descriptors": "The program uses a file descriptor number that the replay needs for itself.",
}


@dataclass(frozen=True, slots=True)
class ReplayStop:
    """Where and why the core ended a replay."""

    kind: str
    """One of CAUSES, or `stop` at a requested stop, or `drift`: replayed to its end, but see `drift` and `unsure`."""
    detail: str
    """More about it; may be empty."""
    gate: str
    """The gate that the program called; empty if none."""
    event: int
    """The number of the requested event."""
    arguments: Any
    """The arguments of the call, or None."""
    written: bytes
    """The beginning of the bytes that differ from the recorded ones; empty for other causes."""
    stack: tuple[str, ...]
    """The program's frames, innermost last."""
    lane: int
    """The lane that made the request: 0 is the main one."""
    drift: int
    """The event before which the garbage collector's state was first seen to differ; 0: never."""
    unsure: int
    """The event before which a signal handler ran at a place that could not be distinguished from others; 0: never."""
    unsure_place: str
    """The signal and that place; empty if there is none."""
    memory: int
    """The event before which another process first wrote into shared memory while the program computed; 0: never."""
    is_mixed: bool
    """Whether bytes were shown in the order of writing although the program had moved its position in the output."""

    @property
    def is_end_of_log(self) -> bool:
        """Whether the recording simply ends here (the program was killed), which is not a divergence."""
        return self.kind == "computing" or (self.kind == "end" and not self.detail)

    def divergence(self, recording: Recording, name: str) -> Divergence:
        """Return an error that compares this with the recorded event; `name` is the recording's name in commands."""
        # The core only detects that it cannot continue: damage to the file shows when all of it has been read.
        if self.kind == "corrupt" and is_sound(recording):
            return replace(self, kind="unusable").divergence(recording, name)
        before, recorded = _around(recording, self.event)
        observed = self.detail or "the end of the program"
        if self.gate:
            observed = show_crossing(self.gate, self.arguments if isinstance(self.arguments, tuple) else ())
        if self.kind == "unanswered" and self.detail:
            observed += f": {self.detail}"
        if self.kind == "bytes":
            observed += f" with other bytes: {show_value(self.written, 400)}"
        if self.kind == "refused":
            observed = self.detail
        return Divergence(
            recording=name,
            thread=str(self.lane) if self.lane else "main",
            event=self.event,
            recorded=show_call(recorded) if recorded is not None else "the end of the recording",
            observed=observed,
            where=self.stack[-1] if self.stack else "",
            stack=self.stack,
            last_agreeing=f"event {before.number}: {show_call(before)}" if before is not None else "",
            cause=self._cause() + self._memory() + self._drift(),
            kind=self.kind if self.kind in CAUSES else "",
        )

    def _memory(self) -> str:
        if not self.memory:
            return ""
        return (
            f" Before event {self.memory} another process wrote into shared memory while the program computed: "
            "what it read there without waiting for that process may differ."
        )

    def _drift(self) -> str:
        if not self.drift or self.kind == "collector":
            return ""
        return f" The garbage collector has differed since event {self.drift}: finalizers may have run at other points."

    def _cause(self) -> str:
        usual = CAUSES.get(self.kind, self.detail)
        if not self.unsure:
            return usual
        # What is usual for this kind would mislead: an iteration more or less explains every difference.
        begin, _, _ = usual.partition(" Common cause")
        return f"{begin} Probable cause: {unsure_text(self.unsure, self.unsure_place)}."


def unsure_text(event: int, place: str) -> str:
    """Return that a handler's place was ambiguous, without a full stop."""
    return (
        f"before event {event}, the handler of {place} may have run in another iteration of a loop than in the "
        "recording: the program's visible state was the same in several of them"
    )


def ended_differently(name: str, events: int, status: int, recorded: int | None) -> Divergence:
    """Return the error for a program that ended with another status than recorded, although every event matched."""
    kind, observed = "status", f"it ended with status {status}"
    if status == -signal.SIGSYS:
        kind = "refused"
        observed = "a system call while all signals were blocked, as in system() and posix_spawn(); its name is unknown"
    is_killed = status < 0 and kind == "status"
    if is_killed:
        observed = f"signal {_signal_name(-status)} ended it"
    return Divergence(
        recording=name,
        event=events,
        recorded=f"the program ended with status {recorded}" if recorded is not None else "the program was killed",
        observed=observed,
        cause=_KILLED if is_killed else CAUSES[kind],
        kind=kind,
    )


def ended_early(name: str, events: int, status: int, recorded: int | None) -> Divergence:
    """Return the error for a program that ended before the end of its recording, whatever its status is."""
    return Divergence(
        recording=name,
        event=events,
        recorded=f"the program ended with status {recorded}" if recorded is not None else "the program was killed",
        observed=f"it ended with status {status} before the end of the recording",
        cause="C code ended the process; in the recording it did not.",
        kind="early",
    )


def waited(name: str, events: int, seconds: float) -> Divergence:
    """Return the error for a replay that was ended because it waited for `seconds` without using the processor."""
    return Divergence(
        recording=name,
        event=events,
        recorded="the program continued",
        observed=f"it waited for {seconds:.0f} s without using the processor, at or before this event",
        cause="The replay waits for something that never happens during a replay. Common cause: native code that "
        "waits for another process.",
        kind="endless",
    )


_KILLED = (
    "A signal ended the replay but not the recorded program. It was sent from outside (by a person, or by the system "
    "when memory ran out), or C code crashed."
)


def _signal_name(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)


def place_in_doubt(place: Sequence[Any]) -> str:
    """Return the signal and the place of `UNSURE_PLACE` for people."""
    if not place:
        return "a signal"
    number, (file, line, function) = place
    return f"signal {_signal_name(number)} in {function} ({file}:{line})"


def read_report(data: bytes) -> ReplayStop:
    """Return the core's report at the end of the replay."""
    report = decoded(data, _REPORT, "report")
    frames = [f'File "{file}", line {line}, in {function}' for file, line, function in report["stack"]]
    return ReplayStop(
        kind=report["kind"],
        detail=report["detail"],
        gate=report["gate"],
        event=report["event"],
        arguments=report.get("arguments"),
        written=checked(report.get("bytes", b""), bytes, "report"),
        stack=tuple(reversed(frames)),
        lane=report["lane"],
        drift=report["drift"],
        unsure=report["unsure"],
        unsure_place=place_in_doubt(report["unsure_place"]) if report["unsure"] else "",
        memory=report["memory"],
        is_mixed=bool(report["mixed"]),
    )


def _around(recording: Recording, number: int) -> tuple[Event | None, Event | None]:
    """Return the events before and at `number` (None where there are none)."""
    last: deque[Event] = deque(maxlen=1)
    try:
        for event in recording.events():
            if not isinstance(event, Event):
                continue
            if event.number >= number:
                return (last[0] if last else None, event)
            last.append(event)
    except ReplaydbgError:
        # The recording is damaged further on; the part before it is shown.
        return (last[0] if last else None, None)
    return (last[0] if last else None, None)
