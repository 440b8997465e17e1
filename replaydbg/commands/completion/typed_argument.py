"""The argument that is being typed after the name of a command: an expression, or a word of a known kind."""

from __future__ import annotations

import re
from collections.abc import Callable

from replaydbg.classes import NamedTuple
from replaydbg.commands.searching import OPTIONS, behind_options

_SEPARATE_WORD = re.compile(r"\S*\Z")
_CONDITION = re.compile(r"(?:\A|\s)if\s+")
_QUOTED = re.compile(r"""\s*\S+\s+(?P<quote>['"])(?P<inner>.*)""", re.S)
_KINDS_OF_OPTIONS = {
    "--in": "modules",
    "--frame": "functions",
    "--only-at": "places",
    "--from": "moments",
    "--to": "moments",
    "--raises": "exceptions",
}


class TypedArgument(NamedTuple):
    """An argument that is being typed."""

    kind: str
    """`expression`, `statement`, or the kind of words that can be meant; empty: nothing is known of them."""
    start: int
    """Where it begins in the text behind the command's name."""


def typed_argument(kind: str, text: str) -> TypedArgument:
    """Return what is being typed at the end of `text`, the arguments of a command which completes words of `kind`."""
    parse = _PARSERS.get(kind)
    return parse(text) if parse is not None else _word(kind, text)


def _word(kind: str, text: str) -> TypedArgument:
    match = _SEPARATE_WORD.search(text)
    assert match is not None, "it may be empty"
    return TypedArgument(kind, match.start())


def _expression(text: str) -> TypedArgument:
    # The options of watch, and the number of a breakpoint before its condition, are no part of it.
    match = re.match(r"\s*(?:-l|-location)\s", text)
    return TypedArgument("expression", match.end() if match is not None else 0)


def _numbered(text: str) -> TypedArgument:
    match = re.match(r"\s*\d+\s", text)
    return TypedArgument("expression", match.end()) if match is not None else TypedArgument("", 0)


def _place(text: str) -> TypedArgument:
    return _before_condition("places", text)


def _exception(text: str) -> TypedArgument:
    return _before_condition("exceptions", text)


def _before_condition(kind: str, text: str) -> TypedArgument:
    match = _CONDITION.search(text)
    return TypedArgument("expression", match.end()) if match is not None else _word(kind, text)


def _logged(text: str) -> TypedArgument:
    match = _QUOTED.match(text)
    if match is None:
        place = re.match(r"\s*\S+\s", text)
        return TypedArgument("expression", place.end()) if place is not None else _word("places", text)
    ended = match["inner"].find(match["quote"])
    if ended < 0:
        return TypedArgument("expression", match.start("inner"))
    behind = match.start("inner") + ended + 1
    condition = _CONDITION.search(text, behind)
    return TypedArgument("expression", condition.end()) if condition is not None else TypedArgument("", len(text))


def _search(text: str) -> TypedArgument:
    word = _word("options", text)
    typed, before = text[word.start :], text[: word.start].split()
    option, has_value, _ = typed.partition("=")
    if has_value and option in OPTIONS:
        return TypedArgument(_KINDS_OF_OPTIONS.get(option, ""), word.start + len(option) + 1)
    if typed.startswith("--"):
        return word
    last = before[-1] if before else ""
    if last in _KINDS_OF_OPTIONS:
        return TypedArgument(_KINDS_OF_OPTIONS[last], word.start)
    return TypedArgument("expression", behind_options(text))


def _setting(text: str) -> TypedArgument:
    match = re.match(r"\s*(?P<what>\S+)\s+", text)
    if match is None:
        return _word("settings", text)
    if match["what"] in ("exec-direction", "exec-dir"):
        return TypedArgument("directions", match.end())
    return TypedArgument("statement", match.end() if match["what"] in ("var", "variable") else 0)


_PARSERS: dict[str, Callable[[str], TypedArgument]] = {
    "locals": _expression,
    "numbered": _numbered,
    "places": _place,
    "exceptions": _exception,
    "logged": _logged,
    "search": _search,
    "settings": _setting,
}
