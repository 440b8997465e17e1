"""The plan of resuming a group as text."""

from __future__ import annotations

from replaydbg.events.show import printable
from replaydbg.recovery.group_plan import GroupPlan
from replaydbg.recovery.recovery_line import LineMember
from replaydbg.render.resume_text import MOST_ACTS_SHOWN, resource_lines, text_block


def group_start_line(plan: GroupPlan) -> str:
    """Return the sentence that is printed before the replays begin."""
    count = len(plan.line.running)
    return (
        f"replaying {count} process{'es' * (count != 1)} of {printable(plan.name)} to the recovery line; from there "
        f"their programs run live, with all your rights"
    )


def group_plan_lines(plan: GroupPlan) -> list[str]:
    """Return the plan for people: the line, then what becomes of each process and of what is in flight."""
    lines = ["recovery line"]
    for member in plan.line.members.values():
        lines.append(f"  {_member(plan, member)}")
        own = plan.plans.get(member.number)
        if own is not None:
            lines += [f"  {each}" for each in resource_lines(own)]
            lines += [f"  {each}" for each in text_block("differs", own.differences)]
    flying = [f"{each.kind}: {each.count():,} bytes" for each in plan.flying]
    lines += text_block("in flight", flying)
    acts = [f"process {each.process}, event {each.event:,}: {each.text}" for each in plan.acts[:MOST_ACTS_SHOWN]]
    if len(plan.acts) > len(acts):
        acts.append(f"and {len(plan.acts) - len(acts):,} more")
    return [*lines, *text_block("done after", acts)]


def _member(plan: GroupPlan, member: LineMember) -> str:
    if not member.runs:
        return f"process {member.number} has ended"
    events = plan.line.opened.member(member.number).events
    again = f", {events - member.position:,} events are done again" if events > member.position else ""
    return f"process {member.number} from event {member.position:,}{again}"
