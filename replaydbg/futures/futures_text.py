"""The result of futures as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from replaydbg.classes import dataclass
from replaydbg.errors import clause, quoted
from replaydbg.events.show import printable
from replaydbg.futures.deciding_text import deciding_lines
from replaydbg.futures.future import FutureVerdict
from replaydbg.futures.grouping import FutureGroup
from replaydbg.futures.launcher import Futures
from replaydbg.futures.searches.systematic import SystematicCount

MOST_SHOWN = 20
"""How many groups are listed; the JSON has all."""
_MOST_PLACES = 8
"""Positions of processes that are shown."""
_LONGEST = 100
"""Characters of an ending or a line of output."""
_DIRECTORY = re.compile(r" at /\S*/([^/ ]+:\d+)$")


@dataclass(frozen=True, slots=True)
class FuturesReport:
    """The result, with the names of what was kept."""

    found: Futures
    names: Mapping[int, str]
    """The names in commands, by seed."""
    shrunk: Mapping[str, str] = MappingProxyType({})
    """Those of recordings with what decides, by how they end (Future.kind)."""


def futures_lines(report: FuturesReport) -> Iterator[str]:
    """Yield the share that failed, the groups, and the command for the next step."""
    found = report.found
    yield _first_line(found)
    deciding = {each.ending: each for each in found.deciding}
    for group in found.groups[:MOST_SHOWN]:
        yield from _group_lines(group, report.names, found)
        if group.verdict is FutureVerdict.FAILED and (shrunk := deciding.pop(group.example.kind, None)) is not None:
            yield from (f"         {line}" for line in deciding_lines(shrunk, report.shrunk.get(shrunk.ending, "")))
    if len(found.groups) > MOST_SHOWN:
        yield f"  and {len(found.groups) - MOST_SHOWN:,} more groups (--json lists all)"
    if found.systematic is not None:
        yield _all_text(found.systematic)
    if found.is_fixed:
        why = "no threads were switched, no random numbers drawn, and no event loop ran"
        yield f"Every future is the same, 1 was run: {why}."
    if found.unkept:
        yield f"Recordings are missing: {clause(found.unkept)}."
    if (name := next(filter(None, (opened_name(each, report.names) for each in found.groups)), "")) != "":
        yield f"Open one: replaydbg debug {quoted(name)}"
    if words := next_command(report):
        yield f"Find what decides: {' '.join(map(quoted, words))}"


def opened_name(group: FutureGroup, names: Mapping[int, str]) -> str:
    """Return the name of a recording of a group, of several processes that of the one that decided; empty: none."""
    kept = next((each for each in group.futures if each.seed in names), None)
    if kept is None:
        return ""
    return f"{names[kept.seed]}/{kept.process}" if kept.process > 1 else names[kept.seed]


def next_command(report: FuturesReport) -> tuple[str, ...]:
    """Return the words that find what decides between a future that passed and one of the smallest failing group.

    Empty without recordings of both, and for groups.
    """
    if report.found.cut is not None:
        return ()

    def examples(verdict: FutureVerdict) -> list[str]:
        groups = sorted((each for each in report.found.groups if each.verdict is verdict), key=lambda g: len(g.futures))
        return [report.names[each.seed] for group in groups for each in group.futures if each.seed in report.names]

    passed, failed = examples(FutureVerdict.PASSED), examples(FutureVerdict.FAILED)
    return ("replaydbg", "bisect", "recordings", passed[-1], failed[0]) if passed and failed else ()


def _first_line(found: Futures) -> str:
    share = found.share
    low, high = share.bounds
    futures = "1 future" if found.count == 1 else f"{found.count:,} futures"
    text = f"{futures} of {printable(found.name)} {_where(found)}: "
    if not share.decided:
        return f"{text}none has a verdict, in {found.seconds:.1f} s"
    text += f"{share.failed:,} of {share.decided:,} failed"
    if not found.is_fixed and found.systematic is None:
        text += f" ({share.failed / share.decided:.0%}; 95 % confidence interval: {low:.0%} to {high:.0%})"
    undecided = found.count - share.decided
    if undecided:
        text += f"; {undecided:,} inconclusive"
    return f"{text}, in {found.seconds:.1f} s"


def _where(found: Futures) -> str:
    if found.cut is None:
        return f"after event {found.event:,}"
    places = [f"{process}@{position}" for process, position in sorted(found.cut.items())]
    more = f" and {len(places) - _MOST_PLACES:,} more processes" if len(places) > _MOST_PLACES else ""
    return f"after events {', '.join(places[:_MOST_PLACES])}{more}"


def _group_lines(group: FutureGroup, names: Mapping[int, str], found: Futures) -> Iterator[str]:
    word = "inconclusive: " if group.verdict is FutureVerdict.INCONCLUSIVE else ""
    outputs = f", {group.outputs:,} different outputs" if group.outputs > 1 else ""
    kept = next((each.seed for each in group.futures if each.seed in names), None)
    word_of = "seed" if found.systematic is None else "number"
    example = f"{word_of} {group.example.seed}" if kept is None else f"{word_of} {kept}: {names[kept]}"
    yield f"{len(group.futures):7,}  {word}{_short(without_directory(group.ending))}{outputs} ({example})"
    if group.last_line and group.last_line not in group.ending and group.ending not in group.last_line:
        yield f"         | {_short(group.last_line)}"


def _all_text(count: SystematicCount) -> str:
    preemptions = f"up to {count.preemptions:,} preemption{'s' if count.preemptions != 1 else ''}"
    if count.left:
        return f"Schedules with {preemptions}: at least {count.left:,} were not tried. Try more with -n."
    every = f"But for {count.equal:,} that end as others do, all" if count.equal else "All"
    return f"{every} schedules with {preemptions} at lines of the program were tried."


def without_directory(ending: str) -> str:
    """Return an ending with only the name of the file in it: the JSON has the whole path."""
    return _DIRECTORY.sub(r" at \1", ending)


def _short(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
