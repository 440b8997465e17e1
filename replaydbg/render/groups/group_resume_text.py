"""The plan of resuming a group as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replaydbg.events.show import printable
from replaydbg.recovery.group_plan import GroupPlan
from replaydbg.recovery.recovery_line import LineMember
from replaydbg.render.resume_text import (
    clock_lines,
    continuation_lines,
    in_flight_texts,
    leftover_texts,
    more_acts,
    recovery_lines,
    resource_lines,
    shown_acts,
    source_lines,
    text_block,
    unlisted_acts,
)

_CHANNELS = {
    "pipe": "pipe",
    "fifo": "fifo",
    "pair": "socket pair",
    "connection": "connection",
    "waiting": "connection not accepted yet",
    "file": "socket",
}
"""The kinds of shared channels in words. `file` is one end of any kind, of which only a socket has bytes in flight."""


def group_start_line(plan: GroupPlan) -> str:
    """Return the sentence that is printed before the replays begin."""
    count = len(plan.line.running)
    return (
        f"replaying {count} process{'es' * (count != 1)} of {printable(plan.name)} up to the recovery line; then "
        f"{'the programs run' if count != 1 else 'the program runs'} live, with all your rights"
    )


def again_line(plan: GroupPlan) -> str:
    """Return the sentence that calls which reached outside of the group are made again; empty: there are none."""
    count = len(plan.acts)
    if not count:
        return ""
    calls, are = (f"{count:,} calls", "are") if count > 1 else ("1 call", "is")
    return f"{calls} that reached outside of the group {are} made again (--plan has the list)"


def group_plan_lines(plan: GroupPlan) -> list[str]:
    """Return the plan for people: the line, then what becomes of each process and of what is in flight."""
    lines = ["recovery line"]
    for member in plan.line.members.values():
        lines.append(f"  {_member(plan, member)}")
        own = plan.plans.get(member.number)
        if own is not None:
            lines += [f"  {each}" for each in resource_lines(own)]
            lines += [f"  {each}" for each in text_block("differs", own.differences)]
            lines += [f"  {each}" for each in text_block("in flight", _calls(plan, member))]
    lines += text_block("truncated", leftover_texts(plan.leftovers))
    changed = dict.fromkeys(source for each in plan.plans.values() for source in each.sources)
    lines += [*continuation_lines(plan.continuation), *source_lines(tuple(changed))]
    lines += text_block("in flight", _flying(plan))
    acts = [f"process {each.process}, event {each.event:,}: {each.shown}" for each in shown_acts(plan.acts)]
    acts += more_acts(len(acts), len(plan.acts), sum(each.is_standard for each in plan.acts))
    lines += text_block("done after", [*acts, *unlisted_acts(plan.plans.values())])
    lines += recovery_lines(plan.recovery, plan.seconds)
    return [*lines, *clock_lines([each.stood_ns for each in plan.plans.values()])]


def _member(plan: GroupPlan, member: LineMember) -> str:
    if not member.runs:
        return f"process {member.number}: has ended"
    later = plan.line.opened.member(member.number).events - member.position
    again = f" ({later:,} later event{'s are' if later > 1 else ' is'} executed again)" if later > 0 else ""
    return f"process {member.number}: after event {member.position:,}{again}"


def _calls(plan: GroupPlan, member: LineMember) -> Iterable[str]:
    """Return the calls in flight of a process with what is done, or that they are not known."""
    if plan.is_replayed:
        return in_flight_texts(plan.plans[member.number])
    if plan.goes_on_from_end(member):
        return ["a call that is not in the log: known only after the replay, printed before the program goes live"]
    return []


def _flying(plan: GroupPlan) -> Iterator[str]:
    """Yield, for each direction of a channel, how many bytes are in flight."""
    holders = {end: numbers for each in plan.shared.channels for end, numbers in each.holders.items()}
    for channel in plan.flying:
        for sender, pieces in channel.flying.items():
            receivers = sorted({number for end in channel.takers(sender) for number in holders.get(end, ())})
            to = f" to {_processes(receivers)}" if receivers else ""
            count = sum(each.length for each in pieces)
            yield f"{_CHANNELS[channel.kind]} from {_processes({each.process for each in pieces})}{to}: {count:,} bytes"


def _processes(numbers: Iterable[int]) -> str:
    words = [str(each) for each in sorted(numbers)]
    return f"process{'es' * (len(words) > 1)} {', '.join(words)}"
