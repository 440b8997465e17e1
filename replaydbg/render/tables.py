"""Tables, drawn on a terminal or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

from replaydbg.events.show import printable
from replaydbg.launch.terminal_width import WIDTH, terminal_width

if TYPE_CHECKING:
    from rich.table import Table as Drawing


@dataclass(frozen=True, slots=True)
class Table:
    """One table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[str, ...] = ()
    """The columns that hold numbers."""
    more: str = ""
    """A hint at rows that are not shown; empty: all are."""
    notes: tuple[str, ...] = ()
    """Sentences below it."""
    kind: str = ""
    """The kind of its rows, for views that treat some differently: `changed`, `new` or `gone`; empty: any."""


def numbers(count: int) -> str:
    """Return a number as people read it."""
    return f"{count:,}"


def signed(count: int) -> str:
    """Return a number with its sign; nothing for 0."""
    return f"{count:+,}" if count else ""


def sizes(count: int) -> str:
    """Return a number of bytes as people read it."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size) < 1000 or unit == "GB":
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    raise AssertionError(count)


def more_text(left_out: int, how: str) -> str:
    """Return that something is not shown; empty if all is."""
    return f"and {left_out:,} more: {how}" if left_out else ""


def drawn(tables: Iterable[Table], *, width: int = 0, is_coloured: bool = False) -> str:
    """Return tables as text, `width` columns wide (default: those of the terminal)."""
    # Imported here: rich takes 20 ms and more, and most commands draw nothing.
    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    room = width or terminal_width()
    console = Console(
        file=out,
        width=room,
        height=WIDTH,  # without one rich would read the variable COLUMNS, too, which may contain anything
        force_terminal=is_coloured,
        color_system="standard" if is_coloured else None,
        highlight=False,
    )
    for table in tables:
        console.print(Text(printable(table.title), "bold"))
        if table.rows:
            console.print(_drawing(table, room))
        for note in (table.more, *table.notes):
            if note:
                console.print(Text(f"  {printable(note)}", "dim"))
        console.print()
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _drawing(table: Table, room: int) -> Drawing:
    """Return the rows of a table for a terminal of `room` columns."""
    # Imported here, as above.
    from rich import box
    from rich.table import Table as Drawing
    from rich.text import Text

    from replaydbg.render.layout.wrapping import column_widths, wrapped

    drawing = Drawing(box=box.SIMPLE_HEAD if any(table.columns) else None, pad_edge=False)
    # What is between the columns, and the border of the box.
    taken = 2 * len(table.columns) - 2 + (len(table.columns) + 1 if drawing.box else 0)
    fixed = [each in table.right for each in table.columns]
    cells = [[printable(cell) for cell in column] for column in zip(table.columns, *table.rows, strict=True)]
    widths = column_widths(cells, fixed, room - taken)
    # Text, not str: text of a recording that looks like markup is not markup.
    folded = [
        [Text("\n".join(wrapped(cell, width))) for cell in column] for column, width in zip(cells, widths, strict=True)
    ]
    for (head, *_), width, is_number in zip(folded, widths, fixed, strict=True):
        drawing.add_column(head, justify="right" if is_number else "left", width=width, overflow="fold")
    for row in list(zip(*folded, strict=True))[1:]:
        drawing.add_row(*row)
    return drawing


def markdown(tables: Iterable[Table]) -> str:
    """Return tables as Markdown."""
    lines = []
    for table in tables:
        lines += [f"### {_escaped(table.title)}", ""]
        if table.rows:
            lines.append(f"| {' | '.join(table.columns)} |")
            lines.append(f"|{'|'.join('---:' if each in table.right else '---' for each in table.columns)}|")
            lines += [f"| {' | '.join(_cells(table, row))} |" for row in table.rows]
            lines.append("")
        for note in (table.more, *table.notes):
            lines += [_escaped(note), ""] if note else []
    return "\n".join(lines)


def _cells(table: Table, row: tuple[str, ...]) -> list[str]:
    named = zip(table.columns, row, strict=True)
    return [_cell(cell, is_plain=name in table.right) for name, cell in named]


def _cell(text: str, *, is_plain: bool) -> str:
    if is_plain or not text:
        return text
    safe = printable(text).replace("|", "\\|")
    # Code may hold backquotes itself; a longer row of them goes around it.
    quote = "`" * (max((len(run) for run in _quotes(safe)), default=0) + 1)
    pad = " " if "`" in safe else ""
    return f"{quote}{pad}{safe}{pad}{quote}"


def _quotes(text: str) -> list[str]:
    return ["`" * len(run) for run in "".join(char if char == "`" else " " for char in text).split()]


def _escaped(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_<>|[]#" else char for char in printable(text))
