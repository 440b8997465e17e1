"""The databases of SQLite in a plan. The core opens them again: the library holds their descriptors and locks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from replaydbg.resources.kinds import SqliteDatabase
from replaydbg.resume.plan_rows import Fate, PlanRow

_KIND = "databases"


def plan_databases(databases: Sequence[SqliteDatabase], later: Mapping[str, int]) -> list[PlanRow]:
    """Return the rows of open databases, and of those that were only opened after the moment.

    `later`: the first event after the moment that wrote to a database, by the name of its file.
    """
    rows = [_plan_open(each, later.get(PurePath(each.path).name, 0)) for each in databases]
    names = {PurePath(each.path).name for each in databases}
    return rows + [
        PlanRow(_KIND, Fate.REOPENED, f"{name}, when the program opens it", differences=(_written(name, event),))
        for name, event in later.items()
        if name not in names
    ]


def _plan_open(database: SqliteDatabase, later: int) -> PlanRow:
    if not database.path:
        return PlanRow(_KIND, Fate.REFUSED, "a temporary database", "its file has no name")
    if later and database.transaction != "none":
        # The library takes what it has in memory for the content of the file as long as it holds its lock.
        reason = f"it is in a transaction, and was written to later, at event {later:,}: both would mix"
        return PlanRow(_KIND, Fate.REFUSED, database.path, reason, is_final=True)
    text = f"{database.path}, in a transaction" if database.transaction == "write" else database.path
    differences = () if os.path.lexists(database.path) else (f"{database.path} is gone",)
    return PlanRow(
        _KIND, Fate.REOPENED, text, differences=(*differences, _written(database.path, later)) if later else differences
    )


def _written(name: str, event: int) -> str:
    return f"{name} was written to after this moment, at event {event:,}"
