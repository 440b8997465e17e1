"""`replaydbg cut`: show a consistent global state of a group of processes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from replaydbg.cli.common.group_problems import print_missing_ends, print_problems_of, problems_of
from replaydbg.cli.common.opening import opened as opened_recording
from replaydbg.cli.common.output import add_json, named_group, print_json, print_table
from replaydbg.debugger.values.values_at_moments import ModuleValue
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.groups.cut_heaps import heap_at
from replaydbg.groups.cut_values import values_at_positions
from replaydbg.groups.group_cuts import GroupCut, GroupCuts
from replaydbg.groups.group_ends import ends_have_tickets, require_ends
from replaydbg.groups.group_session import GroupSession
from replaydbg.groups.live_cuts import CheckedCut, LiveCuts
from replaydbg.groups.message_contents import MessageContents
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.groups.other_end import event_here
from replaydbg.groups.space_time import SpaceTime, SpaceTimeDiagram
from replaydbg.heap.storage.masked_snapshot import masked_snapshot_of
from replaydbg.heap.storage.snapshot_file import pack
from replaydbg.log.live_cuts import read_live_cuts, take_live_cut
from replaydbg.render.groups.cuts_text import (
    COLUMNS,
    FLYING_COLUMNS,
    LIVE_COLUMNS,
    LIVE_RIGHT,
    RIGHT,
    VALUE_COLUMNS,
    cut_remarks,
    flying_rows,
    live_row,
    position_rows,
    value_text,
)
from replaydbg.render.groups.invariants_text import counted
from replaydbg.render.groups.space_time_svg import space_time_svg
from replaydbg.render.json_data.cuts_json import cut_facts, flying_facts, live_facts, unfinished_facts, value_facts
from replaydbg.store.directory import member_path
from replaydbg.store.private import make_directory, write_private

_ENDS = ("end", "last")
_MOST_DIGITS = 100

AROUND, MOST_AROUND = 8, 1000
"""Events that are drawn of each process on both sides of the cut, and how many can be."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a group of processes: a path, a name such as run-12, or latest")
    parser.add_argument(
        "moments",
        metavar="PROCESS@MOMENT",
        nargs="*",
        help="how far a process may have gone, such as 2@898 or 2@exc (default: all as far as they went)",
    )
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="use only states in which each process waits for others or has ended",
    )
    parser.add_argument(
        "--now",
        action="store_true",
        help="take a cut of the running group without stopping it, keep the cut, and show it",
    )
    parser.add_argument("--name", default="", metavar="TEXT", help="with --now: name of the cut")
    parser.add_argument("--live", action="store_true", help="list the live cuts, which were taken while the group ran")
    parser.add_argument("--live-cut", metavar="CUT", help="show one live cut, by its number or name")
    parser.add_argument("--bytes", action="store_true", help="show the bytes in flight")
    parser.add_argument("--eval", metavar="EXPR", help="show an expression's value in each process (replays them)")
    parser.add_argument("--in", dest="module", metavar="MODULE", default="__main__", help="evaluate in this module")
    parser.add_argument(
        "--heap",
        metavar="DIRECTORY",
        help="write a heap snapshot of each process at the cut there, for `heap` and `diff` (replays them)",
    )
    parser.add_argument("--svg", metavar="FILE", help="also write a space-time diagram of the cut to this file")
    parser.add_argument(
        "--around",
        metavar="N",
        type=int,
        default=AROUND,
        help=f"draw N events of each process on both sides of the cut (default: {AROUND})",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the cut; 1 if a recording of the group is missing or damaged, 3 if the cut may not be consistent."""
    _check(args)
    directory = named_group(args.recording)
    if args.now:
        _take(directory, args)
    opened = OpenedGroup(directory)
    cuts = GroupCuts(opened)
    if args.live:
        _require_ends(args, cuts)
        return _list(args, cuts)
    with ExitStack() as stack:
        sessions = _Sessions(opened, stack)
        wanted: dict[int, int] = {}
        for process, position in (_position(cuts, sessions, each) for each in args.moments):
            wanted[process] = min(wanted.get(process, position), position)
        _require_ends(args, cuts)
        live = LiveCuts(cuts).checked(LiveCuts(cuts).find(args.live_cut)) if args.live_cut is not None else None
        cut = cuts.latest(wanted, quiet=args.quiet) if live is None else live.cut
        values = sessions.values(cut, args.eval, args.module) if args.eval is not None else None
        heaps = sessions.write_heaps(cut, Path(args.heap)) if args.heap is not None else None
        if args.svg is not None:
            _draw(args.svg, SpaceTime(cuts).around(cut, args.around), opened)
        _show(args, cuts, cut, _Computed(values, heaps), live)
    print_problems_of(opened)
    return 1 if opened.problems else 3 if cut.doubts or (live is not None and live.differences) else 0


def _require_ends(args: argparse.Namespace, cuts: GroupCuts) -> None:
    """Let cuts meet what ends of streams need; not live ones whose clock does not have these."""
    if not (args.live or args.live_cut is not None) or ends_have_tickets(cuts):
        print_missing_ends(require_ends(cuts))


def _check(args: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    chosen = [name for name in ("now", "live", "live_cut") if getattr(args, name)]
    if len(chosen) > 1:
        raise UsageError("Use one of --now, --live and --live-cut.")
    if args.live and (args.bytes or args.eval is not None or args.heap is not None):
        raise UsageError("--live cannot be combined with --bytes, --eval or --heap: use --live-cut CUT.")
    if chosen and (args.moments or args.quiet):
        raise UsageError(f"--{chosen[0].replace('_', '-')} cannot be combined with moments or --quiet.")
    if args.svg is not None and args.live:
        raise UsageError("--svg cannot be combined with --live: use --live-cut CUT.")
    if not 1 <= args.around <= MOST_AROUND:
        raise UsageError(f"--around must be between 1 and {MOST_AROUND} (got {args.around}).")
    if args.name and not args.now:
        raise UsageError("--name needs --now.")


def _take(directory: Path, args: argparse.Namespace) -> None:
    """Take a live cut, which is shown then. Raises UsageError if the group does not run."""
    try:
        take_live_cut(directory, args.name)
    except FileNotFoundError:
        raise UsageError(
            f"{args.recording} is no longer running. Its recordings have cuts at any moment: leave out --now."
        ) from None
    args.live_cut = str(len(read_live_cuts(directory)))


def _list(args: argparse.Namespace, cuts: GroupCuts) -> int:
    """List the live cuts; 3 if one is not what the search for consistent cuts finds."""
    live = LiveCuts(cuts)
    checked = [live.checked(number) for number in range(1, len(live.taken) + 1)]
    if args.json:
        facts = {"path": str(cuts.opened.directory), "cuts": [live_facts(each) for each in checked]}
        print_json(facts | {"problems": problems_of(cuts.opened)})
    else:
        print_table(LIVE_COLUMNS, (live_row(cuts, each) for each in checked), right=LIVE_RIGHT)
        for each in checked:
            for line in each.differences:
                print(f"replaydbg: live cut {each.number}: {printable(line)}.", file=sys.stderr)
    print_problems_of(cuts.opened)
    return 1 if cuts.opened.problems else 3 if any(each.differences for each in checked) else 0


class _Computed(NamedTuple):
    """Results of replays of the processes at a cut; None: they were not asked for."""

    values: dict[int, ModuleValue] | None
    heaps: dict[int, Path] | None


class _Sessions:
    """The sessions of the processes of a group, opened when the first one is needed."""

    def __init__(self, opened: OpenedGroup, stack: ExitStack) -> None:
        self._opened, self._stack = opened, stack
        self._group: GroupSession | None = None

    def group(self, process: int) -> GroupSession:
        if self._group is None:
            path = member_path(self._opened.directory, process)
            self._group = self._stack.enter_context(opened_recording(str(path))).group
        return self._group

    def values(self, cut: GroupCut, expression: str, module: str) -> dict[int, ModuleValue]:
        """Return the value of an expression in each process."""
        found = {}
        for process, position in cut.positions.items():
            session = self.group(process).session(process)
            found[process] = values_at_positions(session, [position], expression, module=module)[position]
        return found

    def write_heaps(self, cut: GroupCut, directory: Path) -> dict[int, Path]:
        """Write the heap of each process that had begun to a file; return these. Raises UsageError."""
        written = {}
        for process, position in sorted(cut.positions.items()):
            if position:
                session = self.group(process).session(process)
                data = pack(masked_snapshot_of(session.path, heap_at(session, position)))
                written[process] = directory / f"{process}.heap"
                try:
                    make_directory(directory)
                    write_private(written[process], data)
                except OSError as error:
                    raise UsageError(f"{str(written[process])!r} cannot be written: {error.strerror}.") from None
        return written


def _position(cuts: GroupCuts, sessions: _Sessions, text: str) -> tuple[int, int]:
    """Return a process and its position. Raises UsageError."""
    number, at, moment = text.partition("@")
    last = cuts.finder.last
    if not at or not moment or not number.isdecimal() or max(len(number), len(moment)) > _MOST_DIGITS:
        raise UsageError(f"{text!r} is not a moment of a process, such as 2@898 or 2@exc.")
    process = int(number)
    if process not in last:
        raise UsageError(f"The group has no recording of process {process}. Recorded: {', '.join(map(str, last))}.")
    if moment in _ENDS:
        return process, last[process]
    if moment.isdecimal():
        return process, int(moment)
    session = sessions.group(process).session(process)
    session.seek(moment if moment[0].isdecimal() else f"@{moment}")
    return process, event_here(session)


def _draw(path: str, diagram: SpaceTimeDiagram, opened: OpenedGroup) -> None:
    """Write the drawing to a file, completely or not at all. Raises UsageError."""
    try:
        write_private(Path(path), space_time_svg(opened, diagram))
    except OSError as error:
        raise UsageError(f"{path!r} cannot be written: {error.strerror}.") from None


def _show(
    args: argparse.Namespace,
    cuts: GroupCuts,
    cut: GroupCut,
    computed: _Computed,
    live: CheckedCut | None,
) -> None:
    opened, last = cuts.opened, cuts.finder.last
    values, heaps = computed
    messages, unfinished = cuts.in_flight(cut), cuts.unfinished(cut)
    contents = MessageContents(opened).of(messages) if args.bytes else None
    if args.json:
        facts = {"path": str(opened.directory), **cut_facts(cut, last)}
        facts |= {"in_flight": flying_facts(messages, contents), "unfinished": unfinished_facts(unfinished)}
        facts |= {"values": value_facts(values) if values is not None else None}
        facts |= {"heaps": _heap_facts(heaps) if heaps is not None else None}
        facts |= {"live": live_facts(live) if live is not None else None, "problems": problems_of(opened)}
        print_json(facts)
        return
    print_table(COLUMNS, position_rows(opened, cut, last), right=RIGHT)
    print(f"in flight: {counted(len(messages), 'message') if messages else 'nothing'}")
    if messages:
        print_table(FLYING_COLUMNS, _cut_columns(flying_rows(opened, messages, contents), args.bytes))
    if values:
        shown = (value_text(*each).partition("\t") for each in sorted(values.items()))
        rows = [(printable(args.eval), process, text) for process, _, text in shown]
        print_table(VALUE_COLUMNS, rows, right=VALUE_COLUMNS[1:2])
    for process, path in (heaps or {}).items():
        print(f"heap of {process}\t{printable(str(path))}")
    differences = (
        [f"The live cut differs from the latest consistent cut: {each}." for each in live.differences] if live else []
    )
    for line in [*cut_remarks(opened, cut, unfinished), *differences]:
        print(f"replaydbg: {printable(line)}", file=sys.stderr)


def _heap_facts(heaps: dict[int, Path]) -> list[dict[str, object]]:
    return [{"process": process, "file": str(path)} for process, path in heaps.items()]


def _cut_columns(rows: Iterator[Sequence[str]], is_whole: bool) -> Iterator[Sequence[str]]:
    return (row if is_whole else row[:-1] for row in rows)
