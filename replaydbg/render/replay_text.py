"""The notice before a replay of a foreign recording, and the result of a replay: where it stopped, how it differs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from replaydbg.config import is_fence_wanted
from replaydbg.errors import ReplaydbgError, quoted
from replaydbg.events.show import printable
from replaydbg.log.reader import open_recording
from replaydbg.replay.result import ReplayResult


def position_lines(result: ReplayResult, step: int) -> list[str]:
    """Return where a replay stopped, and the stack; `step`: the requested number of lines after the event."""
    return [f"replaydbg: {_where(result, step)}", *(f"  {printable(line)}" for line in result.stack)]


def _where(result: ReplayResult, step: int) -> str:
    if result.clock is None:
        return f"before event {result.events + 1}"
    lines = result.clock.lines_since_event
    if result.clock.has_stopped:
        return f"at line {lines} after event {result.clock.event}, before it runs"
    return f"before event {result.events + 1}: only {lines} lines run before it, not {step}"


def note_lines(result: ReplayResult) -> Iterator[str]:
    """Yield what may differ from the recorded run although no event did, and why the recording ends early."""
    if result.drift:
        yield (
            "every event matched, but the garbage collector has differed "
            f"since event {result.drift}: finalizers may have run at other points."
        )
    if result.unsure and result.divergence is None:
        # Imported here: few replays have it. The text contains names that the program chose.
        from replaydbg.replay.report import unsure_text

        yield f"every event matched, but {printable(unsure_text(result.unsure, result.unsure_place))}."
    if result.is_mixed:
        yield (
            "the program changed its position in its output file; this replay prints the bytes in the order "
            "in which they were written. Redirect this output to a new file to get the same file."
        )
    for text in result.missing:
        yield f"{text}."
    for text in result.uncovered:
        # The text may contain names that the program chose.
        yield f"not covered by the recording: {printable(text)}."
    if result.ended_early:
        yield f"the recording ends here, after event {result.events}: {printable(result.ended_early)}."


def foreign_text(path: Path, name: str) -> str:
    """Return one sentence about a recording that is not this user's; `name` is how the user names it.

    Empty: no program of it can run, since it cannot be read or needs secrets.
    """
    try:
        with open_recording(path) as recording:
            recording.check_secrets()
            signed = recording.signature
    except ReplaydbgError:
        return ""  # as the command is about to find out
    shown = printable(quoted(name))
    # A copy of a live directory may be the user's own, see `origin`.
    doubt = f"nothing shows that you recorded {shown}" if path.is_dir() else f"{shown} was not recorded by you"
    if signed is not None:
        doubt += f", {'but' if signed.is_trusted else 'and'} is signed by {printable(str(signed))}"
    how = "behind the fence" if is_fence_wanted() else "with all your rights"
    return f"{doubt} with this installation: the program in it now runs {how} (see messages#foreign-recording)."
