"""A recording without a replay: how the run ended, its events, and the heap snapshots in it.

It opens where the program cannot be run: nothing is compiled for this system or this Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from replaydbg.errors import Corrupt, ReplaydbgError
from replaydbg.events.show import printable
from replaydbg.heap.comparison.snapshot_diff import diff
from replaydbg.heap.retention.growth import FEWEST, growth
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.snapshot import Taken
from replaydbg.heap.storage.recorded_snapshots import load_series, load_stored, stored_snapshots
from replaydbg.log.reader import Recording, open_recording
from replaydbg.render.event_rows import COLUMNS, entry_row
from replaydbg.render.heap_tables import diff_tables, growth_tables, heap_tables
from replaydbg.render.recording_text import recording_lines
from replaydbg.render.tables import Table, drawn
from replaydbg.tui.apps.ending_signals import end_on_signals
from replaydbg.tui.apps.themes import use_theme
from replaydbg.tui.widgets.glyphs import ASCII, UNICODE
from replaydbg.tui.widgets.plain_text import PlainText
from replaydbg.tui.widgets.rows import PanelRow, Rows, plain

MOST_EVENTS = 10_000
"""Events that are shown: all of a long run would fill the memory."""
_WIDTH = 160
"""Columns of tables: the panel scrolls sideways."""

Lines = Callable[[Recording], Iterator[PanelRow]]


@dataclass(frozen=True, slots=True)
class Page:
    """One of the things to look at."""

    title: str
    lines: Lines
    """Returns its rows; what takes long is computed there."""


class ReadingApp(App[int]):
    """Shows the pages of a recording; its result is the exit code."""

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "replaydbg"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape,ctrl+c", "quit", "Leave", show=False, priority=True),
        Binding("tab", "screen.focus_next", "The other panel", show=False),
    ]

    def __init__(self, path: Path, why: str, *, theme: str = "dark", is_ascii: bool = False) -> None:
        """Show the recording at `path`; `why` it cannot be replayed."""
        super().__init__()
        self._path = path
        self._why = why
        self._is_ascii = is_ascii
        self._pages: Sequence[Page] = ()
        self._shown: Page | None = None
        self.failure_message = ""
        use_theme(self, theme)

    def compose(self) -> ComposeResult:
        """Make the list of pages and the page."""
        with Horizontal(id="reading"):
            yield Rows("Pages", id="pages")
            yield Rows("", id="page")
        yield PlainText(id="why")
        yield PlainText(id="status")

    def on_mount(self) -> None:
        """List the pages, and show the first one."""
        end_on_signals(self)
        self.screen.set_class(self._is_ascii, "-ascii")
        for each in self.query(Rows):
            each.glyphs = ASCII if self._is_ascii else UNICODE
        self.query_one("#why", PlainText).set_text(self._why)
        self.query_one("#status", PlainText).set_text(" up/down  choose   enter  show   tab  other panel   q  quit")
        try:
            with open_recording(self._path) as recording:
                self._pages = tuple(pages_of(recording))
        except ReplaydbgError as error:
            self.failure_message = str(error)
            self.exit(error.exit_code)
            return
        pages = self.query_one("#pages", Rows)
        pages.show([plain(each.title, key=each) for each in self._pages])
        pages.focus()
        self._open(self._pages[0])

    async def action_quit(self) -> None:
        """Leave; nothing has failed."""
        self.exit(0)

    def on_rows_chosen(self, message: Rows.Chosen) -> None:
        """Show the chosen page."""
        if isinstance(message.key, Page):
            self._open(message.key)

    def _open(self, page: Page) -> None:
        self._shown = page
        panel = self.query_one("#page", Rows)
        panel.set_title(page.title)
        panel.show([plain("...", "dim")], cursor=0)
        self.run_worker(partial(self._load, page), thread=True, exclusive=True)

    def _load(self, page: Page) -> None:
        try:
            with open_recording(self._path) as recording:
                rows = list(page.lines(recording))
        except ReplaydbgError as error:
            rows = [plain(printable(str(error)), "error")]
        self.call_from_thread(self._show, page, rows)

    def _show(self, page: Page, rows: Sequence[PanelRow]) -> None:
        if page is self._shown:  # another one may have been chosen meanwhile
            self.query_one("#page", Rows).show(rows or [plain("nothing", "dim")], cursor=0)


def pages_of(recording: Recording) -> Iterator[Page]:
    """Yield what there is to look at: the run, its events, its snapshots, and what changed between these."""
    yield Page("Run", _run)
    yield Page("Events", _events)
    unreadable: list[Corrupt] = []
    taken = stored_snapshots(recording, unreadable)
    for each in taken:
        yield Page(f"Snapshot {_name(each)}", partial(_snapshot, number=each.number))
    both = [*pairwise(taken)]
    if len(taken) > 2:
        both.append((taken[0], taken[-1]))
    for before, after in both:
        title = f"From @#{before.number} to @#{after.number}"
        yield Page(title, partial(_difference, before=before.number, after=after.number))
    if len(taken) >= FEWEST:
        yield Page("What grows", _growth)
    for error in unreadable:
        yield Page("Unreadable snapshot", partial(_sentence, text=str(error)))


def _name(taken: Taken) -> str:
    return f"@#{taken.number} {printable(taken.name or taken.reason)}"


def _run(recording: Recording) -> Iterator[PanelRow]:
    lines = recording_lines(recording, with_values=False)
    width = max((len(label) for label, _ in lines), default=0)
    for label, text in lines:
        yield PanelRow(((f"{label:<{width}}  ", "dim"), (printable(text), "")))


def _events(recording: Recording) -> Iterator[PanelRow]:
    entries = recording.events()
    rows = [entry_row(each) for each in islice(entries, MOST_EVENTS)]
    widths = [min(max(len(row[at]) for row in (COLUMNS, *rows)), 80) for at in range(len(COLUMNS))]
    yield plain(_cells(COLUMNS, widths), "bold")
    for row in rows:
        yield plain(_cells(row, widths))
    if next(entries, None) is not None:
        yield plain(f"The first {MOST_EVENTS:,} are shown. `replaydbg events --from N` shows others.", "dim")
    for problem in recording.problems:
        yield plain(printable(str(problem)), "error")


def _cells(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()


def _snapshot(recording: Recording, *, number: int) -> Iterator[PanelRow]:
    return _drawn(heap_tables(Holding(load_stored(recording, number)), most=100, how=_how("heap")))


def _difference(recording: Recording, *, before: int, after: int) -> Iterator[PanelRow]:
    one, two = (Holding(load_stored(recording, number)) for number in (before, after))
    return _drawn(diff_tables(diff(one, two, most=100), how=_how("diff")))


def _growth(recording: Recording) -> Iterator[PanelRow]:
    return _drawn(
        growth_tables(growth(load_series(recording, lambda problem: None)), most=100, how=_how("snapshots --growth"))
    )


def _how(command: str) -> str:
    return f"`replaydbg {command} --all` shows them"


def _sentence(recording: Recording, *, text: str) -> Iterator[PanelRow]:
    yield plain(printable(text), "error")


def _drawn(tables: Sequence[Table]) -> Iterator[PanelRow]:
    text = drawn(tables, width=_WIDTH)
    return chain(plain(line) for line in text.split("\n"))
