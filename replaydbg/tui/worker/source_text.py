"""A source file as it is shown: its colours, its lines with code, and their hit counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replaydbg.events.show import printable
from replaydbg.render.source.highlighting import HIGHLIGHTED, TAB, coloured, lines_with_code
from replaydbg.tui.view_model import SourceText
from replaydbg.tui.worker.scene_builder import short_file

if TYPE_CHECKING:
    from replaydbg.debugger import Session


def source_text(session: Session, file: str) -> SourceText:
    """Return the data of a source file of the program."""
    plain = session.sources.lines(file)
    lines = tuple(printable(each.expandtabs(TAB)) for each in plain)
    return SourceText(
        file=file,
        title=short_file(session, file, parts=2),
        lines=lines,
        spans=tuple(coloured(lines)) if len(lines) <= HIGHLIGHTED else (),
        hits=session.index.lines_hit(file),
        code=lines_with_code("\n".join(plain)),
    )
