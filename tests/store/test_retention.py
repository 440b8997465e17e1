"""Rules of retention keep what they say, in their order, and a damaged recording takes no sound one's place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.errors import UsageError
from replaydbg.store.catalog import BROKEN, DAMAGED, FOREIGN, NEWER, SOUND, UNCHECKED, CatalogRow
from replaydbg.store.retention import RULES, UNFINISHED, KeepRule, decide, parse_rule
from replaydbg.store.selection import FORM
from replaydbg.store.tags import PINNED

NOW = datetime(2026, 11, 27, 12, 30, tzinfo=UTC)


def row(number: int, ago: timedelta, **changes: object) -> CatalogRow:
    """Return the facts about a recording."""
    made = CatalogRow(
        name=f"run-{number}",
        path=f"/store/run-{number}.rdbg",
        created=(NOW - ago).strftime(FORM),
        command='["a.py"]',
        commit="",
        status=0,
        exception="",
        events=1,
        seconds=1.0,
        size=10**8,
        python="3.11.7",
        processes=1,
        parent="",
        cwd="/",
        run="",
        live=0,
        problem="",
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def verified(rows: list[CatalogRow], damaged: set[int], *rules: str) -> tuple[dict[int, str], list[int]]:
    """Return what is kept, and which recordings were verified, if some are damaged and nobody knows it."""
    read: list[int] = []

    def verify(rows: list[CatalogRow]) -> list[CatalogRow]:
        numbers = [int(each.name[4:]) for each in rows]
        read.extend(numbers)
        return [
            each._replace(validity=DAMAGED if number in damaged else SOUND)
            for each, number in zip(rows, numbers, strict=True)
        ]

    found = decide(rows, lambda _: (), [*map(parse_rule, rules)], NOW, verify=verify)
    return {int(each.row.name[4:]): each.rule for each in found if each.rule}, read


def kept(rows: list[CatalogRow], *rules: str, pinned: tuple[int, ...] = ()) -> dict[int, str]:
    names = {f"run-{number}" for number in pinned}
    found = decide(rows, lambda row: (PINNED,) if row.name in names else (), [*map(parse_rule, rules)], NOW)
    assert [each.row for each in found] == rows
    return {int(each.row.name[4:]): each.rule for each in found if each.rule}


HOURS = [row(number, timedelta(minutes=30 * (10 - number))) for number in range(1, 11)]
"""Ten recordings, one each half an hour; the last one is of now."""


def test_nothing_is_kept_without_a_rule() -> None:
    assert kept(HOURS) == {}


def test_the_first_rule_that_wants_it_keeps_it() -> None:
    assert kept(HOURS, PINNED, "last", "days 0", pinned=(3, 10)) == {3: PINNED, 10: PINNED}
    assert kept(HOURS, "last", PINNED, pinned=(3, 10)) == {10: "last", 3: PINNED}


def test_first_and_last_are_of_each_command_exception_and_commit() -> None:
    kinds = [{"cwd": "/home"}, {"exception": "ValueError"}, {"command": '["b.py"]'}, {"commit": "ab" * 20}]
    rows = [row(number, timedelta(hours=20 - number), **kinds[number % 4]) for number in range(1, 17)]

    assert kept(rows, "first") == dict.fromkeys([1, 2, 3, 4], "first")
    assert kept(rows, "last") == dict.fromkeys([13, 14, 15, 16], "last")


def test_generations() -> None:
    assert kept(HOURS, "hourly 2") == {8: "hourly 2", 10: "hourly 2"}
    assert kept(HOURS, "daily 5", "weekly 1") == {10: "daily 5"}
    days = [row(number, timedelta(days=20 - number)) for number in range(1, 21)]
    assert kept(days, "daily 2", "weekly 2") == {19: "daily 2", 20: "daily 2", 15: "weekly 2"}


def test_a_damaged_recording_is_skipped() -> None:
    rows = [
        *HOURS[:8],
        HOURS[8]._replace(validity=DAMAGED),
        HOURS[9]._replace(problem="it is damaged", status=None, unreadable=BROKEN),
    ]

    assert kept(rows, "last") == {8: "last"}
    assert kept(rows, "hourly 1") == {8: "hourly 1"}


def test_gigabytes_count_what_other_rules_keep() -> None:
    assert kept(HOURS, "gigabytes 1") == dict.fromkeys(range(1, 11), "gigabytes 1")
    large = [each._replace(size=4 * 10**8) for each in HOURS]
    assert kept(large, "gigabytes 1") == {9: "gigabytes 1", 10: "gigabytes 1"}
    assert kept(large, "first", "gigabytes 1") == {1: "first", 10: "gigabytes 1"}


def test_rules_go_by_time_and_not_by_name() -> None:
    rows = [row(1, timedelta(hours=1)), row(2, timedelta(hours=3)), row(3, timedelta(hours=2))]

    assert kept(rows, "last") == {1: "last"}
    assert kept(rows, "first") == {2: "first"}
    assert kept([each._replace(size=6 * 10**8) for each in rows], "gigabytes 1") == {1: "gigabytes 1"}


def test_an_unfinished_recording_stays() -> None:
    assert kept([HOURS[0]._replace(status=None, live=1)]) == {1: UNFINISHED}
    assert kept([HOURS[0]._replace(live=2)]) == {1: UNFINISHED}
    assert kept([HOURS[0]._replace(status=None)]) == {}


def test_what_takes_the_place_of_others_is_verified_first() -> None:
    assert verified(HOURS, {10, 9}, "last") == ({8: "last"}, [10, 9, 8])
    assert verified(HOURS, {1}, "first") == ({2: "first"}, [1, 2])
    assert verified(HOURS, {10}, "hourly 2") == ({9: "hourly 2", 8: "hourly 2"}, [8, 10, 9])


def test_what_decides_about_nothing_is_not_read() -> None:
    two = [row(1, timedelta(hours=3)), row(2, timedelta(hours=2), command='["b.py"]')]

    assert verified(two, {1, 2}, "last") == ({1: "last", 2: "last"}, [])
    assert verified(HOURS, set(), "days 1") == (dict.fromkeys(range(1, 11), "days 1"), [])
    assert verified(HOURS, set(), "days 0") == ({10: "days 0"}, [])
    assert verified([each._replace(validity=SOUND) for each in HOURS], set(), "last") == ({10: "last"}, [])
    assert verified([*HOURS[:-1], HOURS[-1]._replace(validity=DAMAGED)], set(), "last") == ({9: "last"}, [9])


def test_what_an_earlier_rule_keeps_is_verified_for_a_later_one() -> None:
    assert verified(HOURS, {10}, "days 0", "last") == ({10: "days 0", 9: "last"}, [10, 9])


def test_what_is_not_ours_or_too_new_stays() -> None:
    rows = [HOURS[0]._replace(unreadable=FOREIGN), HOURS[1]._replace(unreadable=NEWER)]
    assert kept(rows) == {1: FOREIGN, 2: NEWER}


def test_a_clock_that_was_set_back_removes_nothing_new() -> None:
    assert kept([row(1, timedelta(days=-3)), row(2, timedelta(0))], "days 1") == dict.fromkeys([1, 2], "days 1")


@pytest.mark.parametrize("text", ["", "day 3", "days", "days -1", "days x", "pinned 3", "days 3 ", "days 9999999999"])
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(UsageError):
        parse_rule(text)


@settings(deadline=None)
@given(st.integers(0, 1 << 32))
def test_the_laws(seed: int) -> None:
    draw = Random(seed)
    rows = [
        row(
            number,
            timedelta(hours=draw.randint(0, 400)),
            command=draw.choice(['["a"]', '["b"]']),
            exception=draw.choice(["", "KeyError"]),
            validity=draw.choice([UNCHECKED, SOUND, DAMAGED]),
            size=draw.randint(0, 5 * 10**8),
        )
        for number in range(1, draw.randint(1, 30))
    ]
    rules = [f"{each} {draw.randint(0, 5)}" if each not in (PINNED, "first", "last") else each for each in RULES]
    draw.shuffle(rules)
    rules = rules[: draw.randint(0, len(rules))]
    pinned = tuple(draw.sample(range(1, 31), 3))
    found = kept(rows, *rules, pinned=pinned)

    assert all(rule in rules for rule in found.values())
    if PINNED in rules:
        assert {number for number in pinned if number <= len(rows)} <= found.keys()
    for at in range(len(rules)):  # a further rule never removes anything
        assert kept(rows, *rules[:at], pinned=pinned).items() <= kept(rows, *rules[: at + 1], pinned=pinned).items()
    for each in (each for each in rows if each.validity == DAMAGED):
        assert found.get(int(each.name[4:]), "days").split()[0] in (PINNED, "days", "newest", "gigabytes", "megabytes")
    if "last" in rules:  # of each kind that has a sound recording, one is there
        sound = {(each.command, each.exception) for each in rows if each.validity != DAMAGED}
        assert {(each.command, each.exception) for each in rows if int(each.name[4:]) in found} >= sound


def test_rules_are_written_as_they_are_read() -> None:
    assert [str(parse_rule(text)) for text in ("pinned", "days 30")] == ["pinned", "days 30"]
    assert parse_rule("weekly 4") == KeepRule("weekly", 4)
