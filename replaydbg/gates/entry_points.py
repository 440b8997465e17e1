"""Rows from other packages: the entry point group `replaydbg.gates`.

Each entry point names a list of rows, or a function without arguments that returns one:

  [project.entry-points."replaydbg.gates"]
  mylib = "mylib.replay:ROWS"

where `ROWS = rows("mylib._native", "read_sensor measure")` with `rows` of `replaydbg.gates.row`. A row may use the
handlers `regular`, `stops` and `noted`.
"""

from __future__ import annotations

import os
import sys

from replaydbg.errors import UsageError
from replaydbg.gates.row import NO_BUFFER, NOTED, REGULAR, STOPS, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_GROUP = "[replaydbg.gates]"


def plugin_rows(search_path: list[str]) -> list[Row]:
    """Return the rows of installed packages; raises UsageError for one that is not a row.

    importlib.metadata would cost 30 ms at every start: the few `entry_points.txt` that name our group are found by
    reading them.
    """
    found: list[Row] = []
    points = _entry_points(search_path)
    if points:
        # Those of a program in another environment.
        sys.path += [each for each in search_path if each not in sys.path]
    for module, attribute in points:
        for row in _declared(module, attribute):
            if not isinstance(row, Row) or not is_plugin_row(list(row)):
                raise UsageError(f"The gate row {row!r} of {module}:{attribute} is not one that can be used.")
            found.append(row)
    return found


def is_plugin_row(fields: object) -> bool:
    """Return whether the fields of a row are those that a package may declare."""
    if not isinstance(fields, list) or [type(each) for each in fields] != [str, str, str, int, int]:
        return False
    return fields[2] in (REGULAR, STOPS, NOTED) and 0 <= fields[3] < 1 << 31 and 0 <= fields[4] <= NO_BUFFER


def _declared(module: str, attribute: str) -> Iterable[object]:
    try:
        value = getattr(__import__(module, fromlist=[attribute]), attribute)
        found: Iterable[object] = list(value() if callable(value) else value)
    except Exception as error:
        raise UsageError(f"The gate rows of {module}:{attribute} cannot be imported ({error}).") from error
    return found


def _entry_points(search_path: list[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for directory in search_path:
        try:
            names = sorted(os.listdir(directory or "."))  # noqa: PTH208 - pathlib is not loaded at this point
        except OSError:
            continue  # entries of sys.path need not exist
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                found.extend(_read(f"{directory}/{name}/entry_points.txt"))
    return found


def _read(path: str) -> list[tuple[str, str]]:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return []
    if _GROUP not in text:
        return []
    section = text.split(_GROUP, 1)[1].split("\n[", 1)[0]
    points = [line.split("=", 1)[1].strip().partition(":") for line in section.splitlines() if "=" in line]
    return [(module, attribute) for module, _, attribute in points]
