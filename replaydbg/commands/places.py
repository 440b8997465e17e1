"""Places in the source as users type them: `LINE`, `FILE:LINE`, `FUNCTION`."""

from __future__ import annotations

import re
from typing import NamedTuple

from replaydbg.commands.view import View
from replaydbg.debugger.breakpoints import FORM, parse_rule
from replaydbg.errors import UsageError
from replaydbg.events.nearest_words import nearest

_CONDITION = re.compile(r"\s*,\s*|\s+if\s+|^if\s+")
_ENDS_IN_IF = re.compile(r"(?:\A|\s)if\Z")
_NUMBERED = re.compile(r"[+-]?\d")


class SourcePlace(NamedTuple):
    """A line, or a function's first one."""

    file: str
    line: int
    function: str


def split_condition(text: str) -> tuple[str, str]:
    """Return the place and the condition of `PLACE, COND` or `PLACE if COND`. Raises UsageError for an `if` alone."""
    if _ENDS_IN_IF.search(text.strip()):
        raise UsageError(f"usage: {text.strip()} CONDITION")
    parts = _CONDITION.split(text.strip(), maxsplit=1)
    return parts[0].strip(), parts[1].strip() if len(parts) > 1 else ""


def split_rule(text: str) -> tuple[str, str]:
    """Return the place and the rule for hits of `PLACE %N`; without a rule it is empty."""
    match = re.search(rf"(?:^|\s)(?=[%=<>]){FORM}\s*\Z", text)
    return (text[: match.start()].strip(), str(parse_rule(match[0]))) if match is not None else (text, "")


def parse_place(view: View, text: str, *, is_line: bool = False) -> SourcePlace:
    """Return the place that `text` names; empty: the current line. Raises UsageError; `is_line`: for a function too."""
    word = text.strip()
    if not word or word == ".":
        at = view.place()
        return SourcePlace(at.file, at.line, "")
    if re.fullmatch(r"[+-]?\d+", word):
        at = view.place()
        return _line(view, at.file, int(word) + (at.line if word[0] in "+-" else 0))
    file, colon, line = word.rpartition(":")
    if colon and line.isdecimal():
        return _line(view, view.session.sources.file_named(file), int(line))
    if is_line:
        raise UsageError(f"FILE:LINE expected (got {word!r}).")
    if colon and _NUMBERED.match(line):
        name = view.session.sources.file_named(file)
        raise UsageError(f"Not a line of {name}: {line!r}. Lines count from 1; use +N and -N without a file.")
    if colon and line:
        found = function_named(view, line)
        return SourcePlace(view.session.sources.file_named(file), 0, found)
    return SourcePlace("", 0, function_named(view, word))


def _line(view: View, file: str, line: int) -> SourcePlace:
    if line < 1:
        raise UsageError(f"LINE must be at least 1 (got {line}).")
    ran = view.session.index.lines_hit(file)
    if line not in ran:
        later = [each for each in sorted(ran) if each > line]
        if not later:
            raise UsageError(f"Line {line} of {file} never ran, nor did any after it.")
        view.screen.line(f"Line {line} never ran; using {later[0]}, the next line that did.", "yellow")
        line = later[0]
    return SourcePlace(file, line, "")


def function_named(view: View, name: str) -> str:
    """Return the qualified name of the function that `name` means. Raises UsageError if none of that name ran."""
    functions = {each.function for each in view.session.index.hits}
    if name in functions:
        return name
    short = {each.rpartition(".")[2]: each for each in functions}
    if name in short:
        return name
    # module.function: the module's name is not part of the qualified name.
    rest = name.partition(".")[2]
    if rest and (rest in functions or rest in short):
        return rest
    raise UsageError(f"No function named {name!r} ran{nearest(name, [*functions, *short])}.")
