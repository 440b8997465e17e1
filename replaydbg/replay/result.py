"""The result of a replay: the core's report, the program's status, and the recorded end combined."""

from __future__ import annotations

import errno
import os
import signal

from replaydbg.classes import dataclass, field, replace
from replaydbg.errors import Divergence, NoFence
from replaydbg.log.reader import Recording

ENDS_EARLY = 6
"""The exit code of a replay that reached the end of the recording before the program's own end."""

DIVERGED = 4
"""The exit code of a replay that diverged."""

_DEADLOCK = 5
"""The exit code of a program that was ended in a deadlock (EXIT_DEADLOCK in the core)."""

_ENDS_ITSELF = frozenset(
    f"{module}.{name}"
    for module, names in {
        "posix": ("kill", "killpg", "abort"),
        "_signal": ("raise_signal", "pthread_kill", "pidfd_send_signal"),
    }.items()
    for name in names
)
"""Calls with which a program ends itself: they never return, so a recording that ends in one of them is complete."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.replay.clock import ClockReport
    from replaydbg.replay.draws import Draws
    from replaydbg.replay.ending import CheckResult, Liberty, Outcome
    from replaydbg.replay.report import ReplayStop


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a replay."""

    status: int
    """The program's exit code, or minus the number of the signal that ended it when it was recorded."""
    divergence: Divergence | None
    """Where the program diverged from the recording; None if nowhere."""
    events: int
    """Number of replayed events (0 if the program ended by itself: then all)."""
    ended_early: str
    """Why the recording ends before the program did (a kill, a full disk); empty if it does not."""
    stack: tuple[str, ...] = ()
    """The program's stack when it was stopped, innermost last."""
    drift: int = 0
    """The event before which the garbage collector's state was first seen to differ from the recording; 0: never."""
    unsure: int = 0
    """The event before which a signal handler ran at a place that could not be distinguished from others; 0: never."""
    unsure_place: str = ""
    """The signal and that place; empty if there is none."""
    python: str = ""
    """The version of Python that ran it."""
    clock: ClockReport | None = None
    """The counts of the step clock, if there was one."""
    outcome: Outcome | None = None
    """How the program ended; None unless requested, or if the replay ended before the program did."""
    liberties: tuple[Liberty, ...] = ()
    """The deviations of a lenient replay, in order; at most the first 2000."""
    liberty_counts: dict[str, int] = field(default_factory=dict)
    """Number of deviations of each kind."""
    cannot_test: str = ""
    """Why a lenient replay did not find out how the edited program ends on these inputs; empty if it did."""
    check: CheckResult | None = None
    """The result of the check at the program's end; None if none was given, or if the end was not reached."""
    answer: str = ""
    """The program's own report of its result in a lenient replay, such as a test's; empty: none."""
    draws: Draws | None = None
    """The random numbers and readings of the clock that it took; None unless the outcome was requested."""
    looked: frozenset[tuple[str, str]] | None = None
    """The questions about today's disk that it asked, see `ReplayEnding`; None: unknown."""
    is_mixed: bool = False
    """Whether the program moved its position in an output file, and its bytes were shown in the order of writing
    instead.
    """
    missing: tuple[str, ...] = ()
    """Parts of the output that are not in the recording: those that child processes wrote to the same streams."""
    uncovered: tuple[str, ...] = ()
    """Actions of the program that no recording covers, as noted during the recording."""

    @property
    def is_whole(self) -> bool:
        """Whether the replay reached the program's own end, without a divergence."""
        return self.divergence is None and not self.ended_early

    @property
    def exit_code(self) -> int:
        """The exit code of a command: the program's own code only if all of its run was replayed."""
        if self.divergence is not None:
            return DIVERGED
        if self.ended_early:
            return ENDS_EARLY
        return self.status if self.status >= 0 else 128 - self.status


_WHOLE = b"whole"
"""The report of a replay that reached the program's end with all events used."""


