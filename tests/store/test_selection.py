"""What the database selects of a catalog has all that matches, and `ls` shows what asking each row would."""

from __future__ import annotations

import json
import sqlite3
import string
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.render.recording_text import listing_text
from replaydbg.store import catalog as module
from replaydbg.store.catalog import VALIDITIES, Catalog, CatalogRow
from replaydbg.store.directory import Store
from replaydbg.store.selection import Selection
from tests.harness.build import example, header_json

WORDS = st.text(st.sampled_from("abAB19 .-_/='\"\\%äß\udce4" + string.punctuation), max_size=8)
TYPES = st.sampled_from(
    ["", "ValueError", "shop.ValueError", "XValueError", "a.b.KeyError", "\udce4.ValueError", "\udce4"]
)
TIMES = st.sampled_from(["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", ""])
COMMITS = st.sampled_from(["", "ab", "abcd", "abcdef", "cd", "ab\udce4"])


@st.composite
def rows(draw: st.DrawFn) -> CatalogRow:
    fields = dict.fromkeys(CatalogRow._fields, "")
    return CatalogRow(**fields)._replace(  # type: ignore[arg-type]
        name=f"run-{draw(st.integers(1, 99))}",
        status=draw(st.sampled_from([None, 0, 1, -9])),
        exception=draw(TYPES),
        command=json.dumps(draw(st.lists(WORDS, max_size=3))) if draw(st.booleans()) else "",
        commit=draw(COMMITS),
        validity=draw(st.sampled_from(VALIDITIES)),
        created=draw(TIMES),
    )


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    return Selection(
        has_failed=draw(st.sampled_from([None, True, False])),
        exception=draw(TYPES),
        command=draw(st.one_of(st.just(""), WORDS)),
        commit=draw(COMMITS),
        validity=draw(st.sampled_from(["", *VALIDITIES])),
        since=draw(TIMES),
        until=draw(TIMES),
    )


@given(st.lists(rows(), max_size=12), selections())
def test_the_database_leaves_out_none_that_match(found: list[CatalogRow], selection: Selection) -> None:
    where, values = selection.as_sql()
    with closing(sqlite3.connect(":memory:")) as database:
        columns = ", ".join(f'"{each}"' for each in CatalogRow._fields)
        database.execute(f"CREATE TABLE recordings (number, {columns})")
        for number, row in enumerate(found):
            stored = [number, *map(module._stored, row)]
            database.execute(f"INSERT INTO recordings VALUES ({', '.join('?' * len(stored))})", stored)
        selected = {number for (number,) in database.execute(f"SELECT number FROM recordings WHERE {where}", values)}

    assert {number for number, row in enumerate(found) if selection.matches(row, ())} <= selected


SELECTIONS = [
    Selection(),
    Selection(has_failed=True),
    Selection(has_failed=False),
    Selection(commit="ab"),
    Selection(since="2026-01-02T00:00:00Z", until="2026-01-04T00:00:00Z"),
    Selection(command="prog_2"),
    Selection(validity="unchecked", has_failed=False),
]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_store_is_listed_as_by_asking_each_row(selection: Selection, tmp_path: Path) -> None:
    for number in range(1, 7):
        made = example()
        created = f"2026-01-0{number}T00:00:00Z"
        made.header = header_json(name=f"run-{number}", created=created, commit=("ab" if number % 2 else "cd") * 20)
        made.write(tmp_path, f"run-{number}")
    catalog = Catalog(Store(tmp_path), listing_text)
    for _ in range(2):  # the second time the catalog has them
        expected = [row for row in catalog.rows() if selection.matches(row, ())]

        selected = [row for row in catalog.selected(*selection.as_sql()) if selection.matches(row, ())]

        assert selected == expected
