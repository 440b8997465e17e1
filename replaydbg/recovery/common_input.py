"""The standard input of a group: its processes share one offset, which several of them may have moved."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace

from replaydbg.log.reader import open_recording
from replaydbg.recovery.recovery_line import RecoveryLine
from replaydbg.resources.follow import resources_at
from replaydbg.resources.kinds import StandardInput
from replaydbg.resume.plan import Plan
from replaydbg.resume.plan_rows import PlanRow
from replaydbg.resume.reopening.continued_input import NAME, bytes_read, is_continued, with_digests
from replaydbg.store.directory import member_path


def with_common_input(line: RecoveryLine, plans: Mapping[int, Plan]) -> dict[int, Plan]:
    """Return plans in which the standard input continues after what all processes of the group have read from it."""
    sharing = {number: plan for number, plan in plans.items() if any(map(_is_input, plan.rows))}
    reads = [plan.resources.standard_input for plan in sharing.values()]
    if sharing and _is_file():
        reads += _read_before(line)
    readers = [each for each in reads if each is not None and each.own]
    position = _position(readers)
    found = {}
    for number, plan in sharing.items():
        read = plan.resources.standard_input
        rows = (_with_position(row, read, position, len(readers)) if _is_input(row) else row for row in plan.rows)
        found[number] = replace(plan, rows=tuple(rows))
    return {**plans, **found}


def _is_input(row: PlanRow) -> bool:
    return row.kind == "streams" and row.text == NAME


def _is_file() -> bool:
    try:
        return stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:
        return False


def _read_before(line: RecoveryLine) -> Iterator[StandardInput]:
    """Yield what processes have read that had ended before the line: this takes a pass over their logs."""
    kind = ""
    for member in line.members.values():
        if member.row.recording is None:
            continue
        with open_recording(member_path(line.directory, member.number)) as recording:
            own = "".join(recording.header.stdio[:1])
            kind = kind or own  # that of the first process; one with another kind of standard input was given its own
            if member.runs or own != kind:
                continue
            read = with_digests(resources_at(recording, member.position), recording.content).standard_input
            if read is not None:
                yield read


def _position(readers: list[StandardInput]) -> int | None:
    """Return the offset after all that was read from one standard input; None: it is another one, or not known.

    The log of a process does not show that another one moved the offset between two of its reads. But then what they
    have read does not add up to one stretch, or differs from what is there.
    """
    if not readers or not all(map(is_continued, readers)):
        return None
    last = max(each.position for each in readers)
    if len(readers) == 1:
        return last
    first = min((part.offset for each in readers for part in each.parts), default=last)
    return last if last - first == sum(each.own for each in readers) else None


def _with_position(row: PlanRow, read: StandardInput | None, position: int | None, readers: int) -> PlanRow:
    if position is not None:
        return replace(row, reason=f"continues at byte {position:,}", input_position=position)
    if read is None or not read.own:
        return replace(row, reason="", input_position=None)
    others = ", and other processes as well" if readers > 1 else ""
    return replace(row, reason=f"{bytes_read(read)}{others}; none of them are skipped in this one", input_position=None)
