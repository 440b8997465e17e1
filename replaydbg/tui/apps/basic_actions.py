"""The actions of the keys: moving, panels, breakpoints, marks, and the input line."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial

from replaydbg.tui.apps.action_base import ActionBase
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.dialogs.help_dialog import HelpDialog
from replaydbg.tui.dialogs.input_line import AskLine
from replaydbg.tui.keys import ACTS
from replaydbg.tui.panels.lower_panel import TABS, LowerPanel, NotesPanel
from replaydbg.tui.panels.opening_card import OpeningCard
from replaydbg.tui.panels.source_panel import SourcePanel
from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.panels.values_panel import ValuesPanel
from replaydbg.tui.view_model import ConsoleLine, LineCompletion, Reply
from replaydbg.tui.widgets.rows import PanelRow, Rows

_PANELS = {1: "source", 2: "stack", 3: "values", 4: "heap", 5: "timeline", 6: "lower"}


FEW = 8
"""Number of completions up to which the status line probably has room for all."""

MOST_SHOWN = 50
"""Number of completions that it lists; no terminal is wide enough for more."""

_BY_NAME = {each.id: each for each in ACTS}


class BasicActions(ActionBase):
    """Actions that need no dialog of their own."""

    last_search = ""

    # ---- moving ----

    def action_order(self, line: str) -> None:
        """Execute a command of the prompt."""
        self.order(line)

    def action_run_to(self, word: str) -> None:
        """Run to the line under the cursor."""
        place = self.place_under_cursor()
        if place:
            self.order(f"{word} {place}")

    def place_under_cursor(self) -> str:
        """Return FILE:LINE of the source panel's cursor; if there is none, show a notice and return an empty string."""
        panel = self.part(SourcePanel)
        if not panel.file:
            self.complain("No source is shown.")
            return ""
        return f"{panel.file}:{panel.line}"

    def action_failure(self) -> None:
        """Go to the failure of the program or the test."""
        failure = self.overview.failure if self.overview is not None else None
        if failure is not None:
            self.order(f"seek-ticks {failure.count}")
        else:
            self.complain("The program did not fail.")

    def action_ask_seek(self) -> None:
        """Ask for the moment to go to."""
        self.part(AskLine).ask("go to (71%, 120:35, @exc, @out:3, @t+1.2s, @mark)", self._seek)

    def _seek(self, text: str) -> None:
        share = text.rstrip("%")
        # On the timeline a bare number below 100 with a decimal point can only be a percentage.
        self.order(f"seek {share}%" if "." in share and "@" not in share else f"seek {text}")

    def action_cancel(self) -> None:
        """Cancel the running operation; if there is none, close the card."""
        if self.scene is None:
            self.owner.cancel()
            self.exit(130)
        elif not self.owner.cancel():
            self.part(OpeningCard).display = False

    def action_interrupt(self) -> None:
        """Handle Ctrl-C: cancel the running operation; if there is none, quit."""
        if self.scene is None or not self.owner.cancel():
            self.exit(130 if self.scene is None else 0)

    async def action_quit(self) -> None:
        """Quit."""
        self.exit(0)

    # ---- panels ----

    def action_panel(self, number: int) -> None:
        """Focus a panel; for the sixth panel, the next of its tabs if it has the focus already."""
        lower = self.part(LowerPanel)
        if number == 6 and lower.rows.has_focus:
            lower.select_next()
            self.refresh_events()
        if number != 5:
            self.is_source_hidden = number != 1
            self.panel_shown = number if number != 1 else self.panel_shown
            self.lay_out()
        self.main.set_focus(lower.rows if number == 6 else self.part(f"#{_PANELS[number]}"))

    def action_tab(self, name: str) -> None:
        """Focus one of the sixth panel's tabs."""
        self.show_tab(name)
        self.main.set_focus(self.part(LowerPanel).rows)

    def show_tab(self, name: str) -> None:
        """Show one of the sixth panel's tabs."""
        assert name in TABS, name
        self.part(LowerPanel).select(name)
        self.panel_shown, self.is_source_hidden = 6, True
        self.lay_out()
        self.refresh_events()

    def action_focus_back(self) -> None:
        """Restore the focus to a panel after the input line."""
        if self.main.focused is None:
            self.main.set_focus(self.part(SourcePanel))

    # ---- breakpoints and marks ----

    def action_breakpoint(self) -> None:
        """Set a breakpoint at the line under the cursor, or remove it."""
        panel = self.part(SourcePanel)
        if self.place_under_cursor():
            self.toggle_point(panel.file, panel.line)

    def toggle_point(self, file: str, line: int) -> None:
        """Set a breakpoint at a line, or remove it."""
        points = self.scene.points if self.scene is not None else ()
        known = [each for each in points if (each.file, each.line) == (file, line)]
        if known:
            self.order(f"clear {known[0].number}")
        else:
            self.order(f"break {file}:{line}")

    def action_ask_mark(self) -> None:
        """Ask for the name of a new mark at this moment."""
        self.part(AskLine).ask("mark this moment as (NAME [note])", self._mark)

    def _mark(self, text: str) -> None:
        name, _, note = text.partition(" ")
        self.ask(lambda host: host.mark(name.lstrip("@"), note.strip()))

    def action_pick_mark(self) -> None:
        """Choose a mark to go to."""
        marks = self.scene.marks if self.scene is not None else ()
        known = [
            ("@start", "the first line of the run"),
            ("@end", "the program's last line"),
            ("@last", "the interpreter's last line"),
        ]
        rows = [
            PanelRow(((f"@{each.name}", "bold"), (f"  {each.moment}  {each.note}", "")), f"@{each.name}")
            for each in marks
        ]
        rows += [PanelRow(((name, "bold"), (f"  {text}", "dim")), name) for name, text in known]
        self.push_screen(Dialog("Go to a mark", rows, hint="Enter goes there"), self._go_to)

    def _go_to(self, moment: object) -> None:
        if isinstance(moment, str):
            self.order(f"seek {moment}" if moment != "@start" else "start")
        elif isinstance(moment, int):
            self.order(f"seek-ticks {moment}")

    def action_delete(self) -> None:
        """Remove the item under the cursor: a watched expression, a mark, a breakpoint."""
        values, notes = self.part(ValuesPanel), self.part(NotesPanel)
        if values.has_focus and values.chosen is not None and values.chosen.watch:
            self.order(f"undisplay {values.chosen.watch}")
        elif notes.has_focus and notes.chosen_mark is not None:
            name = notes.chosen_mark.name
            self.ask(lambda host: host.remove_mark(name))
        elif self.part(TimelinePanel).has_focus:
            self.part(TimelinePanel).remove_last_track()
            self.lay_out()
        elif notes.has_focus and notes.chosen_point is not None:
            self.order(f"clear {notes.chosen_point.number}")

    def action_copy_moment(self) -> None:
        """Copy a link to this moment to the clipboard, through the terminal."""
        if self.scene is None or self.overview is None:
            return
        link = f"rdbg://{self.overview.name}@{self.scene.moment}"
        self.copy_to_clipboard(link)
        self.add_to_console([ConsoleLine(link)])
        self.inform(f"Copied {link}")

    def inform(self, text: str) -> None:
        """Show a notice until the next key."""

    # ---- the input line ----

    def action_ask_command(self) -> None:
        """Ask for any command of the prompt, or the name of an action."""
        label = ">" if self.scene is not None and self.scene.is_commanded else ":"
        words = self.overview.words if self.overview is not None else ()
        self.part(AskLine).ask(
            label, self.do_typed, words=dict.fromkeys((*words, *_BY_NAME)), completes=partial(self._complete, "")
        )

    def _complete(self, before: str, line: str, cursor: int) -> None:
        """Complete the typed line, an argument of the command `before`; list the words if there are several."""

        def show(reply: Reply) -> None:
            found, asker = reply.answer, self.part(AskLine)
            if isinstance(found, LineCompletion) and asker.is_at(line, cursor):
                asker.insert_common(found.start - len(before), found.common)
                number = f"{len(found.words):,} words:  " if len(found.words) > FEW else ""
                self.inform(f" {number}{'  '.join(found.words[:MOST_SHOWN])}" if len(found.words) != 1 else "")

        at = len(before) + cursor
        self.ask(lambda host: host.complete(before + line, at), slot="complete", then=show)

    def do_typed(self, line: str) -> None:
        """Execute a line that was typed: words with a panel or a dialog of their own are answered there."""
        word, _, rest = line.partition(" ")
        is_commanded = self.scene is not None and self.scene.is_commanded
        if not rest and word in _BY_NAME and not is_commanded and not self._is_word(word):
            self.call_later(self.run_action, _BY_NAME[word].action)
        elif not rest or is_commanded or not self.typed_answer(word, rest.strip()):
            self.order(line, is_typed=True)

    def take_pasted(self, text: str) -> None:
        """Put pasted text after `:`, to be checked before it is executed."""
        lines = text.strip().splitlines()
        if self.screen is not self.main or not lines:
            return
        self.action_ask_command()
        self.part(AskLine).type(lines[0].removeprefix(":"))
        if len(lines) > 1:
            self.complain(f"{len(lines):,} lines were pasted; only the first one is used.")

    def _is_word(self, word: str) -> bool:
        return self.overview is not None and word in self.overview.words

    @abstractmethod
    def typed_answer(self, word: str, rest: str) -> bool:
        """Answer a word of the prompt in a panel or a dialog; False: there is none for it."""

    def action_ask_watch(self) -> None:
        """Ask for an expression to watch."""
        value = self.part(ValuesPanel).chosen if self.part(ValuesPanel).has_focus else None
        start = value.expression if value is not None and not value.watch else ""
        self.part(AskLine).ask(
            "watch",
            lambda text: self.action_order(f"display {text}"),
            value=start,
            completes=partial(self._complete, "display "),
        )

    def action_ask_search(self) -> None:
        """Ask for text to search in the source; empty: the same as before."""
        self.part(AskLine).ask("/", self._search, value=self.last_search)

    def _search(self, text: str) -> None:
        self.last_search = text
        if not self.part(SourcePanel).search(text):
            self.complain(f"{text!r} is not in this file.")

    # ---- help ----

    def action_help(self) -> None:
        """Show the focused panel's help and the keys."""
        focused = self.focused
        own = focused.HELP if isinstance(focused, (Rows, TimelinePanel)) else ""
        parts = [own, ""]
        group = ""
        for each in ACTS:
            if each.group != group:
                group = each.group
                parts += ["", f"{group}:"]
            parts.append(f"  {self.keys[each.id] or '(none)'}  {each.title}")
        self.push_screen(HelpDialog("\n".join(parts), hint="Esc closes; :help lists the commands"))
