"""The comparison of a recording's and a replay's tick traces as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replaydbg.events.show import printable
from replaydbg.replay import ReplayResult
from replaydbg.trace.compare import InsideBoth, TraceComparison, TraceDifference, TraceSide
from replaydbg.trace.trace_files import Kind, TraceEnd

GATES, FUNCTIONS = 12, 3
"""Number of gates with Python inside that are shown, and of functions for each: the first ones call the others."""

RECORDING_ONLY, REPLAY_ONLY = "in the recording only", "in the replay only"
UNEQUAL, BOTH = "in both, but not as often", "in both"
_ALONE = (
    "only one of the two runs did this work. If it fills a cache, counts something or imports a module, "
    "the control flow can differ later"
)
MEANINGS = {
    RECORDING_ONLY: _ALONE,
    REPLAY_ONLY: _ALONE,
    UNEQUAL: _ALONE,
    BOTH: "both runs did this work. Its own calls to the outside are not recorded",
}
"""The explanation of Python code inside a crossing, for a user."""


@dataclass(frozen=True, slots=True)
class Traced:
    """The result of one recording and one replay."""

    compared: TraceComparison
    """The comparison of the tick traces."""
    insides: tuple[InsideBoth, ...]
    """Python code inside crossings."""
    result: ReplayResult
    """How the replay ended."""
    name: str
    """The recording's name for commands; the recording is kept if something differs."""
    gates: Sequence[str]
    """The names of the gates; gate number n is at index n - 1."""

    @property
    def difference(self) -> TraceDifference | None:
        """The first difference that matters, if there is one."""
        difference = self.compared.difference
        if difference is None or not self.result.ended_early:
            return difference
        # The recording ends before the program did: so does the replay, in the middle of the program.
        return None if is_end(difference.replayed) else difference

    @property
    def is_equal(self) -> bool:
        """Whether the replay matched the recording as far as the two were compared."""
        return self.difference is None and self.result.divergence is None

    def gate(self, number: int) -> str:
        """Return the name of a gate."""
        return self.gates[number - 1] if 0 < number <= len(self.gates) else "an unknown call"


def trace_lines(found: Traced) -> list[str]:
    """Return the result as lines of text."""
    compared = found.compared
    amount = f"{compared.ticks:,} ticks, {compared.events:,} events"
    amount += f" in {compared.lanes} thread{'s' if compared.lanes != 1 else ''}" if compared.lanes else ""
    lines: list[str] = []
    if found.result.divergence is not None:
        lines += [str(found.result.divergence), ""]
    if found.difference is not None:
        lines += _difference(found, found.difference)
    elif found.result.divergence is None:
        lines.append(f"equal: {amount}{_how_far(found)}")
    else:
        lines.append(f"All earlier ticks are equal: {amount}{_how_far(found)}")
    if found.result.drift:
        lines.append(f"The garbage collector has differed in the replay since event {found.result.drift}.")
    if not found.is_equal:
        lines += ["", f"The recording is kept: {found.name}"]
    return [*lines, "", *_lint(found)]


def _how_far(found: Traced) -> str:
    if found.result.ended_early:
        return f", up to where the recording ends: {found.result.ended_early}"
    ending = found.compared.ending
    return "" if ending is TraceEnd.WHOLE else f"; the rest was not compared: {ending.value}"


def _difference(found: Traced, difference: TraceDifference) -> list[str]:
    after = f"event {difference.event:,}" if difference.event else "the start"
    after += f" ({found.gate(difference.gate)})" if difference.gate else ""
    lines = [f"The first difference is tick {difference.tick:,}, after {after}."]
    width = len("recorded")
    lines.append(f"  {'recorded':<{width}}  {_side(found, difference.recorded)}")
    lines.append(f"  {'replayed':<{width}}  {_side(found, difference.replayed)}")
    if difference.common:
        lines += ["", "Both runs before it:"]
        lines += [f"  {_side(found, side)}" for side in difference.common]
    return lines


def _side(found: Traced, side: TraceSide) -> str:
    item = side.item
    if item is None:
        return "(nothing: the run was killed)"
    if item.kind is Kind.END:
        return "the end of the run"
    if item.kind is Kind.EVENT:
        return f"thread {item.lane}: an event, {found.gate(item.number)}"
    return f"thread {item.lane}: {printable(side.file)}:{side.line} in {printable(side.function)}"


def is_end(side: TraceSide) -> bool:
    """Whether a run had ended there, or was killed."""
    return side.item is None or side.item.kind is Kind.END


def _lint(found: Traced) -> list[str]:
    if not found.insides:
        return ["No Python function was called inside a recorded call."]
    groups: dict[tuple[str, str], list[InsideBoth]] = {}
    for each in found.insides:
        gate = found.gate(each.key.gate) if each.key.gate else "replaydbg's own code"
        groups.setdefault((gate, _mode(each)), []).append(each)
    lines = ["Python functions called inside recorded calls, where nothing is recorded or counted:"]
    for (gate, mode), functions in [*groups.items()][:GATES]:
        lines.append(f"  inside {gate}, {mode}, first after event {functions[0].first_event:,}:")
        lines += [f"    {_function(each)}" for each in functions[:FUNCTIONS]]
        if len(functions) > FUNCTIONS:
            lines.append(f"    and {len(functions) - FUNCTIONS} more (--json has all)")
    if len(groups) > GATES:
        lines.append(f"  and inside {len(groups) - GATES} more (--json has all)")
    modes = {mode for _, mode in groups}
    meanings = [f"  {mode}: {text}." for mode, text in MEANINGS.items() if mode in modes]
    return [*lines, "", "Meaning:", *meanings]


def _function(each: InsideBoth) -> str:
    key = each.key
    words = f"{printable(key.file)}:{key.line} in {printable(key.function)}, "
    if each.recorded == each.replayed or not each.recorded or not each.replayed:
        return words + _times(max(each.recorded, each.replayed))
    return words + f"{_times(each.recorded)} in the recording and {_times(each.replayed)} in the replay"


def _mode(each: InsideBoth) -> str:
    if each.recorded == each.replayed:
        return BOTH
    if not each.replayed:
        return RECORDING_ONLY
    return REPLAY_ONLY if not each.recorded else UNEQUAL


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
