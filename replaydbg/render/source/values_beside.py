"""Values of variables beside the lines that use or assign them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_NAME = re.compile(r"[A-Za-z_]\w*")
_IS_SET = re.compile(r"\s*(?:[-+*/|&^%@]|//|\*\*|<<|>>)?=(?!=)|\s+in\s")
BEFORE = 40
"""Number of lines before the current one that have values beside them."""


def values_beside(
    lines: Sequence[str], here: int, function: str, values: Mapping[str, str], hits: Mapping[int, int]
) -> dict[int, list[tuple[str, str]]]:
    """Return names and values by line number.

    For the line `here` all that it names, for earlier ones of the function their last seen assignments. `hits` are the
    numbers of executions: lines that never ran have no values.
    """
    found: dict[int, list[tuple[str, str]]] = {}
    shown: set[str] = set()
    for number in range(min(here, len(lines)), max(here - BEFORE, 0), -1):
        line = lines[number - 1]
        is_other = number < here and line.lstrip().startswith(("def ", "async def ", "class "))
        for match in _NAME.finditer(line) if not is_other else ():
            name = match[0]
            # For earlier lines only their assignments: everything else would be noise.
            is_set = number == here or _IS_SET.match(line, match.end())
            if name in values and name not in shown and is_set and hits.get(number):
                shown.add(name)
                found.setdefault(number, []).append((name, values[name]))
        if is_other and number < here and function.rpartition(".")[2] in line:
            break
    return found
