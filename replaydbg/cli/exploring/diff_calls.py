"""`replaydbg diff --calls`: two runs compared as trees of calls."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from replaydbg.cli.common.heap_options import most_of
from replaydbg.cli.common.opening import opened
from replaydbg.cli.common.output import print_json
from replaydbg.commands.view import View
from replaydbg.debugger.calls.call_tree import CallTree
from replaydbg.debugger.compare.call_differences import CallDifference, call_differences
from replaydbg.debugger.session import Session
from replaydbg.events.show import printable
from replaydbg.heap.retention.holding import MINE
from replaydbg.render import texts
from replaydbg.render.json_data.calls.call_differences_json import call_difference_facts

_MOST_DEEP = 30
"""Calls further in are shown at this depth: lines have an end."""


def compare_calls(args: argparse.Namespace) -> int:
    """Show the functions that one run called and the other did not, or not as often; 1 if there are any."""
    with opened(args.recording, quiet=args.quiet) as left, opened(args.others[0], quiet=args.quiet) as right:
        trees = tuple(_tree(view, is_own=args.which == MINE) for view in (left, right))
        rows = call_differences(trees[0].entries, trees[1].entries)
        moments = (partial(_moment, left.session), partial(_moment, right.session))
        if args.json:
            print_json(call_difference_facts(rows, moments, is_cut=any(each.is_cut for each in trees)))
        else:
            names = (args.recording, args.others[0])
            shown = rows[: most_of(args)]
            for line in (*_lines(left, shown, moments, names), *_notes(trees, len(rows) - len(shown))):
                left.screen.line(line)
    return int(bool(rows))


def _tree(view: View, *, is_own: bool) -> CallTree:
    session = view.session
    return session.run.calls(1, session.index.total, own=view.own_code if is_own else None)


def _moment(session: Session, count: int) -> str:
    return texts.moment_text(session.index.moment(count))


def _lines(
    view: View,
    rows: Sequence[CallDifference],
    moments: tuple[Callable[[int], str], Callable[[int], str]],
    names: tuple[str, str],
) -> Iterator[str]:
    if not rows:
        yield "Both runs made the same calls."
        return
    yield f"- only in {printable(names[0])}, + only in {printable(names[1])}"
    lanes = {row.entry.lane for row in rows}
    for row in rows:
        sign = "+" if row.left is None else "-" if row.right is None else " "
        code = row.entry.code
        parts = [
            f"{sign} {'  ' * min(row.depth, _MOST_DEEP)}{printable(code.function)}{_count(row)}",
            f"{texts.file_text(view.session, code.file)}:{code.line}",
            _where(row, moments),
        ]
        if row.depth == 0 and len(lanes) > 1:
            parts.append(f"thread {row.entry.lane}")
        yield "  ".join(parts)


def _count(row: CallDifference) -> str:
    if row.left is None or row.right is None or row.left.count == row.right.count:
        return f" x{row.entry.count:,}" if row.entry.count > 1 else ""
    return f" x{row.left.count:,} -> x{row.right.count:,}"


def _where(row: CallDifference, moments: tuple[Callable[[int], str], Callable[[int], str]]) -> str:
    found = [
        moment(entry.begun) for moment, entry in zip(moments, (row.left, row.right), strict=True) if entry is not None
    ]
    return " | ".join(found)


def _notes(trees: Sequence[CallTree], left_out: int) -> Iterator[str]:
    if left_out > 0:
        yield f"{left_out:,} more rows: --all shows them."
    for tree in trees:
        if tree.is_cut:
            yield f"Compared are the first {tree.calls:,} calls: later ones, or those nested too deeply, are left out."
            return
