"""Commands about memory: its objects, changes since another moment, and the holders of an object."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.debugger import Session
from replaydbg.debugger.changed_values import WITHIN, last_writes
from replaydbg.debugger.object_history import Created, created, holdings, last_written
from replaydbg.debugger.session_results import LastWrite
from replaydbg.errors import UsageError
from replaydbg.heap.comparison.diff_results import ADDED, REMOVED, Change, Diff
from replaydbg.heap.comparison.snapshot_diff import diff
from replaydbg.heap.limits import Which
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.retention.path_lookup import find
from replaydbg.render import texts
from replaydbg.render.heap_tables import diff_tables, heap_tables, object_tables
from replaydbg.render.tables import Table, drawn

MOST_ROWS = 10
MOST_SECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class AboutObject:
    """Facts about an object from the run."""

    created: Created | None
    written: LastWrite | None

    def lines(self, session: Session) -> tuple[str, ...]:
        """Return it as sentences."""
        return tuple(self._lines(session))

    def _lines(self, session: Session) -> Iterator[str]:
        if self.created is not None:
            made = self.created
            place = texts.place_text(session, *made.place) if made.place is not None else "no Python code"
            if made.made:
                at = texts.moment_text(session.index.moment(made.made))
                other = made.returned_to
                after = f", or after its return to {texts.place_text(session, *other)}" if other else ""
                yield f"Exists since {texts.moment_text(made.moment)}: created at {at}, {place}{after}."
            else:
                yield f"Existed at {texts.moment_text(made.moment)}, the program's first line."
        if self.written is not None and self.written.moment is not None:
            yield f"Last written at {_writer(self.written)}."


def about_object(session: Session, held: Holding, node: int, *, which: Which = "mine") -> AboutObject:
    """Return since when an object of the snapshot of here is there, and who wrote it last."""
    address = held.snapshot.address[node]
    made = created(session, address, session.here.count, which=which) if not held.is_frame(node) else None
    return AboutObject(made, last_written(session, held.path(node), held.modules))


def written_paths(found: Diff) -> list[str]:
    """Return the paths of the listed values that some line has written."""
    asked = (each for each in found.changed.items if each.kind != REMOVED and not _is_item_added(each))
    return list(dict.fromkeys(each.path for each in asked))


def writers(
    session: Session, paths: Sequence[str], later: int, modules: Sequence[str], seconds: float
) -> Iterator[tuple[str, str]]:
    """Yield each path and the last write of its value before the line `later`; empty: it cannot be determined.

    Paths whose turn does not come within `seconds` are left out. The session stays at its position.
    """
    for path, write in last_writes(session, paths, later, modules, seconds):
        yield path, _writer(write) if write is not None else ""


def unsearched_text(number: int, seconds: float, how: str) -> str:
    """Return the sentence about values whose writers were not found in time; `how`: what to use for a longer search."""
    values = "1 changed value" if number == 1 else f"{number:,} changed values"
    return f"The writes of {values} were not found within {seconds:g} s. Use {how} to search longer."


def seconds_of(text: str) -> float:
    """Return a time limit, in seconds. Raises UsageError."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_SECONDS:
        raise UsageError(f"SECONDS must be a number from 0 to {MOST_SECONDS:,} (got {text!r}).")
    return seconds


def _is_item_added(change: Change) -> bool:
    return change.kind == ADDED and not change.step.startswith(".")


def _writer(why: LastWrite) -> str:
    assert why.moment is not None, why
    return f"{texts.moment_text(why.moment)} {PurePath(why.file).name}:{why.line} {why.function}"


# ---- the commands ----


def _heap(view: View, rest: str) -> None:
    words = _words(rest)
    most = None if "all" in words else MOST_ROWS
    (held,) = _held(view)
    _show(view, heap_tables(held, most=most, how="`heap all` shows them"))


def _diff(view: View, rest: str) -> None:
    words = _words(rest)
    most = MOST_ROWS
    # A screen that shows its lines only when the command has ended would show the difference late.
    seconds = WITHIN if view.screen.is_immediate else 0.0
    if len(words) > 2 and words[-2] == "within":
        seconds = seconds_of(words[-1])
        del words[-2:]
    if "all" in words:
        words.remove("all")
        most = 0
    if not 1 <= len(words) <= 2:
        raise UsageError("usage: diff MOMENT [MOMENT] [all] [within SECONDS]")
    session = view.session
    counts = [session.count_of(each) for each in words]
    counts = [*counts, view.here.count][:2]
    _check_unchanged(view)
    before, after = holdings(session, counts)
    found = diff(before, after, most=most or None)
    _show(view, diff_tables(found, how="`diff ... all` shows them"))
    if seconds:
        _show_writers(view, written_paths(found), max(counts), after.modules, seconds)


def _show_writers(view: View, paths: Sequence[str], later: int, modules: Sequence[str], seconds: float) -> None:
    number = 0
    for path, text in writers(view.session, paths, later, modules, seconds):
        if not number:
            view.screen.line("Written at", "bold")
        view.screen.line(f"  {path}  {text or 'unknown'}")
        view.screen.settle()
        number += 1
    if number < len(paths):
        longer = f"`diff ... within {10 * seconds:g}`"
        view.screen.line(f"  {unsearched_text(len(paths) - number, seconds, longer)}", "dim")


def _holders(view: View, rest: str) -> None:
    if not rest.strip():
        raise UsageError("usage: holders EXPRESSION (e.g. holders app.cache['x'])")
    (held,) = _held(view)
    node = find(held, _in_frame(view, held, rest.strip()))
    found = AboutObject(created(view.session, held.snapshot.address[node], view.here.count), None)
    notes = found.lines(view.session) if not held.is_frame(node) else ()
    _show(view, object_tables(held, node, most=MOST_ROWS, how="`replaydbg heap --of EXPR --all`", notes=notes))


def _held(view: View) -> list[Holding]:
    _check_unchanged(view)
    return holdings(view.session, [view.here.count])


def _check_unchanged(view: View) -> None:
    if view.here.is_changed:
        raise UsageError("Heap commands need the recorded run, and this one was changed: `seek` returns to it.")


def _in_frame(view: View, held: Holding, source: str) -> str:
    """Return a variable of the selected frame as one of it, where there is one."""
    frames = view.frames()
    if not frames:
        return source
    at = view.place()
    lane = view.here.lane if view.lane is None else view.lane
    ending = f"{at.function.rpartition('.')[2]}() line {at.line}"
    for root in held.snapshot.roots:
        if root.label.startswith(f"thread {lane} ") and root.label.endswith(ending):
            wanted = f"{source} in {root.label}"
            try:
                find(held, wanted)
            except UsageError:
                # It is a variable of the module, or none at all: the caller reports that.
                continue
            return wanted
    return source


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"{rest!r} cannot be parsed: {error}.") from None


def _show(view: View, tables: Sequence[Table]) -> None:
    for line in drawn(tables, width=view.screen.columns).splitlines():
        view.screen.line(line)


COMMANDS = (
    PromptCommand(("heap",), "[all]", "list the objects in memory by type and by retained size", _heap, completes=""),
    PromptCommand(
        ("diff",),
        "MOMENT [MOMENT] [all] [within SECONDS]",
        "compare the objects at a moment with those here, and find the lines that wrote the changed values",
        _diff,
        completes="moments",
    ),
    PromptCommand(("holders", "referrers"), "EXPR", "show what refers to an object, and its retained size", _holders),
)
