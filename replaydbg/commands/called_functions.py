"""The functions that a part of the run called, as a tree."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.debugger.calls.call_tree import CallEntry
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.render import texts

_MOST_ROWS = 200
_MOST_DEEP = 30
"""Calls further in are shown at this depth: lines have an end."""


def _calls(view: View, rest: str) -> None:
    words = rest.split()
    own = None if words[:1] == ["all"] else view.own_code
    words = words[1:] if own is None else words
    if len(words) > 2:
        raise UsageError("usage: calls [all] [FROM [TO]]")
    first, last = _stretch(view, words)
    tree = view.session.run.calls(first, last, own=own)
    _print(view, tree.entries)
    if not tree.entries:
        whose = "" if own is None else " of code that is yours (`calls all` shows others)"
        view.screen.line(f"No calls{whose}.")
    if tree.is_cut:
        view.screen.line(f"Showing {tree.calls:,} calls: later ones, or those nested too deeply, are left out.")


def _stretch(view: View, words: Sequence[str]) -> tuple[int, int]:
    """Return the counts of the first line, and of the last one, or 0: the end of the function."""
    session = view.session
    if not words:
        top = view.place()
        return top.started, 0
    counts = [session.count_of(each) for each in words]
    first, last = (*counts, session.here.count)[:2]
    if first >= last:
        raise UsageError(f"The first moment must be before the {'second one' if words[1:] else 'position'}.")
    return first, last


def _print(view: View, entries: Sequence[CallEntry]) -> None:
    lanes = {each.lane for each in entries}
    pending = [(each, 0) for each in reversed(entries)]
    rows = 0
    while pending:
        entry, depth = pending.pop()
        rows += 1
        if rows > _MOST_ROWS:
            view.screen.line(f"Showing the first {_MOST_ROWS} rows: give a shorter stretch, `calls FROM TO`.")
            return
        view.screen.line("  " * min(depth, _MOST_DEEP) + _text(view, entry, has_lane=depth == 0 and len(lanes) > 1))
        pending += [(each, depth + 1) for each in reversed(entry.entries)]


def _text(view: View, entry: CallEntry, *, has_lane: bool) -> str:
    code = entry.code
    place = f"{texts.file_text(view.session, code.file)}:{code.line}"
    moment = texts.moment_text(view.session.index.moment(entry.begun))
    name = printable(code.function) + (" goes on" if entry.goes_on else "")
    parts = [name + (f" x{entry.count:,}" if entry.count > 1 else ""), place, moment]
    if has_lane:
        parts.append(f"thread {entry.lane}")
    if not entry.ended:
        parts.append("not ended")
    return "  ".join(parts)


COMMANDS = (
    PromptCommand(
        ("calls",),
        "[all] [FROM [TO]]",
        "show which functions this function calls, or those called between two moments, as a tree",
        _calls,
        completes="moments",
    ),
)
