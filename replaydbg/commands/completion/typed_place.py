"""The name, attribute or key that is being typed at the end of a line of Python."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from replaydbg.commands.completion.python_tokens import Token, operand_start, quote_of, tokens_of

_NUMBER_KEY = re.compile(r"-?[\d.][\w.]*\Z")


@dataclass(frozen=True, slots=True)
class TypedName:
    """A name is being typed."""

    start: int
    """Where it begins in the line."""
    is_operator: bool = False
    """Whether an operator has to follow here, and so only keywords such as `and` can be meant."""


@dataclass(frozen=True, slots=True)
class TypedAttribute:
    """The name of an attribute is being typed."""

    start: int
    owner: str
    """The expression before the dot."""


@dataclass(frozen=True, slots=True)
class TypedKey:
    """A key is being typed."""

    start: int
    """Where its literal begins in the line, with the quote; where nothing of it is typed, where it has to."""
    owner: str
    """The expression before the bracket."""
    literal: str
    """The part of the literal that has been typed."""


TypedPlace = TypedName | TypedAttribute | TypedKey


def typed_place(text: str) -> TypedPlace | None:
    """Return what is being typed at the end of `text`; None: nothing that can be completed."""
    tokens = tokens_of(text)
    if not tokens:
        return TypedName(len(text))
    last = tokens[-1]
    if last.kind == "comment":
        return None
    if last.is_open:
        is_computed = not set("fFtT").isdisjoint(last.text[: last.text.index(quote_of(last.text))])
        return None if is_computed else _key(text, tokens[:-1], last.start)
    is_at_end = last.end == len(text)
    if is_at_end and last.kind == "string":
        return None
    if is_at_end and last.kind == "number":
        is_signed = len(tokens) > 1 and tokens[-2].text == "-"
        before = tokens[:-2] if is_signed else tokens[:-1]
        start = tokens[-2].start if is_signed else last.start
        return _key(text, before, start) if _NUMBER_KEY.match(text[start:]) else None
    if is_at_end and last.kind == "name":
        return _named(text, tokens[:-1], last.start)
    if is_at_end and last.text == "-" and len(tokens) > 1 and tokens[-2].text == "[":
        key = _key(text, tokens[:-1], last.start)
        return key if key is not None else TypedName(len(text))
    return _key(text, tokens, len(text)) or _named(text, tokens, len(text))


def _named(text: str, before: list[Token], start: int) -> TypedName | TypedAttribute | None:
    if not before:
        return TypedName(start)
    last = before[-1]
    if last.text == ".":
        owner = _owner(text, before[:-1])
        return TypedAttribute(start, owner) if owner else None
    return TypedName(start, is_operator=last.ends_operand)


def _key(text: str, before: list[Token], start: int) -> TypedKey | None:
    if not before or before[-1].text != "[":
        return None
    owner = _owner(text, before[:-1])
    return TypedKey(start, owner, text[start:]) if owner else None


def _owner(text: str, tokens: list[Token]) -> str:
    """Return the expression with which the tokens end; empty: there is none."""
    first = operand_start(tokens, len(tokens) - 1)
    if first is None:
        return ""
    owner = text[tokens[first].start : tokens[-1].end]
    try:
        ast.parse(owner, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return owner
