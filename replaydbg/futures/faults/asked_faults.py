"""The faults that a user asks for: `write:ENOSPC,fsync:EIO`, `write`, or `all`."""

from __future__ import annotations

from replaydbg.errors import UsageError
from replaydbg.gates.faults import COLUMNS, FaultColumn, column_of

_EVERY = "all"


def asked_faults(text: str) -> list[tuple[FaultColumn, str]]:
    """Return calls with one fault each, in the order of the text. Raises UsageError."""
    found: list[tuple[FaultColumn, str]] = []
    for word in text.replace(" ", "").split(","):
        name, colon, fault = word.partition(":")
        if name == _EVERY and not colon:
            found += [(column, each) for column in COLUMNS for each in column.faults]
            continue
        column = column_of(name)
        if column is None:
            known = ", ".join(each.name for each in COLUMNS)
            raise UsageError(
                f"--faults has no call {name!r}. Calls: {known}, or the name of a function such as replace."
            )
        if colon and fault.upper() not in column.faults:
            raise UsageError(
                f"a {name!r} call cannot have the fault {fault!r}. It can have: {', '.join(column.faults)}."
            )
        found += [(column, each) for each in ((fault.upper(),) if colon else column.faults)]
    return list(dict.fromkeys(found))
