"""The notes of `why` help to decide what to do; where the line says it all, there are none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.render.texts import why_lines
from tests.harness.recording import at_exception, record_file

PROGRAM = """\
def main(rules):
    lines, names = [], []
    names.append(1)
    for each in rules:
        lines.append(each.upper() + str(len(names)))
    for pair in zip(rules, rules):
        names.append(pair)
    for moved in rules:
        rules = rules[:]
    raise ValueError(lines)


main(["a", "b"])
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield from at_exception(PROGRAM, tmp_path_factory.mktemp("program"))


@pytest.mark.parametrize(
    ("expression", "origins", "note"),
    [
        ("names", [], ""),
        (
            "lines",
            [],
            "which of the calls changed it is unknown: lines.append(), each.upper(); go there and `step` to see",
        ),
        ("each", ["rules"], "it is an item of rules; which line put it in is not tracked"),
        ("pair", [], "it is an item of zip(rules, rules), which is not tracked further"),
        ("moved", [], "it is an item of rules; which line put it in is not tracked"),
    ],
)
def test_the_notes_of_a_line(expression: str, origins: list[str], note: str, session: Session) -> None:
    told = session.run.why(expression)

    notes = [each for each in why_lines(session, told, follow="") if "note:" in each]

    assert [each.text for each in told.origins] == origins
    assert notes == ([f"  note: {note}"] if note else [])


def test_a_slice_of_everything_is_no_origin(tmp_path: Path) -> None:
    program = tmp_path / "copies.py"
    program.write_text("rows = [1]\ncopy = rows[:]\nend = rows[1:]\nraise SystemExit\n")
    with Session(record_file(program, tmp_path)) as session:
        session.seek("@exc")

        assert [each.text for each in session.run.why("copy").origins] == ["rows"]
        assert [each.text for each in session.run.why("end").origins] == ["rows", "1"]


@pytest.mark.parametrize(
    ("made", "item", "origins", "note"),
    [
        ("sorted(rows, key=rank)", "made[0]", ["sorted(rows, key=rank)"], "sorted() is not tracked inside C code"),
        ("sorted(rows)", "made[-1]", ["sorted(rows)"], ""),
        ("rows + [3]", "made[0]", ["rows", "3"], ""),
        ("dict(zip(rows, rows))", "made[1]", ["dict(zip(rows, rows))"], ""),
    ],
)
def test_an_item_that_came_with_its_container_is_computed_from_what_made_it(
    tmp_path: Path, made: str, item: str, origins: list[str], note: str
) -> None:
    program = tmp_path / "makes.py"
    program.write_text(f"def rank(row):\n    return -row\nrows = [2, 1]\nmade = {made}\nraise SystemExit\n")
    with Session(record_file(program, tmp_path)) as session:
        session.seek("@exc")
        told = session.run.why(item)
        lines = list(why_lines(session, told, follow="why {name}"))

    assert [each.text for each in told.origins] == origins
    assert told.unknown == note
    assert lines[-1].startswith("Next: why rows")


def test_modules_and_functions_are_not_proposed(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text("def by_value(row):\n    return -row\n")
    program = tmp_path / "ranked.py"
    program.write_text(
        "import ranks\n"
        "def own(row):\n"
        "    return ranks.by_value(row)\n"
        "limit, rows = 2, [2, 1]\n"
        "made = sorted(rows[:limit], key=own or ranks)\n"
        "ordered = sorted(rows, key=ranks.by_value)\n"
        "raise SystemExit\n"
    )
    with Session(record_file(program, tmp_path)) as session:
        session.seek("@exc")

        assert session.run.why("made[0]").names == ("sorted", "rows", "limit")
        *_, proposed = why_lines(session, session.run.why("ordered[0]"), follow="why {name}")
        assert proposed == "Next: why rows, or why ranks.by_value"
