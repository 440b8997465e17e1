"""The first differences between two recordings of one program, for the view of two of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replaydbg.commands.first_differences import first_differences
from replaydbg.events.show import printable
from replaydbg.render.first_differences_text import FirstDifferences, tables
from replaydbg.render.texts import moment_text


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """One of the first differences."""

    name: str
    """The kind of difference."""
    lines: tuple[str, ...]
    """The place and the details."""
    moments: tuple[str, str] | None
    """The moment to go to in each run; empty: none. None: there is no such difference."""


def differences(one: Path, two: Path) -> tuple[FirstDifference, ...]:
    """Return the first differences in control flow, in inputs and in values. Raises what `first_differences` raises."""
    found = first_differences(one, two)
    moments = (_way(found), _input(found), _values(found))
    return tuple(
        FirstDifference(
            table.title,
            tuple(
                printable(line) for line in (*map(_row_text, table.rows), *table.notes[: None if not table.rows else 1])
            ),
            at,
        )
        for table, at in zip(tables(found), moments, strict=True)
    )


def _row_text(row: tuple[str, ...]) -> str:
    name, *_, one, two = row
    return f"{name}: {one} | {two}" if len(row) == 3 else f"{name} after {row[1]}: {one} | {two}"


def _way(found: FirstDifferences) -> tuple[str, str] | None:
    if found.way is None:
        return None
    one, two = found.way.moments
    return moment_text(one) if one is not None else "", moment_text(two) if two is not None else ""


def _input(found: FirstDifferences) -> tuple[str, str] | None:
    each = found.input
    return (str(each.good_event), str(each.bad_event)) if each is not None and each.good_event else None


def _values(found: FirstDifferences) -> tuple[str, str] | None:
    return (moment_text(found.values.moments[0]), moment_text(found.values.moments[1])) if found.values else None
