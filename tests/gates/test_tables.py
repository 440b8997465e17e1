"""Tables fit into 80 columns with nothing cut off, and the Markdown has the same content."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from replaydbg.launch.terminal_width import WIDTH
from replaydbg.render.layout.wrapping import column_widths, wrapped
from replaydbg.render.tables import Table, drawn, markdown, more_text, sizes

LONG = Table(
    "Changed values (3)",
    ("path", "value", "bytes"),
    (
        ("app." + "cache.entry." * 20 + "price", "'[red]not markup[/red]'", "1,234"),
        ("app.x", "1 | 2 `code`", "7"),
    ),
    ("bytes",),
    more_text(1204, "--all shows them"),
)


def no_size(descriptor: int) -> os.terminal_size:
    raise OSError(errno.ENOTTY, "no terminal", descriptor)


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("os.get_terminal_size", no_size)


@pytest.mark.parametrize(
    ("columns", "width"), [("50", 50), ("wide", WIDTH), ("0", WIDTH), ("0200", 200), ("9" * 5000, 1000)]
)
def test_the_width_is_that_of_the_variable(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    longest = max(map(len, drawn([LONG]).splitlines()))

    assert min(width, 150) - 5 <= longest <= width


def test_long_cells_are_folded_and_not_cut() -> None:
    shown = drawn([LONG])

    assert all(len(line) <= WIDTH for line in shown.splitlines())
    assert "[red]not markup[/red]" in shown
    assert "and 1,204 more: --all shows them" in shown
    (path,) = (row[0] for row in LONG.rows if len(row[0]) > WIDTH)
    assert path in "".join(drawn([Table("", ("path",), ((path,),))]).split())


def test_a_title_alone_is_a_line() -> None:
    assert drawn([Table("Nothing differs.", (), ())]) == "Nothing differs.\n\n"


def test_escapes_of_a_recording_reach_no_terminal() -> None:
    assert "\x1b" not in drawn([Table("\x1b[2J", ("a",), (("\x1b]0;x\x07",),))])


def test_markdown_escapes_what_would_end_a_cell() -> None:
    text = markdown([LONG])

    assert "| `app.x` | `` 1 \\| 2 `code` `` | 7 |" in text
    assert text.startswith("### Changed values (3)\n")
    assert "|---|---|---:|" in text
    assert "and 1,204 more" in text


def test_bytes_are_told_as_people_read_them() -> None:
    assert [sizes(each) for each in (0, 999, 1000, 1_250_000, -28, 3 * 10**12)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.2 MB",
        "-28 B",
        "3,000.0 GB",
    ]


# ---- wrapping ----

HOLDER = "server.bus.handlers['tick'][0].__closure__[1].cell_contents.waiting_requests"
NAMES = Table(
    "Held by",
    ("path", "holder", "freed without it"),
    ((HOLDER, "collections.defaultdict", "1.2 MB"), ("x", "list", "nothing")),
    ("freed without it",),
)


@pytest.mark.parametrize("width", [50, 60, 80, 120])
def test_names_are_broken_between_their_parts(width: int) -> None:
    shown = drawn([NAMES], width=width)

    assert max(map(len, shown.splitlines())) <= width
    # Each part of a name, each word, is whole in one line.
    for part in ("server", ".bus", ".handlers", ".__closure__", ".cell_contents", ".waiting_requests"):
        assert part in shown
    assert "collections" in shown and ".defaultdict" in shown
    assert "1.2 MB" in shown and "nothing" in shown
    assert "".join(line[:30].strip() for line in shown.splitlines()).count("waiting_requests") == 1


def test_a_column_is_not_narrowed_while_another_one_can_be_wrapped() -> None:
    table = Table("", ("type", "path"), (("collections.OrderedDict", "a.b" + ".c" * 60),))

    assert "collections.OrderedDict" in drawn([table], width=60)


@given(st.text("ab. [/\u4f60", max_size=60), st.integers(2, 20))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    lines = wrapped(text, width)

    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.lists(st.tuples(st.lists(st.text("ab.", max_size=30), min_size=1, max_size=3), st.booleans()), min_size=1))
def test_columns_fit_where_they_can(columns: list[tuple[list[str], bool]]) -> None:
    cells, fixed = [column for column, _ in columns], [is_fixed for _, is_fixed in columns]
    whole = column_widths(cells, fixed, 10_000)
    least = column_widths(cells, fixed, 0)

    for available in range(sum(least), sum(whole) + 2):
        widths = column_widths(cells, fixed, available)
        assert sum(widths) <= available
        assert all(low <= width <= high for low, width, high in zip(least, widths, whole, strict=True))
