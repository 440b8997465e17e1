"""Which recordings of the catalog are wanted, and in which order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.store.catalog import CatalogRow, command_text

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"([0-9]{1,6})([mhdw])")
_PLAIN = re.compile(r"[\w.,:/=+@%-]+", re.ASCII)
"""What is written in a command's column as in a shell: without blanks, quotes and backslashes."""
FORM = "%Y-%m-%dT%H:%M:%SZ"
"""Of times in recordings."""

SORTED_BY: dict[str, Callable[[CatalogRow], object]] = {
    "created": lambda row: row.created,
    "name": lambda row: row.name,
    "ended": lambda row: (row.status is None, row.status or 0),
    "events": lambda row: row.events,
    "size": lambda row: row.size,
    "time": lambda row: row.seconds or 0.0,
    "command": lambda row: printable(row.problem or command_text(row.command)),
}


class Selection(NamedTuple):
    """The conditions for a listed recording; None and empty texts: any."""

    has_failed: bool | None = None
    """Whether the program ended with another status than 0."""
    exception: str = ""
    """The type of the exception that ended it."""
    command: str = ""
    """A part of the command."""
    commit: str = ""
    """The beginning of the commit."""
    validity: str = ""
    tags: frozenset[str] = frozenset()
    """It has all of these."""
    since: str = ""
    """It was recorded then or later: ISO 8601, UTC."""
    until: str = ""
    """It was recorded before that; what cannot be read has no time."""

    def as_sql(self) -> tuple[str, list[object]]:
        """Return an expression of the catalog's columns, with its values, that holds for all that match.

        It may hold for others, too: tags are in no column, and a part of a command may be in quotes there.
        """
        kind, part = _last(self.exception), self.command if _PLAIN.fullmatch(self.command) else ""
        terms = [
            # Texts that are no Unicode are kept as bytes, and looked at one by one.
            (f"(substr(exception, -{len(kind)}) = ? OR typeof(exception) != 'text')", kind),
            (f'(substr("commit", 1, {len(self.commit)}) = ? OR typeof("commit") != \'text\')', self.commit),
            ("(instr(command, ?) OR typeof(command) != 'text')", part),
            ("validity = ?", self.validity),
            ("created >= ?", self.since),
            ("(created < ? AND created != '')", self.until),
        ]
        given = [(term, value) for term, value in terms if value and _is_unicode(value)]
        states = {None: [], True: ["status != 0"], False: ["status = 0"]}[self.has_failed]
        return " AND ".join([*states, *(term for term, _ in given)]) or "1", [value for _, value in given]

    def matches(self, row: CatalogRow, tags: Iterable[str]) -> bool:
        """Whether a recording with these tags is wanted."""
        if self.has_failed is not None and (row.status is None or bool(row.status) is not self.has_failed):
            return False
        return (
            (not self.exception or (bool(row.exception) and _last(row.exception) == _last(self.exception)))
            and self.command in (command_text(row.command) if self.command else "")
            and row.commit.startswith(self.commit)
            and self.validity in ("", row.validity)
            and self.tags <= set(tags)
            and (not self.since or row.created >= self.since)
            and (not self.until or "" < row.created < self.until)
        )


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def parse_time(text: str, now: datetime) -> str:
    """Return a time as recordings have it: `2026-11-27`, `2026-11-27T10:30`, or how long ago: `30m`, `12h`, `3d`, `2w`.

    A date without a zone is local. Raises UsageError.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago:
            when = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            when = datetime.fromisoformat(text)
        return f"{when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a time such as 2026-11-27, 2026-11-27T10:30, 12h or 3d (ago).") from error
