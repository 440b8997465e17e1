"""One of two recordings that are shown side by side: its panels, and its session's thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from replaydbg.tui.panels.source_panel import SourcePanel
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.panels.values_panel import ValuesPanel
from replaydbg.tui.ui_messages import (
    LanesFound,
    Opened,
    Replied,
    Restarted,
    Scrubbed,
    SnapshotsFound,
    TasksFound,
    Trouble,
)
from replaydbg.tui.view_model import Overview, Reply, Scene, SourceText, ValueRow
from replaydbg.tui.widgets.glyphs import Glyphs
from replaydbg.tui.widgets.plain_text import set_subtitle
from replaydbg.tui.widgets.rows import Rows
from replaydbg.tui.worker.session_thread import SessionThread, Work

Then = Callable[[Reply], None]


class RecordingSide(Vertical):
    """One of the two."""

    class Came(Message):
        """Its position has changed."""

    def __init__(self, path: Path, name: str, *, glyphs: Glyphs, memory: int) -> None:
        """`name` is the widget's name."""
        super().__init__(id=name)
        self.path = path
        self.owner = SessionThread(path, self.post_message, memory=memory)
        self.glyphs = glyphs
        self.scene: Scene | None = None
        self.overview: Overview | None = None
        self._texts: dict[str, SourceText] = {}
        self._asked: dict[int, Then | None] = {}
        self.error = ""

    def compose(self) -> ComposeResult:
        """Make its panels."""
        yield SourcePanel()
        yield ValuesPanel()
        yield TimelinePanel()

    def on_mount(self) -> None:
        """Start its replay."""
        for panel in self.query(Rows):
            panel.glyphs = self.glyphs
        self.query_one(TimelinePanel).glyphs = self.glyphs
        self.query_one(SourcePanel).set_title(f"1 {self.path.name}: replaying ...")
        self.owner.start()

    @property
    def is_waiting(self) -> bool:
        """Whether a request is not answered yet."""
        return self.scene is None or bool(self._asked)

    @property
    def is_shown(self) -> bool:
        """Whether its panels exist: messages from its thread may arrive late."""
        return bool(self.query(TimelinePanel))

    def ask(self, work: Work, *, slot: str = "", then: Then | None = None, is_move: bool = False) -> None:
        """Request work from its session; `then` is called with the reply."""
        self._asked[self.owner.ask(work, slot=slot, is_move=is_move)] = then

    def order(self, line: str) -> None:
        """Execute a command of the prompt."""
        self.error = ""
        self.ask(lambda host: host.do(line), is_move=True)

    def to_failure(self) -> None:
        """Go to the failure of the program, if there is one."""
        failure = self.overview.failure if self.overview is not None else None
        if failure is not None:
            self.order(f"seek-ticks {failure.count}")

    def on_opened(self, message: Opened) -> None:
        """Show the run, and its failure."""
        if not self.is_shown:
            return
        self.overview = message.overview
        self.query_one(TimelinePanel).set_overview(message.overview)
        self.query_one(SourcePanel).set_failure(message.overview.failed_at)
        self._take(message.reply)

    def on_replied(self, message: Replied) -> None:
        """Show the result of an order."""
        then = self._asked.pop(message.number, None)
        self._take(message.reply)
        # One that was dropped from the queue has no answer.
        if then is not None and message.reply.answer is not None:
            then(message.reply)

    def on_restarted(self, message: Restarted) -> None:
        """Report that the session was restarted."""
        self.error = message.text
        self.post_message(self.Came())

    def on_trouble(self, message: Trouble) -> None:
        """Report an internal error; the last line is the most useful one."""
        self.error = message.text.strip().splitlines()[-1]
        self.post_message(self.Came())

    def _take(self, reply: Reply) -> None:
        self._texts |= {each.file: each for each in reply.texts}
        self.error = reply.error or self.error
        if reply.scene is not None:
            self.scene = reply.scene
        self.post_message(self.Came())

    def draw(self, differing: Mapping[str, str]) -> None:
        """Show the present state; `differing` are the names of values that differ on the other side."""
        scene = self.scene
        if scene is None or not self.is_shown:
            return
        values = tuple(_marked(each, differing) for each in scene.values)
        scene = replace(scene, values=values)
        at = scene.at
        panel = self.query_one(SourcePanel)
        panel.show_scene(scene, self._texts.get(at.file) if at is not None else None)
        set_subtitle(panel, f"{self.path.name}  {scene.reason or scene.place}")
        self.query_one(ValuesPanel).show_scene(scene)
        self.query_one(TimelinePanel).show_scene(scene)

    def on_scrubbed(self, message: Scrubbed) -> None:
        """Follow its timeline."""
        count = message.count
        self.ask(lambda host: host.scrub(count), slot="seek")

    def on_timeline_panel_range_wanted(self, message: TimelinePanel.RangeWanted) -> None:
        """Ignore it: two runs are compared as wholes."""
        message.stop()

    def on_rows_chosen(self, message: Rows.Chosen) -> None:
        """Expand or collapse the parts of a value."""
        key = message.key
        if isinstance(key, ValueRow) and key.parts:
            self.ask(lambda host: host.toggle(key.expression))

    def on_lanes_found(self, message: LanesFound) -> None:
        """Show when each lane ran."""
        if not self.is_shown:
            return
        self.query_one(TimelinePanel).set_lanes(message.lanes)
        self._fit_timeline()

    def on_tasks_found(self, message: TasksFound) -> None:
        """Show when each asyncio task ran."""
        if not self.is_shown:
            return
        self.query_one(TimelinePanel).set_tasks(message.times)
        self._fit_timeline()

    def _fit_timeline(self) -> None:
        timeline = self.query_one(TimelinePanel)
        timeline.styles.height = 2 + min(timeline.rows_wanted(), 7)

    def on_snapshots_found(self, message: SnapshotsFound) -> None:
        """Show the snapshots at their lines."""
        if self.overview is not None and self.is_shown:
            self.overview = replace(self.overview, snapshots=message.snapshots)
            self.query_one(TimelinePanel).set_overview(self.overview)


def _marked(value: ValueRow, differing: Mapping[str, str]) -> ValueRow:
    if value.expression not in differing:
        return value
    return replace(value, mark="!", old=differing[value.expression])
