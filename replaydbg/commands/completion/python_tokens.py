"""Tokens of Python that is still being typed: a string or a bracket may not be closed yet."""

from __future__ import annotations

import keyword
import re
from typing import NamedTuple

CONSTANTS = ("False", "None", "True")
"""The keywords that are values."""

_CLOSING = {")": "(", "]": "[", "}": "{"}
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<comment>\#.*)
    | (?P<string>[bfrtuBFRTU]{0,2}(?:'''|\"\"\"|'|"))
    | (?P<number>\.?\d(?:[eE][+-]|[\w.])*)
    | (?P<name>[^\W\d]\w*)
    | (?P<operator>\.\.\.|\*\*=?|//=?|>>=?|<<=?|:=|->|[-+*/%@&|^=<>!]=?|.)
    """,
    re.X | re.S,
)


class Token(NamedTuple):
    """A token of a line of Python."""

    kind: str
    """`comment`, `string`, `number`, `name` or `operator`."""
    text: str
    start: int
    """Its place in the line, in characters."""
    is_open: bool = False
    """Whether it is a string without its end."""

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + len(self.text)

    @property
    def ends_operand(self) -> bool:
        """Whether an operand may end with it, so that an operator, a call or a subscript may follow."""
        if self.kind == "name":
            return not keyword.iskeyword(self.text) or self.text in CONSTANTS
        return self.kind in ("number", "string") or self.text in (*_CLOSING, "...")


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text, without spaces."""
    found = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None and match.lastgroup is not None, "any character is an operator"
        kind, end = match.lastgroup, match.end()
        is_open = False
        if kind == "string":
            end, is_open = _end_of_string(text, match)
        if kind != "space":
            found.append(Token(kind, text[at:end], at, is_open))
        at = end
    return found


def quote_of(literal: str) -> str:
    """Return the quote with which a string begins, behind its prefix."""
    body = literal.lstrip("bfrtuBFRTU")
    return body[:3] if body[:3] in ("'''", '"""') else body[:1]


def _end_of_string(text: str, begun: re.Match[str]) -> tuple[int, bool]:
    quote = quote_of(begun[0])
    at = begun.end()
    while at < len(text):
        if text.startswith(quote, at):
            return at + len(quote), False
        # The quote behind a backslash does not end a raw string, either.
        at += 2 if text[at] == "\\" else 1
    return len(text), True


def operand_start(tokens: list[Token], last: int) -> int | None:
    """Return the index of the first token of the operand that ends with token `last`, as in `a.b(c)[d]`; None: there is
    none."""
    at = last
    while at >= 0 and tokens[at].ends_operand:
        token = tokens[at]
        if token.text in _CLOSING and token.kind == "operator":
            opened = _opening(tokens, at)
            if opened is None:
                return None
            is_trailer = token.text != "}" and opened > 0 and tokens[opened - 1].ends_operand
            if not is_trailer:
                return opened
            at = opened - 1
        elif token.kind == "name" and at > 0 and tokens[at - 1].text == ".":
            at -= 2
        elif token.kind == "string" and at > 0 and tokens[at - 1].kind == "string":
            at -= 1
        else:
            return at
    return None


def _opening(tokens: list[Token], closing: int) -> int | None:
    """Return the index of the bracket that another one closes."""
    opened: list[str] = []
    for at in range(closing, -1, -1):
        token = tokens[at]
        if token.kind != "operator":
            continue
        if token.text in _CLOSING:
            opened.append(_CLOSING[token.text])
        elif token.text in _CLOSING.values():
            if token.text != opened.pop():
                return None
            if not opened:
                return at
    return None
