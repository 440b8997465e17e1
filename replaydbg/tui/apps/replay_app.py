"""The terminal UI itself: its panels, their updates, and its requests to the session's thread."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender

from replaydbg.classes import dataclass, replace
from replaydbg.tui.apps.ending_signals import end_on_signals
from replaydbg.tui.apps.group_actions import GroupActions
from replaydbg.tui.apps.panel_layout import lay_out
from replaydbg.tui.apps.themes import use_theme
from replaydbg.tui.dialogs.input_line import AskLine
from replaydbg.tui.dialogs.status_line import StatusLine
from replaydbg.tui.keys import ACTS, keymap, panel_keymap, textual_keys
from replaydbg.tui.panels.heap_panel import HeapPanel
from replaydbg.tui.panels.lower_panel import ConsolePanel, EventsPanel, LowerPanel, NotesPanel, OutputPanel
from replaydbg.tui.panels.opening_card import OpeningCard
from replaydbg.tui.panels.source_panel import SourcePanel
from replaydbg.tui.panels.stack_panel import StackPanel
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.panels.values_panel import ValuesPanel
from replaydbg.tui.ui_messages import (
    CannotOpen,
    HeapRead,
    LanesFound,
    Opened,
    Order,
    Progressed,
    Replied,
    Restarted,
    Scrubbed,
    SnapshotsFound,
    TasksFound,
    TrackFound,
    Trouble,
    WriterFound,
)
from replaydbg.tui.view_model import (
    ConsoleLine,
    HeapRow,
    MarkRow,
    Overview,
    PointRow,
    Reply,
    Scene,
    SourceText,
    ValueRow,
)
from replaydbg.tui.widgets.glyphs import ASCII, UNICODE, AsciiBars
from replaydbg.tui.widgets.plain_text import PlainText
from replaydbg.tui.widgets.rows import Rows
from replaydbg.tui.worker.session_thread import SessionThread, Work


@dataclass(frozen=True, slots=True)
class _ReplyHandler:
    """The callback for a reply."""

    then: Callable[[Reply], None] | None = None
    is_typed: bool = False


class ReplayApp(GroupActions):
    """The view of one recording. Its result is the exit code."""

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "replaydbg"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "Cancel, or quit", show=False, priority=True, system=True),
    ]

    def __init__(
        self,
        path: Path,
        *,
        moment: str = "",
        memory: int = 0,
        is_ascii: bool = False,
        theme: str = "dark",
        keys: Mapping[str, str] | None = None,
        owner: Callable[..., SessionThread] = SessionThread,
    ) -> None:
        """Open the recording at `path`, first at `moment`, or at its failure; `keys` are those of each action.

        Raises UsageError for an unknown theme.
        """
        super().__init__()
        self.keys = keymap() if keys is None else keys
        for each in [each for each in ACTS if self.keys[each.id]]:
            self.bind(textual_keys(self.keys[each.id]), each.action, description=each.title, show=False)
        use_theme(self, theme)
        self.path = path
        self.owner = owner(path, self.post_message, moment=moment, memory=memory)
        self.glyphs = ASCII if is_ascii else UNICODE
        self.scene: Scene | None = None
        self.overview: Overview | None = None
        self.texts: dict[str, SourceText] = {}
        self.panel_shown = 3
        self.is_source_hidden = False
        self._asked: dict[int, _ReplyHandler] = {}
        self._terminal = Size(80, 24)
        self.failure_message = ""
        """A message to be printed after the terminal is restored."""

    # ---- its parts ----

    def compose(self) -> ComposeResult:
        """Make the panels."""
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield OpeningCard()
                yield SourcePanel()
                yield LowerPanel()
            with Vertical(id="right"):
                yield StackPanel()
                yield ValuesPanel()
                yield HeapPanel()
        yield PlainText(id="tabs")
        yield TimelinePanel()
        yield AskLine()
        yield StatusLine(self.keys)

    def on_mount(self) -> None:
        """Start the replay: the first frame is painted before anything is known."""
        for panel in self.main.query(Rows):
            panel.glyphs = self.glyphs
        self.part(TimelinePanel).glyphs = self.glyphs
        self.main.set_class(self.glyphs is ASCII, "-ascii")
        # Of the class: Textual has no such setting for one app. A value set by an earlier app must not persist.
        ScrollBar.renderer = AsciiBars if self.glyphs is ASCII else ScrollBarRender
        self.part(OpeningCard).waiting(self.path.name)
        self.set_keymap(panel_keymap(self.keys))
        self.part(SourcePanel).focus()
        end_on_signals(self, [self.owner])
        self.owner.start()

    def on_unmount(self) -> None:
        """Let the session's thread end its processes."""
        self.owner.close()

    def on_resize(self, event: events.Resize) -> None:
        """Lay the panels out for the new size."""
        self._terminal = event.size
        self.lay_out()

    def lay_out(self) -> None:
        """Show the panels that fit."""
        lay_out(self.main, self._terminal, panel_shown=self.panel_shown, is_source_hidden=self.is_source_hidden)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Fill the palette: all actions, the themes, and the standard commands of Textual apps."""
        for each in ACTS:
            yield SystemCommand(each.title, self.keys[each.id], partial(self.run_action, each.action))
        for theme in ("dark", "light"):
            yield SystemCommand(f"use the {theme} theme", "", partial(use_theme, self, theme))
        # Textual's own list of themes is a palette of Textual.
        others = (each for each in super().get_system_commands(screen) if each.title != "Theme")
        yield from (SystemCommand(each.title, "", each.callback) for each in others)

    # ---- the session's thread ----

    def ask(
        self,
        work: Work,
        *,
        slot: str = "",
        then: Callable[[Reply], None] | None = None,
        is_typed: bool = False,
        is_move: bool = False,
    ) -> int:
        """Request work from the session's thread; the reply is shown, and `then` is called with it."""
        number = self.owner.ask(work, slot=slot, is_move=is_move)
        self._asked[number] = _ReplyHandler(then, is_typed)
        return number

    @property
    def is_waiting(self) -> bool:
        """Whether a request to the session's thread is not answered yet."""
        return self.scene is None or bool(self._asked)

    def on_order(self, message: Order) -> None:
        """Execute a panel's order."""
        self.order(message.line, is_typed=message.is_typed)

    def order(self, line: str, *, is_typed: bool = False) -> None:
        """Execute a command of the prompt; `is_typed`: its output is shown in the console."""
        if is_typed:
            self.add_to_console([ConsoleLine(f"(rdbg) {line}", "bold")])
        self.part(OpeningCard).display = False
        self.part(StatusLine).notice("")
        columns = self.part(LowerPanel).columns or self._terminal.width - 6
        self.ask(lambda host: host.do(line, columns=columns), is_typed=is_typed, is_move=True)

    def on_scrubbed(self, message: Scrubbed) -> None:
        """Follow the timeline's cursor."""
        count = message.count
        self.part(OpeningCard).display = False
        self.ask(lambda host: host.scrub(count), slot="seek")

    def on_opened(self, message: Opened) -> None:
        """Show the run, and its failure."""
        if not self.is_shown:
            return
        self.show_run(message.overview)
        self.take(message.reply)
        if self.scene is not None:
            self.part(OpeningCard).show_run(message.overview, self.scene)
            if message.overview.failure is not None and self.scene.at is not None:
                self.part(ValuesPanel).select_first_of(self.scene.at.text)
            # The card shows the same in more detail, and the status line is needed for the keys now.
            self.part(StatusLine).notice("")
        self.lay_out()
        self.ask(lambda host: host.follow_heap())
        # The run's index and the screen stay: a collection would traverse them again and again, 60 ms each time.
        gc.freeze()

    def on_replied(self, message: Replied) -> None:
        """Show the result of an order."""
        if not self.is_shown:
            return
        asked = self._asked.pop(message.number, _ReplyHandler())
        self.take(message.reply, is_typed=asked.is_typed)
        # One that was dropped from the queue, or whose session was lost meanwhile, has no answer.
        if asked.then is not None and message.reply.answer is not None:
            asked.then(message.reply)

    def take(self, reply: Reply, *, is_typed: bool = False) -> None:
        """Show a reply of the session's thread."""
        if reply.overview is not None:
            self.texts.clear()
            self.show_run(reply.overview)
            self.lay_out()
        for text in reply.texts:
            self.texts[text.file] = text
        if reply.is_over:
            self.exit(0)
            return
        self.add_to_console(reply.printed)
        if reply.error:
            self.add_to_console([ConsoleLine(reply.error, "error")])
            self.part(StatusLine).notice(reply.error, is_error=True)
        if reply.scene is not None:
            self.show_scene(reply.scene)
        if reply.printed and not reply.error and not is_typed:
            self.inform(reply.printed[-1].text)
        if is_typed and (reply.printed or reply.error):
            self.show_tab("console")

    def show_run(self, overview: Overview) -> None:
        """Show another run as a whole, without a position in it."""
        self.overview, self.scene = overview, None
        self.part(TimelinePanel).begin(overview)
        self.part(OutputPanel).set_overview(overview)
        self.part(SourcePanel).set_failure(overview.failed_at)
        self.part(HeapPanel).clear()

    def show_scene(self, scene: Scene) -> None:
        """Update all panels to the session's position."""
        is_elsewhere = self.scene is None or scene.count != self.scene.count
        self.scene = scene
        at = scene.at
        self.part(SourcePanel).show_scene(scene, self.texts.get(at.file) if at is not None else None)
        self.part(StackPanel).show_scene(scene)
        self.part(ValuesPanel).show_scene(scene)
        self.part(TimelinePanel).show_scene(scene)
        self.part(OutputPanel).show_scene(scene)
        self.part(NotesPanel).show_scene(scene)
        changed = "  (changed: this run differs from the recording)" if scene.is_changed else ""
        if is_elsewhere:
            self.part(StatusLine).notice(f"{scene.reason}{changed}" if scene.reason or changed else "")
            self.refresh_events()

    def add_to_console(self, lines: Sequence[ConsoleLine]) -> None:
        """Add lines to the console."""
        self.part(ConsolePanel).add_lines(lines)

    def on_progressed(self, message: Progressed) -> None:
        """Show the progress of a long operation."""
        if not self.is_shown:
            return
        self.part(StatusLine).progress(message.what, message.done, message.seconds)

    def on_cannot_open(self, message: CannotOpen) -> None:
        """Quit, and report why."""
        self.failure_message = message.error
        self.exit(message.exit_code)

    def on_restarted(self, message: Restarted) -> None:
        """Report that the session was restarted."""
        if not self.is_shown:
            return
        self.add_to_console([ConsoleLine(message.text, "warning")])
        self.part(StatusLine).notice(message.text, is_error=True)

    def on_trouble(self, message: Trouble) -> None:
        """Log an internal error where it can be read."""
        if not self.is_shown:
            return
        self.add_to_console([ConsoleLine(line, "error") for line in message.text.splitlines()])

    def on_lanes_found(self, message: LanesFound) -> None:
        """Show when each lane ran."""
        if not self.is_shown:
            return
        self.part(TimelinePanel).set_lanes(message.lanes)
        self.lay_out()

    def on_tasks_found(self, message: TasksFound) -> None:
        """Show when each asyncio task ran."""
        if not self.is_shown:
            return
        self.part(TimelinePanel).set_tasks(message.times)
        self.lay_out()

    def on_snapshots_found(self, message: SnapshotsFound) -> None:
        """Show the snapshots at their lines."""
        if self.is_shown and self.overview is not None:
            self.overview = replace(self.overview, snapshots=message.snapshots)
            self.part(TimelinePanel).set_overview(self.overview)

    def on_heap_read(self, message: HeapRead) -> None:
        """Show what is in memory."""
        if self.is_shown:
            self.part(HeapPanel).show_contents(message.contents)

    def on_writer_found(self, message: WriterFound) -> None:
        """Show where a value of the memory comparison was written."""
        if self.is_shown:
            self.part(HeapPanel).set_written(message.path, message.text)

    def on_track_found(self, message: TrackFound) -> None:
        """Show a row of moments on the timeline."""
        if not self.is_shown:
            return
        self.part(TimelinePanel).set_track(message.track)
        self.lay_out()

    # ---- the panels ----

    def on_rows_chosen(self, message: Rows.Chosen) -> None:
        """Handle the choice of a panel's row."""
        panel, key = message.panel, message.key
        if isinstance(panel, StackPanel) and isinstance(key, str):
            self.order(key)
        elif isinstance(panel, (OutputPanel, EventsPanel)) and isinstance(key, str):
            self.order(f"seek {key}")
        elif isinstance(panel, ValuesPanel) and isinstance(key, ValueRow) and key.parts:
            self.ask(lambda host: host.toggle(key.expression))
        elif isinstance(panel, NotesPanel) and isinstance(key, MarkRow):
            self.order(f"seek @{key.name}")
        elif isinstance(panel, NotesPanel) and isinstance(key, PointRow):
            self.order(f"{'disable' if key.is_enabled else 'enable'} {key.number}")
        elif isinstance(panel, SourcePanel) and isinstance(key, int):
            self.ask_visits(panel.file, key)
        elif isinstance(panel, HeapPanel) and isinstance(key, HeapRow):
            self.ask_object(key.path)

    def on_source_panel_point_wanted(self, message: SourcePanel.PointWanted) -> None:
        """Toggle a breakpoint after a click in front of a line."""
        self.toggle_point(message.file, message.line)

    def complain(self, text: str) -> None:
        """Show an error message until the next key."""
        self.part(StatusLine).notice(text, is_error=True)

    def inform(self, text: str) -> None:
        """Show a notice until the next key."""
        self.part(StatusLine).notice(text)

    def on_timeline_panel_range_wanted(self, message: TimelinePanel.RangeWanted) -> None:
        """Show another part of the run on the timeline."""
        first, last = message.first, message.last

        def show(reply: Reply) -> None:
            if isinstance(reply.answer, tuple):
                self.part(TimelinePanel).set_range(first, last, reply.answer)

        self.ask(lambda host: host.density(first, last), slot="range", then=show)

    def on_heap_panel_scope_wanted(self, message: HeapPanel.ScopeWanted) -> None:
        """Show objects of other scopes, too."""
        self.compare(self.compared, scope=message.scope)

    def take_note(self) -> None:
        """Clear the notice: any key confirms that it was read."""
        if self.is_shown and not self.part(AskLine).is_open:
            self.part(StatusLine).notice("")
