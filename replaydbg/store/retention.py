"""Which recordings are kept: rules in order, and the first one that wants a recording keeps it. The others may go.

Rules that choose one of several (the first or last of its kind, one of each hour) choose among those that are complete:
a damaged or unfinished recording never takes the place of a sound one. So what they have chosen is verified before
others are removed because of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from replaydbg.errors import UsageError
from replaydbg.store.catalog import BROKEN, DAMAGED, UNCHECKED, CatalogRow
from replaydbg.store.selection import FORM
from replaydbg.store.tags import PINNED

UNFINISHED = "not sealed"
"""Why a recording that is live, or has live ones, is kept: its program may run, or can be resumed."""

_RULE = re.compile(r"([a-z]+)(?: ([0-9]{1,9}))?")
_NUMBERED = {
    "days": "keeps what is at most N days old",
    "newest": "keeps the newest N of the others",
    "gigabytes": "keeps the newest of the others, until they and what earlier rules keep would exceed N GB",
    "megabytes": "the same in MB",
    "hourly": "keeps the last recording of each of the last N hours that have one",
    "daily": "the same for days",
    "weekly": "the same for weeks",
}
_PLAIN = {
    PINNED: f"keeps what has the tag {PINNED!r}",
    "first": "keeps the first recording of each directory, command, exception and commit",
    "last": "keeps the last one of each",
}
_OF_EACH, _OF_TIMES = ("first", "last"), ("hourly", "daily", "weekly")
"""Those that choose one of several."""
RULES = _PLAIN | _NUMBERED
"""The rules with what each does."""

_SIZES = {"gigabytes": 10**9, "megabytes": 10**6}


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
    verify: Callable[[list[CatalogRow]], list[CatalogRow]] | None = None,
) -> list[Decision]:
    """Return what becomes of each recording, in the order of the rows. Rules take them by time, not by name.

    `room` begins a count: what it returns gives the bytes that a recording takes beside those that were counted before.
    `verify` returns rows with their validity, which nobody knew; None: recordings of which nothing is known are sound.
    """
    while True:
        decisions, chosen = _decided(rows, tags, rules, now, room)
        doubtful = _doubtful(decisions, chosen, rules) if verify is not None else []
        if verify is None or not doubtful:
            return decisions
        known = {row.name: row for row in verify(doubtful)}
        rows = [known.get(row.name, row) for row in rows]
        if all(map(_is_sound, known.values())):
            return [each._replace(row=row) for each, row in zip(decisions, rows, strict=True)]


def _decided(
    rows: Sequence[CatalogRow],
    tags: Callable[[CatalogRow], Collection[str]],
    rules: Sequence[KeepRule],
    now: datetime,
    room: Callable[[], Callable[[CatalogRow], int]],
) -> tuple[list[Decision], set[str]]:
    """Return the decisions, and the names of the recordings that a rule has chosen among several."""
    chosen_names: set[str] = set()
    in_order, rows = rows, sorted(rows, key=lambda row: _time(row, now))
    kept = {row.name: reason for row in rows if (reason := _out_of_reach(row))}
    for rule in rules:
        left = [row for row in rows if row.name not in kept]
        if rule.kind in _SIZES:
            chosen = list(_affordable(rows, kept, rule.number * _SIZES[rule.kind], room()))
        else:
            chosen = list(_CHOOSE[rule.kind](left, rows, tags, rule.number, now))
        if rule.kind in (*_OF_EACH, *_OF_TIMES):
            chosen_names |= {row.name for row in chosen}
        kept |= {row.name: str(rule) for row in chosen if row.name not in kept}
    return [Decision(row, kept.get(row.name, "")) for row in in_order], chosen_names


def _doubtful(decisions: Sequence[Decision], chosen: Collection[str], rules: Sequence[KeepRule]) -> list[CatalogRow]:
    """Return the chosen recordings that nobody has verified, and in the place of which others are to be removed.

    Reading them takes time, so it is not done where nothing depends on it.
    """
    removed = [each.row for each in decisions if not each.rule and _is_sound(each.row)]
    kinds = set(map(_kind, removed))
    is_by_time = bool(removed) and any(each.kind in _OF_TIMES for each in rules)
    return [
        each.row
        for each in decisions
        if each.row.name in chosen
        and each.row.validity == UNCHECKED
        and not each.row.live
        and (is_by_time or _kind(each.row) in kinds)
    ]


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


def in_future(rows: Sequence[CatalogRow], now: datetime) -> list[CatalogRow]:
    """Return the recordings that were made while the clock was ahead: until their time they are the newest."""
    return [row for row in rows if (_recorded(row) or now) > now]


def _time(row: CatalogRow, now: datetime) -> datetime:
    """Return when it was recorded; a time in the future, by a clock that was set back, counts as now."""
    return min(_recorded(row) or now, now)


def _recorded(row: CatalogRow) -> datetime | None:
    try:
        return datetime.strptime(row.created, FORM).replace(tzinfo=UTC)
    except ValueError:
        return None


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


def _newest(
    left: Sequence[CatalogRow], rows: Sequence[CatalogRow], tags: object, number: int, now: datetime
) -> Iterator[CatalogRow]:
    return iter(left[-number:] if number else ())


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
    "newest": _newest,
    "hourly": _generation("%Y-%m-%dT%H"),
    "daily": _generation("%Y-%m-%d"),
    "weekly": _generation("%G-W%V"),
}
