"""The space-time diagram of a group, with a cut that keys move, and the state of processes and channels beside it."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message

from replaydbg.tui.diagram_model import CutMove, DiagramAnswer, DiagramRow
from replaydbg.tui.dialogs.diagram_rows import DiagramText
from replaydbg.tui.dialogs.dialog import Choices, Dialog
from replaydbg.tui.widgets.glyphs import Glyphs
from replaydbg.tui.widgets.plain_text import PlainText, set_title
from replaydbg.tui.widgets.rows import PanelRow, Rows

PAGE = 10
"""Events by which Page Up and Page Down move the cut."""

WHOLE = 1_000_000_000

WRAPPED = 40
"""Width of the lines beside the diagram before their panel has one."""

HINT = "Up/Down move the cut  Left/Right process  Q quiet cuts  Enter last call"


class _DiagramRows(Choices, inherit_bindings=False):
    """The diagram; the line of the cut has the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move_cut(-1)", "Up", show=False, id="rows.up"),
        Binding("down,j", "move_cut(1)", "Down", show=False, id="rows.down"),
        Binding("pageup", f"move_cut(-{PAGE})", "Page up", show=False),
        Binding("pagedown", f"move_cut({PAGE})", "Page down", show=False),
        Binding("home", f"move_cut(-{WHOLE})", "Top", show=False),
        Binding("end", f"move_cut({WHOLE})", "Bottom", show=False),
        Binding("left,h", "move_lane(-1)", "Left", show=False, id="timeline.left"),
        Binding("right,l", "move_lane(1)", "Right", show=False, id="timeline.right"),
        Binding("Q", "switch_quiet", "Quiet cuts", show=False),
        Binding("enter", "go", "Go there", show=False),
    ]

    class Moved(Message):
        """A key moved the cut."""

        def __init__(self, move: CutMove) -> None:
            super().__init__()
            self.move = move

    def action_move_cut(self, by: int) -> None:
        """Move the process under the cursor by a number of events."""
        self.post_message(self.Moved(CutMove(events=by)))

    def action_move_lane(self, by: int) -> None:
        """Select another process."""
        self.post_message(self.Moved(CutMove(lanes=by)))

    def action_switch_quiet(self) -> None:
        """Show only quiet cuts, or all."""
        self.post_message(self.Moved(CutMove(switches_quiet=True)))

    def action_go(self) -> None:
        """Go to the position of the process under the cursor."""
        self.post_message(self.Chosen(self, None))

    def on_click(self, event: events.Click) -> None:
        """Move the cut to the event that was clicked."""
        event.prevent_default()  # the cursor stays at the line
        at = self._row_at(event)
        row = self.rows[at] if at is not None else None
        if row is not None and isinstance(row.key, DiagramRow):
            self.post_message(self.Moved(CutMove(to=(row.key.process, row.key.position))))

    def reveal(self, margin: int = 3) -> None:
        """Keep the cut in the middle."""
        height = max(self.scrollable_content_region.height, 1)
        self.scroll_to(y=max(self.cursor - height // 2, 0), animate=False, force=True)


class SpaceTimeDialog(Dialog):
    """The diagram. It returns the answer from which to take the place to go to, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel, or close", show=False)]

    def __init__(
        self, answer: DiagramAnswer, glyphs: Glyphs, move: Callable[[CutMove], None], cancel: Callable[[], bool]
    ) -> None:
        """`move` is called for each key that moves the cut; then comes another answer.

        `cancel` gives up what is being computed, and returns whether there was something.
        """
        super().__init__(answer.title, (), hint=HINT, is_late=True)
        self._answer, self._glyphs, self._move, self._cancel = answer, glyphs, move, cancel

    def compose(self) -> ComposeResult:
        """Make the box."""
        with Container(id="box") as box:
            self.set_border_texts(box)
            head = PlainText(id="head")
            yield head
            with Container(id="diagram"):
                yield _DiagramRows("", id="choices")
                state = Rows("", id="state")
                state.can_focus = False
                yield state

    def fill(self) -> None:
        """Show the first answer."""
        self.show_answer(self._answer)

    def on_resize(self) -> None:
        """Put the state below the diagram where there is no room beside it."""
        self.set_class(self.app.size.width < 100, "-stacked")
        self.call_after_refresh(self._draw)

    def show_answer(self, answer: DiagramAnswer) -> None:
        """Show another cut."""
        self._answer = answer
        if self.has_parts:
            set_title(self.query_one("#box"), answer.title)
            self._draw()

    def _draw(self) -> None:
        """Show the answer in the present size: which columns are visible, and where lines are wrapped."""
        if not self.has_parts:
            return
        rows, state = self.query_one(_DiagramRows), self.query_one("#state", Rows)
        drawing = DiagramText(self._answer, self._glyphs, rows.scrollable_content_region.width)
        rows.show(drawing.rows(), cursor=drawing.line)
        self.query_one("#head", PlainText).set_text(drawing.head)
        width = state.scrollable_content_region.width or WRAPPED
        state.show([PanelRow(((text, style),)) for line, style in self._answer.state for text in _wrapped(line, width)])

    def on__diagram_rows_moved(self, event: _DiagramRows.Moved) -> None:
        """Ask for another cut."""
        event.stop()
        self._move(event.move)

    def action_leave(self) -> None:
        """Cancel what takes long; otherwise close."""
        if not self._cancel():
            self.dismiss(None)

    def result(self, key: object) -> object:
        """Return what is shown now."""
        return self._answer


def _wrapped(line: str, width: int) -> list[str]:
    return wrap(line, max(width, WRAPPED // 2), subsequent_indent="   ", drop_whitespace=False) or [""]
