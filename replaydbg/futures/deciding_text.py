"""What decides in a group of failed futures, as text."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.futures.future import FutureVerdict
from replaydbg.futures.schedules.decisions import LoopPause, ReadyOrder, ThreadChoice
from replaydbg.futures.searches.deciding import DecidingSchedule, DecidingSwitch
from replaydbg.futures.source_places import place_text, thread_name

_WITHOUT = {
    FutureVerdict.PASSED: "passes",
    FutureVerdict.FAILED: "fails, too",
    FutureVerdict.INCONCLUSIVE: "has no verdict",
}


def deciding_lines(found: DecidingSchedule, name: str) -> Iterator[str]:
    """Yield the deviations from the usual schedule that make a group fail; `name` is that of a recording with them."""
    cost = f"{found.trials:,} futures, {found.seconds:.1f} s"
    example = f"; {name}" if name else ""
    if not found.switches:
        yield f"The usual schedule fails, too ({cost}{example})."
        return
    yield f"The usual schedule, except ({len(found.switches):,} of {found.deviated:,} deviations, {cost}{example}):"
    for switch in found.switches:
        yield from _switch_lines(found, switch)
    yield _confirmation(found)


def _switch_lines(found: DecidingSchedule, switch: DecidingSwitch) -> Iterator[str]:
    decision = switch.decision
    yield f"  after event {decision.event:,}: {switch_text(found, switch)}"
    if isinstance(decision, ThreadChoice):
        if decision.left.line:
            yield f"    {thread_name(found.threads, decision.lane)} at {place_text(found.sources, decision.left)}"
        if decision.entered.line:
            yield f"    {thread_name(found.threads, decision.to)} at {place_text(found.sources, decision.entered)}"
    elif decision.at.line:
        yield f"    {thread_name(found.threads, decision.lane)} at {place_text(found.sources, decision.at)}"


def switch_text(found: DecidingSchedule, switch: DecidingSwitch) -> str:
    """Return a deviation in a few words, without the places."""
    decision = switch.decision
    thread = thread_name(found.threads, decision.lane)
    if isinstance(decision, ReadyOrder):
        return f"what is ready at once is reported in another order ({decision.number + 1} of {decision.orders})"
    if isinstance(decision, LoopPause):
        return f"the event loop of {thread} looks {decision.microseconds / 1000:.3g} ms later for what is ready"
    other = thread_name(found.threads, decision.to)
    does = "goes on" if decision.entered.line else "begins"
    if decision.is_preemption:
        return f"{thread} gives way, and {other} {does}"
    first = thread_name(found.threads, decision.ready[0])
    how = "ends" if decision.has_ended else "waits"
    return f"where {thread} {how}, {other} {does} instead of {first}"


def _confirmation(found: DecidingSchedule) -> str:
    if found.future.kind != found.ending:
        return "Not confirmed: with these deviations alone it ends differently."
    these = "it" if len(found.switches) == 1 else "these"
    if len(found.switches) == 1:
        return f"Confirmed: with {these} the future fails, and without it {_WITHOUT[found.switches[0].without]}."
    ends = sorted({_WITHOUT[each.without] for each in found.switches})
    return f"Confirmed: with {these} the future fails, and without any one of them it {' or '.join(ends)}."
