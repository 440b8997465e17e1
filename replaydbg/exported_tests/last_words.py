"""The last thing that a failing program printed, which shows how it failed."""

from __future__ import annotations

import re
from typing import NamedTuple

_TRACEBACK = "Traceback (most recent call last):"
_MARGIN = re.compile(r"^(?: *[|+](?: |-+(?: |$)|$))+")
"""The prefix of the lines of an exception in a group."""
_ASIDE = re.compile(r"^(?:Exception (?:ignored|in) |--- Logging error|future: |handle: )")
"""With what a traceback is introduced that does not end the program."""
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")


class LastWords(NamedTuple):
    """How a program said that it failed."""

    exception: str
    """The first line of the exception in the last traceback: of a group, that of its last exception; empty: none."""
    line: str
    """The last line, unless it belongs to a traceback that did not end the program."""


def last_words(text: str) -> LastWords:
    """Return what a program printed last, without the indentation of groups and without addresses of objects."""
    lines = [_MARGIN.sub("", line).rstrip() for line in _ADDRESS.sub("0x...", text).splitlines()]
    for number in reversed([at for at, line in enumerate(lines) if line.endswith(_TRACEBACK)]):
        if number and _ASIDE.search(lines[number - 1]):
            del lines[number - 1 :]
            continue
        shown = (each for each in lines[number + 1 :] if each and not each.startswith(" "))
        return LastWords(next(shown, ""), _last(lines))
    return LastWords("", _last(lines))


def _last(lines: list[str]) -> str:
    return next((each for each in reversed(lines) if each), "")
