"""Stable properties of a group as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replaydbg.events.records import Site
from replaydbg.events.show import printable
from replaydbg.groups.group_waits import LOCK, Blocked
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.groups.stable_properties import Deadlock, Termination
from replaydbg.groups.stretches import Stretch
from replaydbg.render.groups.cuts_text import cut_text
from replaydbg.render.groups.invariants_text import counted, shown_value
from replaydbg.render.paths import short_path

COLUMNS = ("thread", "waits for", "of", "line")

_WAITS = {
    LOCK: "another thread of its process",
    "receive": "bytes",
    "send": "room for bytes",
    "poll": "one of several channels",
    "child": "the end of a child",
    "semaphore": "a semaphore",
    "file-lock": "a file lock",
    "eventfd": "a write to an eventfd",
    "outside": "something outside the group",
}


def deadlock_sentence(found: Deadlock) -> str:
    """Return what a deadlock is, and since when."""
    processes = sorted({each.process for each in found.core})
    since = f"{found.last.process}@{found.last.position}"
    kind = "deadlock" if found.is_certain else "possible deadlock"
    if len(processes) == 1:
        return f"{kind} since {since}: process {processes[0]} waits for itself"
    numbers = f"{', '.join(map(str, processes[:-1]))} and {processes[-1]}"
    return f"{kind} since {since}: processes {numbers} wait for each other"


POSSIBLE = (
    "It is a deadlock unless a thread waits for a lock of its own process only for a time: timeouts of locks are not "
    "recorded."
)


def blocked_rows(
    opened: OpenedGroup, blocked: Sequence[Blocked], lines: Mapping[int, Site] | None = None
) -> Iterator[tuple[str, ...]]:
    """Yield the cells of threads that wait; `lines` has those of the main threads that are known, by process."""
    opened.read_sites([opened.owner(each.process, each.event) for each in blocked if each.event])
    for each in blocked:
        thread = f"{each.process}@{each.position}" + (f" thread {each.lane}" if each.lane else "")
        what = _WAITS[each.kind] + (f" ({printable(each.name)})" if each.name else "")
        yield thread, what, ", ".join(map(str, each.holders)), _line(opened, each, lines or {})


def _line(opened: OpenedGroup, each: Blocked, lines: Mapping[int, Site]) -> str:
    process, event = opened.owner(each.process, each.event)
    own = lines.get(each.process) if not each.lane else None
    site = own or (opened.site(process, event) if each.event else None)
    if site is None or site.file is None:
        return "unfinished call" if not each.event else ""
    file = printable(short_path(site.file, opened.cwd[each.process]))
    text = printable(opened.line(process, site))
    return f"{file}:{site.line}" + (f"  {text}" if text else "")


def termination_sentence(found: Termination | None) -> str:
    """Return since when nothing happened any more."""
    if found is None:
        return "not terminated: at the end of the recordings, a process could go on or something was in flight"
    if not found.blocked:
        return f"terminated since {cut_text(found.cut.positions)}: all processes have ended"
    return f"terminated since {cut_text(found.cut.positions)}: all processes wait or have ended, nothing is in flight"


def stretch_lines(chain: Sequence[Mapping[int, int]], found: Sequence[Stretch]) -> Iterator[str]:
    """Yield a line for each stretch of cuts with the same total."""
    for each in found:
        number = counted(each.last - each.first + 1, "cut")
        yield f"{printable(shown_value(each.total))}\tfrom {cut_text(chain[each.first])}\t{number}"
