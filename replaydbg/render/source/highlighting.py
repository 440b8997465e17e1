"""Lines of Python: their coloured pieces, and which of them contain code."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

Span = tuple[int, int, str]
"""A piece of a source line: its start, its end, and its kind, such as `keyword`."""

HIGHLIGHTED = 20_000
"""Number of lines above which a file has no colours: a thousand lines take 15 ms."""

TAB = 8


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


def coloured(lines: Sequence[str]) -> Iterator[tuple[Span, ...]]:
    """Yield the coloured pieces of each line of a Python file."""
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