def strict_result(recording: Recording, status: int, report: bytes, is_cut: bool, name: str) -> ReplayResult:
    """Return the result of a replay that must match the recording."""
    end = recording.end
    recorded = end.status if end is not None else None
    events = end.events if end is not None else 0
    is_as_recorded = status == recorded or (status != -signal.SIGSYS and (recorded is None or is_cut))
    # A replay ended by a signal (a crash of C code) reports nothing; any other end without a report came too early.
    if is_as_recorded and (report == _WHOLE or (not report and status < 0)):
        return ReplayResult(status, None, events, (end.reason or "") if end is not None else "")
    # Imported here: it takes 20 ms, which a replay without incidents need not pay.
    from replaydbg.replay.report import ended_differently, ended_early, read_report

    if report and report != _WHOLE:
        stop = read_report(report)
        if stop.kind != "drift":
            return _stopped(recording, stop, is_cut, name)
        if is_as_recorded:
            early = (end.reason or "") if end is not None else ""
            return _with_doubts(ReplayResult(status, None, events, early), stop)
    elif not report and status >= 0:
        return ReplayResult(4, ended_early(name, events, status, recorded), 0, "")
    if recorded is not None and recorded < 0 <= status:
        # A signal from outside ended it after its last crossing; a replay gets no such signal, and ran to the end.
        return ReplayResult(recorded, None, events, why_it_ends(recording, is_cut))
    if end is not None and end.reason and status >= 0:
        # Its logs ended before the program did, even before the interpreter could start: its status says nothing.
        return ReplayResult(status, None, events, end.reason)
    return ReplayResult(4, ended_differently(name, events, status, recorded), 0, "")


def _ended_differently(name: str, events: int, status: int, recorded: int | None) -> Divergence:
    # Imported here, as above.
    from replaydbg.replay.report import ended_differently

    return ended_differently(name, events, status, recorded)


def lenient_result(recording: Recording, status: int, report: bytes, is_cut: bool, name: str) -> ReplayResult:
    """Return the result of a lenient replay: its end is not compared with the recording."""
    end = recording.end
    if report:
        # Imported here, as in `strict_result`.
        from replaydbg.replay.report import read_report

        result = _stopped(recording, read_report(report), is_cut, name)
        if result.divergence is None:
            return result
        return replace(result, cannot_test=result.divergence.as_reason())
    if status == -signal.SIGXCPU:
        return ReplayResult(status, None, 0, "", cannot_test="it exceeded the CPU time limit")
    if status == -signal.SIGSYS:
        error = _ended_differently(name, 0, status, 0)
        return ReplayResult(4, error, 0, "", cannot_test=error.as_reason())
    return ReplayResult(status, None, end.events if end is not None else 0, "")


def waiting_result(recording: Recording, seconds: float, name: str, *, is_lenient: bool) -> ReplayResult:
    """Return the result of a replay that was ended because it waited for `seconds` without using the processor."""
    # Imported here, as in `strict_result`.
    from replaydbg.replay.report import waited

    error = waited(name, recording.end.events if recording.end is not None else 0, seconds)
    return ReplayResult(DIVERGED, error, 0, "", cannot_test=error.as_reason() if is_lenient else "")


def with_ending(result: ReplayResult, data: bytes, recording: Recording) -> ReplayResult:
    """Return `result` with the core's report of the program's end."""
    # Imported here: most replays do not request it.
    from replaydbg.replay.ending import Outcome, read_ending

    ending = read_ending(data, recording)
    outcome: Outcome | None = None
    if result.divergence is None and not result.cannot_test:
        outcome = Outcome(result.status, ending.exception)
    elif ending.exception is not None:
        # The outcome is known; only the interpreter's display of it, or its clean-up, was missing.
        outcome = Outcome(None, ending.exception)
    return replace(
        result,
        outcome=outcome,
        cannot_test="" if outcome is not None else result.cannot_test,
        liberties=ending.liberties,
        liberty_counts=ending.liberty_counts,
        check=ending.check,
        answer=ending.answer,
        draws=ending.draws,
        looked=ending.looked,
    )


