"""What a page shows compared with what a command printed: equal, except for what the page says varies.

`...` stands for anything on its line, and alone on a line for any lines. What a page says varies must be there, with
any value of its kind. A later command of the page that has such a value gets the printed one. Where anything varies,
columns may be wider or narrower: spaces and the lines of a table may be longer.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

VARYING = {
    "commits": r"\b[0-9a-f]{10,40}\b",
    "durations": r"\b[\d.,]+ (?:us|ms|s|min)\b",
    "events": r"\b[\d,]+(?= events?\b)|(?<=\bevent )[\d,]+|(?<=\bevents )[\d,]+|(?<=@)[\d,]+",
    "numbers": r"\d[\d,.]*",
    "paths": r"(?<![\w.])/[\w.+/-]+",
    "percentages": r"\b\d+(?:\.\d+)? ?%",
    "positions": r"(?<!:)\b[\d,]+:\d+\b(?!:)",
    "sizes": r"\b[\d.,]+ (?:bytes?|B|KiB|MiB|GiB)\b",
    "times": r"\b\d\d:\d\d:\d\d\b",
}
"""What may differ from run to run, as regular expressions."""


def kinds(text: str) -> dict[str, re.Pattern[str]]:
    """Return the patterns that a mark names: kinds, and regular expressions between slashes. Raises KeyError."""
    found: dict[str, re.Pattern[str]] = {}
    for each in filter(None, (part.strip() for part in re.split(r",\s+(?=[a-z/])", text))):
        is_own = each.startswith("/") and each.endswith("/") and len(each) > 2
        found[each] = re.compile(each[1:-1] if is_own else VARYING[each])
    return found


def compared(shown: str, printed: str, varying: dict[str, re.Pattern[str]]) -> dict[str, str] | str:
    """Compare what a page shows with what was printed.

    Return the values that differ as they may, those printed by those shown; if the texts do not agree, a diff.
    """
    wanted, values = _pattern(shown, varying)
    found = re.fullmatch(wanted, "".join(f"{line}\n" for line in _lines(printed)), re.M)
    if found is not None:
        return {value: found[f"v{number}"] for number, value in enumerate(values)}
    wanted_lines, lines = _normal(shown, varying), _normal(printed, varying)
    return "\n".join(difflib.unified_diff(wanted_lines, lines, "shown", "printed", lineterm="", n=1))


def _lines(text: str) -> list[str]:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").split("\n")


def _pattern(shown: str, varying: dict[str, re.Pattern[str]]) -> tuple[str, list[str]]:
    """Return the regular expression of a text, and the values in it that vary; its group `v0` is the first of them."""
    either = re.compile("|".join(f"(?:{each.pattern})" for each in varying.values()) or "(?!)")
    values: list[str] = []
    lines = []
    for line in _lines(shown):
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
            continue
        parts, at = [], 0
        for found in either.finditer(line):
            pattern = next(each.pattern for each in varying.values() if each.match(line, found.start()))
            parts += [_literal(line[at : found.start()], is_loose=bool(varying)), f"(?P<v{len(values)}>{pattern})"]
            values.append(found[0])
            at = found.end()
        lines.append("".join([*parts, _literal(line[at:], is_loose=bool(varying))]) + r"\n")
    return "".join(lines), values


def _literal(text: str, *, is_loose: bool) -> str:
    """Return the pattern of a text: `...` stands for anything, and if `is_loose` columns may have any width."""
    parts = [re.escape(each) for each in text.split("...")]
    if is_loose:
        parts = [re.sub("─{2,}", "─{2,}", re.sub(r"(\\ ){2,}", r"\\ {2,}", each)) for each in parts]
    return ".*".join(parts)


def _normal(text: str, varying: dict[str, re.Pattern[str]]) -> list[str]:
    """Return the lines of a text with names in place of what varies."""
    lines = _lines(text)
    for name, pattern in varying.items():
        lines = [pattern.sub(lambda _, name=name: f"<{name.strip('/')}>", line) for line in lines]  # type: ignore[misc]
    return [re.sub("─{2,}", "──", re.sub(r" {2,}", "  ", line)) for line in lines] if varying else lines


def replaced(text: str, values: dict[str, str]) -> str:
    """Return a command with what was printed in place of what the page shows.

    A value of one or two characters is not replaced: it may mean something else.
    """
    for shown, printed in values.items():
        if len(shown) < 3:
            continue
        text = re.sub(rf"(?<![\w:,.-]){re.escape(shown)}(?![\w:-]|[,.]\d)", lambda _, by=printed: by, text)  # type: ignore[misc]
    return text


def without_progress(text: str) -> str:
    """Return output without colours, and without what a terminal does not keep: overwritten lines, progress."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07", "", re.sub(r"\r\n|\r$", "\n", text))
    lines = [line.rpartition("\r")[2] for line in text.split("\n")]
    return "\n".join(line for line in lines if not re.search(r"^replaydbg: .* \.\.\.$|━{10}", line))


def joined(lines: Iterable[str]) -> str:
    """Return lines as a text."""
    return "".join(f"{line}\n" for line in lines)
