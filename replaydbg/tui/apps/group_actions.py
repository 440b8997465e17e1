"""The actions on the processes of a group: selecting one, following a message, the space-time diagram."""

from __future__ import annotations

from collections import deque

from replaydbg.tui.apps.query_actions import QueryActions
from replaydbg.tui.diagram_model import CutMove, DiagramAnswer
from replaydbg.tui.dialogs.space_time_dialog import SpaceTimeDialog
from replaydbg.tui.panels.opening_card import OpeningCard
from replaydbg.tui.view_model import Reply


class GroupActions(QueryActions):
    """Actions that lead to other processes."""

    def __init__(self) -> None:
        super().__init__()
        self._moves: deque[CutMove] = deque()
        """Keys of the diagram that the session's thread has not taken yet."""

    def action_processes(self) -> None:
        """List the processes of the group, to select one."""
        self.question("processes")

    def action_jump(self, end: str) -> None:
        """Go to the sender of what is received here, or to the receiver of what is sent."""
        self.part(OpeningCard).display = False
        self.ask(lambda host: host.jump(is_receive=end == "sender"), then=self.show_answer)

    def action_messages(self) -> None:
        """Show the space-time diagram of the group."""
        self.ask(lambda host: host.open_diagram(), then=self._show_diagram)

    def _show_diagram(self, reply: Reply) -> None:
        if isinstance(reply.answer, DiagramAnswer):
            self.show_late(
                SpaceTimeDialog(reply.answer, self.glyphs, self._move_cut, self._cancel_moves), self._diagram_chosen
            )

    def _move_cut(self, move: CutMove) -> None:
        # The first request takes all keys that were typed by then; later ones find nothing to do, and answer at once.
        self._moves.append(move)
        self.ask(lambda host: host.move_cut(self._moves), then=self._show_moved)

    def _cancel_moves(self) -> bool:
        self._moves.clear()
        return self.owner.cancel()

    def _show_moved(self, reply: Reply) -> None:
        if isinstance(reply.answer, DiagramAnswer) and isinstance(self.screen, SpaceTimeDialog):
            self.screen.show_answer(reply.answer)

    def _diagram_chosen(self, key: object) -> None:
        if isinstance(key, DiagramAnswer):
            self.go_to_choice(key.end, key.order)
