"""Panel 3: watched expressions and local variables, with their changes since the previous stop."""

from __future__ import annotations

import re
from collections.abc import Iterator

from replaydbg.tui.view_model import Scene, ValueRow
from replaydbg.tui.widgets.plain_text import set_subtitle
from replaydbg.tui.widgets.rows import PanelRow, Rows, plain

_STYLES = {"~": "warning", "+": "new", "-": "error", "!": "error"}


class ValuesPanel(Rows):
    """Values; choosing one shows its parts."""

    SHOWS_CURSOR = True
    HELP = """\
Watched expressions, then the variables of the selected frame. Marks: ~ changed since the last stop (old value shown),
+ new, - removed.

  enter  expand or collapse
  W  who wrote it last
  v  every value over the run
  w  watch an expression
  delete  remove a watched expression"""

    def __init__(self) -> None:
        super().__init__("3 Locals", id="values")

    @property
    def chosen(self) -> ValueRow | None:
        """The value under the cursor."""
        key = self.row.key if self.row is not None else None
        return key if isinstance(key, ValueRow) else None

    def select_first_of(self, text: str) -> None:
        """Select the variable that a source line names first, if there is one."""
        names = [row.key.name if isinstance(row.key, ValueRow) else "" for row in self.rows]
        found = next((each for each in re.findall(r"[^\W\d]\w*", text) if each in names), None)
        if found is not None:
            self.cursor = names.index(found)
            self.reveal()

    def watch_cursor(self) -> None:
        """Publish the selected value: the keys of other panels refer to it, too."""
        super().watch_cursor()
        value = self.chosen
        expression = value.expression if value is not None else ""
        set_subtitle(self, f"selected: {expression}" if expression else "")

    def show_scene(self, scene: Scene) -> None:
        """Show the session's position."""
        function = f"  {scene.at.function}" if scene.at is not None else ""
        self.set_title(f"3 Locals{function}")
        self.show(list(self._rows_of(scene)))
        self.watch_cursor()

    def _rows_of(self, scene: Scene) -> Iterator[PanelRow]:
        for each in scene.values:
            yield self._row(each)
        if scene.values_error:
            yield plain(scene.values_error, "dim")
        elif not scene.values:
            yield plain("No variables.", "dim")

    def _row(self, each: ValueRow) -> PanelRow:
        style = _STYLES.get(each.mark, "")
        sign = self.glyphs.opened if each.is_open else self.glyphs.closed if each.parts else " "
        name = f"{each.name} = " if each.name else ""
        old = f"   {'' if each.mark == '!' else 'was '}{each.old}" if each.old else ""
        pieces = (
            (f"{each.mark} ", style),
            ("  " * each.depth + f"{sign} ", "dim"),
            (name, "accent" if each.watch else "bold"),
            (each.text if each.mark != "-" else "(gone)", style),
            (old, "dim"),
        )
        return PanelRow(pieces, each)
