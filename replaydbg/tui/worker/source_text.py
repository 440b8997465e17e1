"""A source file as it is shown: its colours, its lines with code, and their hit counts."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from replaydbg.events.show import printable
from replaydbg.tui.view_model import SourceText, Span
from replaydbg.tui.worker.scene_builder import short_file

if TYPE_CHECKING:
    from replaydbg.debugger import Session

HIGHLIGHTED = 20_000
"""Number of lines above which a file has no colours: a thousand lines take 15 ms."""

TAB = 8


def source_text(session: Session, file: str) -> SourceText:
    """Return the data of a source file of the program."""
    plain = session.sources.lines(file)
    lines = tuple(printable(each.expandtabs(TAB)) for each in plain)
    return SourceText(
        file=file,
        title=short_file(session, file, parts=2),
        lines=lines,
        spans=tuple(_spans(lines)) if len(lines) <= HIGHLIGHTED else (),
        hits=session.index.lines_hit(file),
        code=lines_with_code("\n".join(plain)),
    )


def lines_with_code(text: str) -> frozenset[int]:
    """Return the numbers of the lines that contain code; empty if this Python cannot compile it."""
    try:
        todo = [compile(text, "<source>", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    found: set[int] = set()
    while todo:
        code = todo.pop()
        # A function's first line is its `def`, which runs when the function is created.
        found.update(line for _, _, line in code.co_lines() if line and line != code.co_firstlineno)
        if code.co_name == "<module>":
            found.add(code.co_firstlineno)
        todo += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return frozenset(found)


def _spans(lines: tuple[str, ...]) -> Iterator[tuple[Span, ...]]:
    # Imported here: it takes 20 ms, which pass while the replay runs.
    from pygments.lexers.python import PythonLexer

    spans: list[Span] = []
    at = 0
    count = 0
    for kind, text in PythonLexer(stripnl=False, ensurenl=True).get_tokens("\n".join(lines)):
        style = _style(kind)
        for number, piece in enumerate(text.split("\n")):
            if number:
                yield tuple(spans)
                count += 1
                spans, at = [], 0
            if piece and style:
                spans.append((at, at + len(piece), style))
            at += len(piece)
    if count < len(lines):
        yield tuple(spans)


@cache
def _style(kind: Any) -> str:
    # Imported here, as above.
    from pygments.token import Comment, Keyword, Name, Number, String

    if kind in Name.Decorator or kind in Name.Builtin.Pseudo:
        return "decorator"
    known = (
        (Comment, "comment"),
        (Keyword, "keyword"),
        (String, "string"),
        (Number, "number"),
        (Name.Function, "function"),
        (Name.Class, "function"),
    )
    return next((style for group, style in known if kind in group), "")
