"""Tables fit into 80 columns with nothing cut off, and the Markdown has the same content."""

from __future__ import annotations

import errno
import os

import pytest

from replaydbg.launch.terminal_width import WIDTH
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