def _stopped(recording: Recording, stop: ReplayStop, is_cut: bool, name: str) -> ReplayResult:
    if stop.kind == "fence":
        raise NoFence(stop.detail)
    if stop.kind == "output":
        raise _output_refused(stop.detail)
    if stop.kind == "stop":
        return ReplayResult(0, None, stop.event - 1, "", stop.stack)
    if stop.is_end_of_log:
        status = recording.end.status if recording.end is not None else 3
        is_whole = _ended_itself(stop, status) or _was_ended_in_deadlock(recording)
        why = "" if is_whole and not is_cut else why_it_ends(recording, is_cut)
        why += COMPUTING if stop.kind == "computing" else ""
        return _with_doubts(ReplayResult(status, None, stop.event - 1, why), stop)
    return _with_doubts(ReplayResult(4, stop.divergence(recording, name), stop.event - 1, ""), stop)


def _output_refused(number: str) -> OSError:
    """Return the error for output of the replay that could not be written; `number` is an errno, as reported."""
    error = int(number) if number.isdecimal() and len(number) < 5 else errno.EIO
    return OSError(error, os.strerror(error))


def _with_doubts(result: ReplayResult, stop: ReplayStop) -> ReplayResult:
    """Return `result` with what may differ from the recorded run although no event did."""
    if result.divergence is not None:
        # Its text gives the garbage collector already.
        return replace(result, unsure=stop.unsure, unsure_place=stop.unsure_place)
    return replace(result, drift=stop.drift, unsure=stop.unsure, unsure_place=stop.unsure_place, is_mixed=stop.is_mixed)


COMPUTING = "; the replay stops after about the same amount of computation"
"""Follows the reason why a recording ends if the program computes after its last event."""


def _ended_itself(stop: ReplayStop, status: int) -> bool:
    """Whether the program's last action, which never returned, was to send itself the signal that ended it."""
    if status >= 0 or stop.gate not in _ENDS_ITSELF:
        return False
    arguments = stop.arguments if isinstance(stop.arguments, tuple) else ()
    return stop.gate == "posix.abort" or -status in arguments


def _was_ended_in_deadlock(recording: Recording) -> bool:
    """Whether its recorder ended the program because all of its threads waited (`--on-deadlock stop`)."""
    return recording.end is not None and recording.end.status == _DEADLOCK and bool(_noted(recording, "deadlock"))


def missing(recording: Recording) -> tuple[str, ...]:
    """Return the notes of a recording on missing parts of the program's output."""
    return _noted(recording, "children")


def uncovered(recording: Recording) -> tuple[str, ...]:
    """Return the notes of a recording on actions of the program that no recording covers."""
    return _noted(recording, "uncovered")


def _noted(recording: Recording, kind: str) -> tuple[str, ...]:
    notes = recording.end.notes if recording.end is not None else ()
    return tuple(note.text for note in notes if note.kind == kind)


def ended_by_itself(recording: Recording) -> bool:
    """Whether the program ran to an end that a replay reaches as well."""
    end = recording.end
    return end is not None and not end.reason and end.status >= 0


def why_it_ends(recording: Recording, is_cut: bool) -> str:
    """Return a text that explains why a recording ends before the program's own end."""
    if is_cut and recording.is_hidden and not recording.damage:
        if not recording.masked_for:
            return "a secret follows, which is masked for good: no key could be used when the recording was sealed"
        return f"a secret follows, which is encrypted for {' and '.join(recording.masked_for)}: you have no key for it"
    if is_cut:
        return "a part of it is damaged or missing" if recording.damage else "its recorder ended before it was complete"
    end = recording.end
    if end is None:
        return "the program and its recorder were killed, or are still running"
    if end.reason:
        return end.reason
    return f"signal {-end.status} ended the program" if end.status < 0 else "the program ended there without an event"
