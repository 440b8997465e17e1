"""The actions on the processes of a group: selecting one, following a message, the chart of messages."""

from __future__ import annotations

from replaydbg.tui.apps.query_actions import QueryActions
from replaydbg.tui.dialogs.message_chart import MessageChartDialog
from replaydbg.tui.panels.opening_card import OpeningCard
from replaydbg.tui.view_model import ChartAnswer, ChartRow, Reply
from replaydbg.tui.widgets.glyphs import Glyphs


class GroupActions(QueryActions):
    """Actions that lead to other processes."""

    glyphs: Glyphs

    def action_processes(self) -> None:
        """List the processes of the group, to select one."""
        self.question("processes")

    def action_jump(self, end: str) -> None:
        """Go to the sender of what is received here, or to the receiver of what is sent."""
        self.part(OpeningCard).display = False
        self.ask(lambda host: host.jump(is_receive=end == "sender"), then=self.show_answer)

    def action_messages(self) -> None:
        """Show the messages between the processes of the group."""
        self.ask(lambda host: host.ask("messages"), then=self._show_messages)

    def _show_messages(self, reply: Reply) -> None:
        if isinstance(reply.answer, ChartAnswer):
            self.push_screen(MessageChartDialog(reply.answer, self.glyphs), self._message_chosen)

    def _message_chosen(self, key: object) -> None:
        if isinstance(key, ChartRow):
            self.go_to_choice(key.end, key.order)
