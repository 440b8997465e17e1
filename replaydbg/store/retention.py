"""Which recordings are kept: rules in order, and the first one that wants a recording keeps it. The others may go.

Rules that choose one of several (the first or last of its kind, one of each hour) choose among those that are complete:
a damaged or unfinished recording never takes the place of a sound one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from replaydbg.errors import UsageError
from replaydbg.store.catalog import BROKEN, DAMAGED, CatalogRow
from replaydbg.store.selection import FORM
from replaydbg.store.tags import PINNED

UNFINISHED = "not sealed"
"""Why a recording that is live, or has live ones, is kept: its program may run, or can be resumed."""

_RULE = re.compile(r"([a-z]+)(?: ([0-9]{1,9}))?")
_NUMBERED = {
    "days": "keeps what is at most N days old",
    "gigabytes": "keeps the newest of the others, until they and what earlier rules keep would exceed N GB",
    "hourly": "keeps the last recording of each of the last N hours that have one",
    "daily": "the same for days",
    "weekly": "the same for weeks",
}
_PLAIN = {
    PINNED: f"keeps what has the tag {PINNED!r}",
    "first": "keeps the first recording of each directory, command, exception and commit",
    "last": "keeps the last one of each",
}
RULES = _PLAIN | _NUMBERED
"""The rules with what each does."""

_GIGABYTE = 10**9


class KeepRule(NamedTuple):
    """A rule of retention."""

    kind: str
    """One of RULES."""
    number: int = 0

    def __str__(self) -> str:
        """Return it as users write it."""
        return f"{self.kind} {self.number}" if self.kind in _NUMBERED else self.kind


class Decision(NamedTuple):
    """The decision about a recording."""

    row: CatalogRow
    rule: str
    """The rule that keeps it; or UNFINISHED, or why it cannot be read; empty: it may be removed."""


def parse_rule(text: str) -> KeepRule:
    """Return the rule that a text such as `days 30` is. Raises UsageError."""
    match = _RULE.fullmatch(text)
    kind, number = (match[1], match[2]) if match else ("", None)
    if kind in _PLAIN and number is None:
        return KeepRule(kind)
    if kind in _NUMBERED and number is not None:
        return KeepRule(kind, int(number))
    raise UsageError(f"{text!r} is not a rule. The rules are: {', '.join(rule_forms())}.")


def rule_forms() -> list[str]:
    """Return the rules as users write them."""
    return [*_PLAIN, *(f"{each} N" for each in _NUMBERED)]


def decide(
    rows: Sequence[CatalogRow],
    tags: Callable[[CatalogRow], Collection[str]],
    rules: Sequence[KeepRule],
    now: datetime,
    *,
    room: Callable[[], Callable[[CatalogRow], int]] = lambda: _own_size,
) -> list[Decision]:
    """Return what becomes of each recording, in the order of the rows. Rules take them by time, not by name.

    `room` begins a count: what it returns gives the bytes that a recording takes beside those that were counted before.
    """
    in_order, rows = rows, sorted(rows, key=lambda row: _time(row, now))
    kept = {row.name: reason for row in rows if (reason := _out_of_reach(row))}
    for rule in rules:
        left = [row for row in rows if row.name not in kept]
        if rule.kind == "gigabytes":
            chosen = _affordable(rows, kept, rule.number * _GIGABYTE, room())
        else:
            chosen = _CHOOSE[rule.kind](left, rows, tags, rule.number, now)
        kept |= {row.name: str(rule) for row in chosen if row.name not in kept}
    return [Decision(row, kept.get(row.name, "")) for row in in_order]


def _out_of_reach(row: CatalogRow) -> str:
    """Return why no rule has a say about a recording; empty: they have."""
    if row.live:
        return UNFINISHED
    return row.unreadable if row.unreadable != BROKEN else ""


def _own_size(row: CatalogRow) -> int:
    return row.size


def _affordable(
    rows: Sequence[CatalogRow], kept: Collection[str], limit: int, room: Callable[[CatalogRow], int]
) -> Iterator[CatalogRow]:
    total = sum(room(row) for row in rows if row.name in kept)
    for row in reversed(rows):
        if row.name in kept:
            continue
        total += room(row)
        if total > limit:
            return
        yield row


def _is_sound(row: CatalogRow) -> bool:
    return row.status is not None and not row.problem and row.validity != DAMAGED


def _time(row: CatalogRow, now: datetime) -> datetime:
    """Return when it was recorded; a time in the future, by a clock that was set back, counts as now."""
    try:
        return min(datetime.strptime(row.created, FORM).replace(tzinfo=UTC), now)
    except ValueError:
        return now


def _pinned(
    left: Sequence[CatalogRow], rows: Sequence[CatalogRow], tags: Callable[[CatalogRow], Collection[str]], *_: object
) -> Iterator[CatalogRow]:
    return (row for row in left if PINNED in tags(row))


def _first(left: Sequence[CatalogRow], rows: Sequence[CatalogRow], *_: object) -> Iterator[CatalogRow]:
    return iter({_kind(row): row for row in reversed(rows) if _is_sound(row)}.values())


def _last(left: Sequence[CatalogRow], rows: Sequence[CatalogRow], *_: object) -> Iterator[CatalogRow]:
    return iter({_kind(row): row for row in rows if _is_sound(row)}.values())


def _kind(row: CatalogRow) -> tuple[str, ...]:
    return row.cwd, row.command, row.exception, row.commit


def _days(
    left: Sequence[CatalogRow], rows: Sequence[CatalogRow], tags: object, number: int, now: datetime
) -> Iterator[CatalogRow]:
    return (row for row in left if now - _time(row, now) <= timedelta(days=number))


def _generation(form: str) -> Callable[..., Iterator[CatalogRow]]:
    def choose(
        left: Sequence[CatalogRow], rows: Sequence[CatalogRow], tags: object, number: int, now: datetime
    ) -> Iterator[CatalogRow]:
        last: dict[str, CatalogRow] = {}
        for row in filter(_is_sound, rows):
            last[_time(row, now).strftime(form)] = row
        return iter(list(last.values())[-number:] if number else ())

    return choose


_CHOOSE: dict[str, Callable[..., Iterator[CatalogRow]]] = {
    PINNED: _pinned,
    "first": _first,
    "last": _last,
    "days": _days,
    "hourly": _generation("%Y-%m-%dT%H"),
    "daily": _generation("%Y-%m-%d"),
    "weekly": _generation("%G-W%V"),
}
