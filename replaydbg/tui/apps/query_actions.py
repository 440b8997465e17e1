"""Queries of the run: who wrote a value, its history, what changed in memory, where it went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replaydbg.tui.apps.basic_actions import BasicActions
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.dialogs.icicle_dialog import IcicleDialog
from replaydbg.tui.dialogs.input_line import AskLine
from replaydbg.tui.icicle_model import IcicleAnswer
from replaydbg.tui.panels.heap_panel import HeapPanel
from replaydbg.tui.panels.lower_panel import EventsPanel, LowerPanel
from replaydbg.tui.panels.opening_card import OpeningCard
from replaydbg.tui.panels.source_panel import SourcePanel
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.panels.values_panel import ValuesPanel
from replaydbg.tui.ui_messages import TrackFound
from replaydbg.tui.view_model import (
    BEHIND,
    WRONG,
    AnswerList,
    Choice,
    ConsoleLine,
    EventsAnswer,
    HeapAnswer,
    Reply,
    Track,
)
from replaydbg.tui.widgets.glyphs import Glyphs
from replaydbg.tui.widgets.rows import PanelRow, plain

if TYPE_CHECKING:
    from pathlib import Path

    from replaydbg.groups.messages import MessageEnd


class QueryActions(BasicActions):
    """Actions whose answers are lists, or fill a panel."""

    compared = ""
    """The moment of the last memory comparison."""
    next_path: Path | None = None
    """The recording that is to be opened after this one."""
    glyphs: Glyphs

    # ---- answers ----

    def question(self, name: str, *about: object) -> None:
        """Ask one of the queries of moment_queries.py, and show the answer as a list to choose from."""
        self.ask(lambda host: host.ask(name, *about), then=self.show_answer)

    def show_answer(self, reply: Reply) -> None:
        """Show an answer, and go where the user chooses."""
        answer = reply.answer
        if not isinstance(answer, AnswerList):
            return
        rows = [plain(each.text, each.style, each if each.leads_somewhere else None) for each in answer.choices]
        self.show_late(Dialog(answer.title, rows, cursor=answer.at, hint=answer.hint, is_late=True), self._chosen)

    def _chosen(self, key: object) -> None:
        if not isinstance(key, Choice):
            return
        if key.count:
            self.order(f"seek-ticks {key.count}")
        if key.why:
            self.ask_why(key.why)
        if key.path:
            self.ask_object(key.path)
        if key.values is not None:
            self.question("history", *key.values)
        if key.recording is not None:
            self.open_next(key.recording)
            return
        self.go_to_choice(key.end, key.order)

    def open_next(self, path: Path) -> None:
        """Leave, and have another recording opened."""
        self.next_path = path
        self.exit(0)

    def go_to_choice(self, end: MessageEnd | None, order: str) -> None:
        """Go to a send or a receive in any process, or execute a command of the prompt."""
        if end is not None:
            self.part(OpeningCard).display = False
            self.ask(lambda host: host.go_to_end(end))
        elif order:
            self.order(order)

    # ---- values ----

    def action_who_wrote(self) -> None:
        """Find who wrote the selected value: in the heap panel if it has the focus, else in the values panel."""
        heap, values = self.part(HeapPanel), self.part(ValuesPanel)
        if heap.has_focus and heap.chosen is not None:
            path = heap.chosen.path
            self.ask(lambda host: host.who_wrote_object(path), then=self.show_answer)
        elif values.chosen is not None and values.chosen.expression:
            self.ask_why(values.chosen.expression)
        else:
            self.part(AskLine).ask("who wrote", self.ask_why)

    def ask_why(self, expression: str) -> None:
        """Find who wrote a value."""
        self.question("who_wrote", expression)

    def action_history(self) -> None:
        """List all values that the selected expression had over the run."""
        value = self.part(ValuesPanel).chosen
        if value is not None and value.expression:
            self._ask_history(value.expression)
        else:
            self.part(AskLine).ask("all values of", self._ask_history)

    def _ask_history(self, expression: str) -> None:
        self.question("history", expression)

    def typed_answer(self, word: str, rest: str) -> bool:
        """Answer a word of the prompt in a panel or a dialog; False: there is none for it."""
        if word == "bisect":
            self._bisect("bad", rest)
        elif word in ("log", "dprintf"):
            self.ask(lambda host: host.ask("log_line", rest), then=self._printed)
        elif word == "resources" and not rest:
            self.action_resources()
        elif word == "diff" and "all" not in rest.split():
            self.compare(rest)
        else:
            return False
        self.add_to_console([ConsoleLine(f"(rdbg) {word} {rest}", "bold")])
        return True

    def action_resources(self) -> None:
        """List what the process holds here."""
        self.question("resources")

    # ---- lines ----

    def ask_visits(self, file: str, line: int) -> None:
        """List the moments at which a line ran."""
        self.question("visits", file, line)

    def action_ask_print(self) -> None:
        """Ask for an expression to print at the line under the cursor, over the whole run."""
        panel = self.part(SourcePanel)
        if self.place_under_cursor():
            file, line = panel.file, panel.line
            self.part(AskLine).ask(
                f"print at line {line} (EXPR [if COND])", lambda text: self._print_past(file, line, text)
            )

    def _print_past(self, file: str, line: int, text: str) -> None:
        self.ask(lambda host: host.ask("logged", file, line, text), then=self._printed)

    def _printed(self, reply: Reply) -> None:
        assert isinstance(reply.answer, tuple), reply.answer
        track, lines = reply.answer
        assert isinstance(track, Track), track
        self.part(TimelinePanel).set_track(track)
        more = " and more" if track.more else ""
        self.add_to_console(
            [
                ConsoleLine(f"{track.key}: {len(track.marks):,} times{more}", "bold"),
                *(ConsoleLine(each) for each in lines),
            ]
        )
        self.show_tab("console")
        self.lay_out()

    # ---- memory ----

    def action_ask_diff(self) -> None:
        """Ask for the moment with which memory is to be compared."""
        marks = self.scene.marks if self.scene is not None else ()
        snapshots = self.overview.snapshots if self.overview is not None else ()
        rows = [
            PanelRow(((f"@{each.name}", "bold"), (f"  {each.moment}  {each.note}", "")), f"@{each.name}")
            for each in marks
        ]
        rows += [PanelRow(((f"snapshot {each.text}", "bold"),), f"@{each.text.split()[0]}") for each in snapshots]
        rows.append(PanelRow((("@start", "bold"), ("  the first line of the run", "dim")), "@start"))
        rows.append(PanelRow((("another moment, or two ...", "accent"),), ""))
        hint = "Enter: show what changed between that moment and this one"
        self.push_screen(Dialog("Compare memory with", rows, hint=hint), self._compare_chosen)

    def _compare_chosen(self, key: object) -> None:
        if key == "":
            label = "compare memory with (MOMENT, or MOMENT MOMENT)"
            self.part(AskLine).ask(label, self.compare, value=self.compared)
        elif isinstance(key, str):
            self.compare(key)

    def compare(self, moments: str, *, scope: str = "mine") -> None:
        """Show the memory changes between a moment and here, or between two moments."""
        self.compared = moments
        since, _, until = moments.strip().partition(" ")
        self.ask(lambda host: host.compare(since, until.strip(), scope), then=self._compared)

    def _compared(self, reply: Reply) -> None:
        assert isinstance(reply.answer, HeapAnswer), reply.answer
        self.part(HeapPanel).show_answer(reply.answer)
        self.action_panel(4)

    def action_heap(self) -> None:
        """Show what is in memory here, in place of a comparison."""
        self.ask(lambda host: host.follow_heap())
        self.action_panel(4)

    def action_growth(self) -> None:
        """Show how memory grows over the run."""
        self.ask(lambda host: host.growth(), then=self._growth_found)

    def _growth_found(self, reply: Reply) -> None:
        assert isinstance(reply.answer, HeapAnswer), reply.answer
        self.part(HeapPanel).show_growth(reply.answer)
        self.action_panel(4)

    def action_icicle(self) -> None:
        """Show what keeps memory alive."""
        self.ask(lambda host: host.icicle(), then=self._show_icicle)

    def _show_icicle(self, reply: Reply) -> None:
        if isinstance(reply.answer, IcicleAnswer):
            self.show_late(IcicleDialog(reply.answer, self.glyphs), self._icicle_chosen)

    def _icicle_chosen(self, path: object) -> None:
        if isinstance(path, str):
            self.ask(lambda host: host.about_object(path, is_drawn=True), then=self.show_answer)

    def ask_object(self, path: str) -> None:
        """Show the facts about an object."""
        self.ask(lambda host: host.about_object(path), then=self.show_answer)

    # ---- events ----

    def refresh_events(self) -> None:
        """Read the events around this moment, if their panel is visible."""
        if self.part(LowerPanel).selected == "events":
            self.ask(lambda host: host.ask("events_around"), slot="events", then=self._show_events)

    def _show_events(self, reply: Reply) -> None:
        answer = reply.answer
        if not isinstance(answer, EventsAnswer):
            return
        rows = [
            PanelRow(((text, "" if number <= answer.here else "dim"),), str(number) if number else None)
            for number, text in answer.rows
        ]
        before = sum(1 for number, _ in answer.rows if number <= answer.here)
        self.part(EventsPanel).show(rows or [plain("No previous question.", "dim")], cursor=max(before - 1, 0))

    # ---- bisection ----

    def action_bisect(self) -> None:
        """Ask for a predicate, and find the first line after which it holds."""
        claim = self.overview.claim if self.overview is not None else None
        rows = [plain(f"this assertion of the test is false: {claim.source}", "", claim)] if claim is not None else []
        rows += [plain(text, "", kind) for kind, text in WRONG.items()]
        rows += [plain(""), plain("Options", "accent")]
        rows += [PanelRow(((f"  {words:<17}", "bold"), (text, ""))) for words, text in BEHIND.items()]
        hint = "Enter: then type the condition; the search covers the run up to its failure"
        self.push_screen(Dialog("The run is bad when", rows, hint=hint), self._ask_predicate)

    def _ask_predicate(self, kind: object) -> None:
        if kind is not None and not isinstance(kind, str):
            self.question("bisect_claim", kind, self._show_looks)
        elif kind is not None:
            text = WRONG[kind]
            self.part(AskLine).ask(f"bisect: {text}:", lambda answer: self._bisect(kind, answer))
            self.inform(f"options: {'  '.join(BEHIND)}")

    def _bisect(self, kind: str, text: str) -> None:
        self.inform("")
        self.question("bisect", kind, text, self._show_looks)

    def action_futures(self) -> None:
        """Let the run go on from here with other interleavings, and show how that ends."""
        self.question("futures", self._show_looks)

    def _show_looks(self, track: Track) -> None:
        # Called by the session's thread.
        self.post_message(TrackFound(track))
