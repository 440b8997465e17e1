"""Queries of the heap panel: the differences between two moments, and the facts about one object."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import PurePath

from replaydbg.commands.heap_commands import about_object
from replaydbg.commands.view import View
from replaydbg.debugger.changed_values import last_writes
from replaydbg.debugger.object_history import holdings, last_written
from replaydbg.debugger.session_results import LastWrite
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.heap.comparison.diff_results import Diff
from replaydbg.heap.comparison.drift import drift
from replaydbg.heap.comparison.snapshot_diff import SCOPES, diff
from replaydbg.heap.retention.growth import growth
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.retention.path_lookup import find
from replaydbg.render import texts
from replaydbg.render.heap_tables import diff_tables, heap_tables, object_tables
from replaydbg.render.tables import Table
from replaydbg.tui.icicle_model import IcicleAnswer
from replaydbg.tui.view_model import AnswerList, Choice, HeapAnswer, HeapRow
from replaydbg.tui.worker.heap_overviews import growth_answer, icicle_answer, positions

Elsewhere = Callable[[int], AbstractContextManager[None]]

MOST = 40
"""Maximum number of rows in each section."""

MOST_OF_TYPES = 8
"""The same for what is in memory at one moment: both sections are to be seen."""

WIDEST_NAME = 26
"""Columns for the name of a type or the path of an object, where there are long ones."""


class SnapshotPair:
    """The two snapshots of the last comparison; queries about objects refer to the later one."""

    def __init__(self) -> None:
        self._pair: tuple[Holding, Holding] | None = None
        self._counts = (0, 0)
        self._drawn: tuple[Holding, int] | None = None
        """The heap of the last icicle graph, and its line of the run."""
        self._first: Holding | None = None
        """The heap at the first line of the run that is shown."""

    def diff(self, view: View, since: str, until: str, scope: str) -> HeapAnswer:
        """Compare two moments; without `until`, with the present one. Raises NoSuchMoment, UsageError."""
        session = view.session
        if scope not in SCOPES:
            raise UsageError(f"No such scope: {scope!r}. Available: {', '.join(SCOPES)}.")
        if not until and view.here.is_changed:
            raise UsageError("This run was changed and has no heap; a seek returns to the recorded run.")
        counts = (session.count_of(since), session.count_of(until) if until else view.here.count)
        if self._pair is None or counts != self._counts:
            before, after = holdings(session, counts, which="mine")
            self._pair, self._counts = (before, after), counts
        return _answer(diff(*self._pair, most=MOST, scope=scope), scope, counts[0])

    def contents(self, view: View, first: int) -> HeapAnswer:
        """Return what is in memory here, and how much more it is than at the line `first` of the run."""
        session, here = view.session, view.here
        if here.is_changed:
            raise UsageError("This run was changed and has no heap; a seek returns to the recorded run.")
        if self._first is None:
            (self._first,) = holdings(session, [first], which="mine")
        held = self.held(view)
        title, *tables = heap_tables(held, since=self._first, most=MOST_OF_TYPES, how="`:heap all`")
        at = session.index.moment(first)
        rows = [row for table in tables for row in _content_rows(table)]
        note = HeapRow(f"more: since {texts.moment_text(at)}, where the timeline begins")
        return HeapAnswer(printable(title.title), (*rows, note), "", first)

    def held(self, view: View) -> Holding:
        """Return the present heap, to which later queries about objects refer."""
        (found,) = holdings(view.session, [view.here.count], which="mine")
        self._pair, self._counts = (found, found), (view.here.count, view.here.count)
        return found

    def growth(self, view: View) -> HeapAnswer:
        """Return how memory grows over the run; later queries about objects refer to the last position."""
        session = view.session
        which, counts = positions(session)
        series = holdings(session, counts, which="mine")
        found = growth(series)
        self._pair, self._counts = (series[0], series[-1]), (counts[0], counts[-1])
        return growth_answer(found, which, session, counts)

    def icicle(self, view: View) -> IcicleAnswer:
        """Return what keeps memory alive here. Raises UsageError."""
        if view.here.is_changed:
            raise UsageError("This run was changed and has no heap; a seek returns to the recorded run.")
        count = view.here.count
        if self._pair is not None and self._counts[1] == count:
            self._drawn = (self._pair[1], count)
        else:
            (held,) = holdings(view.session, [count], which="mine")
            self._drawn = (held, count)
        return icicle_answer(self._drawn[0], texts.moment_text(view.here.moment))

    def about(self, view: View, path: str, elsewhere: Elsewhere, *, is_drawn: bool = False) -> AnswerList:
        """Return the facts about the object at `path` of the later snapshot: its holders, its creation and last write.

        `is_drawn`: of the snapshot of the icicle graph. `elsewhere` moves the session to a line of the run for a while.
        """
        if is_drawn:
            assert self._drawn is not None, "the graph is open"
            held, count = self._drawn
        elif self._pair is not None:
            held, count = self._pair[1], self._counts[1]
        else:
            raise UsageError("Nothing compared yet. Press D to compare with another moment.")
        node = find(held, path)
        # Its creation is looked up at the moment of the snapshot.
        with elsewhere(count):
            about = about_object(view.session, held, node)
            notes = about.lines(view.session)
        choices = [Choice(printable(each), "bold") for each in notes]
        if about.created is not None and about.created.made:
            choices.append(Choice("go to where it was created", "accent", about.created.made))
        if about.written is not None and about.written.count:
            choices.append(Choice("go to where it was last written", "accent", about.written.count))
        for table in object_tables(held, node, most=MOST, how="`:holders`"):
            choices += _choices(table)
        return AnswerList(printable(path), tuple(choices), "Enter inspects the holder, or goes to the moment")

    def who_wrote(self, view: View, path: str, elsewhere: Elsewhere) -> LastWrite:
        """Return the last write of the value at `path` of the later snapshot. Raises UsageError."""
        if self._pair is None:
            raise UsageError("Nothing compared yet. Press D to compare with another moment.")
        with elsewhere(self._counts[1]):
            write = last_written(view.session, path, self._pair[1].modules)
        if write is None:
            raise UsageError(f"Cannot find the write of {path}.")
        return write

    def writers(self, view: View, paths: Sequence[str]) -> Generator[tuple[str, LastWrite | None]]:
        """Yield the last write of the value at each path of the later snapshot, as they are found."""
        if self._pair is None:
            return
        yield from last_writes(view.session, paths, self._counts[1], self._pair[1].modules, math.inf)


def between(one: Holding, two: Holding, names: tuple[str, str], scope: str) -> HeapAnswer:
    """Compare the present heaps of two recordings with these names."""
    named = [
        Holding(replace(each.snapshot, taken=replace(each.snapshot.taken, name=name)))
        for each, name in zip((one, two), names, strict=True)
    ]
    return _answer(drift(*named, most=MOST, scope=scope), scope, 0, how="`replaydbg diff --all` shows them")


def _answer(found: Diff, scope: str, since: int, *, how: str = "`:diff ... all` shows them") -> HeapAnswer:
    tables = diff_tables(found, how=how)
    rows = tuple(row for table in tables[1:] for row in _rows(table, found))
    notes = tuple(HeapRow(printable(each)) for each in tables[0].notes)
    return HeapAnswer(printable(tables[0].title), (*notes, *rows), scope, since)


def writer_text(write: LastWrite) -> str:
    """Return the place of a last write in a few columns."""
    assert write.moment is not None, write
    return printable(f"{texts.moment_text(write.moment)} {PurePath(write.file).name}:{write.line}")


def _content_rows(table: Table) -> Iterator[HeapRow]:
    """Yield the rows of a table in columns, under its title and the names of the columns.

    The numbers come first: the panel may be too narrow for all.
    """
    order = sorted(range(1, len(table.columns)), key=lambda at: table.columns[at] not in table.right)
    rows = [[printable(row[at]) for at in (0, *order)] for row in table.rows]
    names = ["", *(table.columns[at] for at in order)]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    widths[0] = min(max(widths[0], len(table.title)), WIDEST_NAME)

    def drawn(cells: Sequence[str]) -> str:
        parts = [
            f"{text:>{width}}" if name in table.right else text
            for text, width, name in zip(cells[1:], widths[1:], names[1:], strict=True)
        ]
        return "  ".join(parts).rstrip()

    yield HeapRow(f"{printable(table.title):<{widths[0] + 2}}  {drawn(names)}", is_title=True)
    for row, (path, *_) in zip(rows, table.rows, strict=True):
        text = f"{row[0]:<{widths[0]}}"
        yield HeapRow(text, value=drawn(row), path=path if table.columns[0] == "path" else "")
    if table.more:
        yield HeapRow(f"  {printable(table.more)}")


def _rows(table: Table, found: Diff) -> Iterator[HeapRow]:
    yield HeapRow(printable(table.title), is_title=True)
    has_mark = table.columns[:1] == ("",)
    # A removed object can be queried if the other side is another run, which still has it.
    asked = [each for each in found.changed.items if each.path_after or not found.is_same_run]
    known = {each.path for each in asked}
    known |= {each.path for each in found.grown.items} | {each.path for each in found.new.items}
    gone = {each.path for each in found.gone.items}
    is_changed = table.kind == "changed"
    for row in table.rows:
        cells = [printable(each) for each in row]
        mark = cells.pop(0) if has_mark else " "
        raw = row[1] if has_mark else row[0]
        if not has_mark and raw in known:
            mark = "+" if table.kind == "new" else " "
        elif raw in gone and table.kind == "gone":
            mark = "-"
        can_ask = raw in known and (mark != "-" or not found.is_same_run)
        yield HeapRow(cells[0], mark, "  ".join(cells[1:]), raw if can_ask else "", is_changed=is_changed)
    for note in (table.more, *table.notes):
        if note:
            yield HeapRow(f"  {printable(note)}")


def _choices(table: Table) -> Iterator[Choice]:
    yield Choice("")
    yield Choice(printable(table.title), "accent")
    is_of_holders = table.columns[:1] == ("path",)
    width = max((len(row[0]) for row in table.rows), default=0)
    for row in table.rows:
        text = f"  {row[0]:<{min(width, 60)}}  {'  '.join(row[1:])}".rstrip()
        yield Choice(printable(text), path=row[0] if is_of_holders else "")
    if table.more:
        yield Choice(f"  {printable(table.more)}", "dim")
