"""Compare the files that the processes of a group write with the disk, as far as that needs no replay."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.classes import replace
from replaydbg.recovery.group_plan import GroupPlan
from replaydbg.resources.kinds import OpenedFile
from replaydbg.resume.plan import Plan
from replaydbg.resume.reopening.compare_files import content_differences
from replaydbg.resume.reopening.reopen_files import grown
from replaydbg.resume.reopening.rules import is_compared, written_files
from replaydbg.resume.written import ends_with_last_write

_WRITES = frozenset(f"posix.{name}" for name in ("write", "writev", "pwrite", "pwritev", "sendfile")) | {
    "_io.FileIO.write"
}


def with_written_files(group: GroupPlan) -> GroupPlan:
    """Return the plan of a group with the differences of files that its processes write.

    Calls in flight can have made some of them: only the replays show these calls.
    """
    return replace(group, plans={number: _with_written(group, number, each) for number, each in group.plans.items()})


def _with_written(group: GroupPlan, process: int, plan: Plan) -> Plan:
    found = (*plan.differences, *_differences(group, process, plan))
    return replace(plan, differences=tuple(dict.fromkeys(found)))


def _differences(group: GroupPlan, process: int, plan: Plan) -> Iterator[str]:
    written = written_files(plan.resources)
    for each in plan.resources.opened:
        if is_compared(each) and each.absolute in written:
            yield from content_differences(each)
            difference = grown(each)
            if difference is not None and not is_growth_known(group, process, each):
                yield difference


def is_growth_known(group: GroupPlan, process: int, opened: OpenedFile) -> bool:
    """Whether what a file has at its end is truncated, or another process that appends to it wrote that last.

    Not if any of them has written after the cut: that is written again.
    """
    if any(each.path == opened.absolute for each in group.leftovers):
        return True
    if any(act.call in _WRITES for act in group.acts):
        return False
    others = (each for number, each in group.plans.items() if number != process)
    return any(
        isinstance(each, OpenedFile)
        and each.absolute == opened.absolute
        and each.last_write is not None
        and ends_with_last_write(each)
        for other in others
        for each in other.resources.opened
    )
