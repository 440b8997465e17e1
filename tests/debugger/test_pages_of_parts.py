"""Items and attributes of values, from any index on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from replaydbg.debugger import Session
from tests.harness.recording import record_file

PROGRAM = """\
class Point:
    def __init__(self):
        self.x, self.y, self.z = 1, 2, 3


many = list(range(2500))
table = {number: -number for number in range(2500)}
some = frozenset(range(2500))
point = Point()
done = True
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("parts")
    (folder / "prog.py").write_text(PROGRAM)
    with Session(record_file(folder / "prog.py", folder)) as session:
        yield session


@pytest.mark.parametrize(
    ("first", "most", "last"), [(0, 1000, 1000), (1500, 900, 2400), (2490, 50, 2500), (9999, 9, 0)]
)
def test_parts_from_an_index_on(session: Session, first: int, most: int, last: int) -> None:
    wanted = range(first, last)

    many = session.ask.parts("many", first=first, most=most)
    table = session.ask.parts("table", first=first, most=most)
    some = session.ask.parts("some", first=first, most=most)

    assert [(each.name, each.text) for each in many] == [(f"[{at}]", str(at)) for at in wanted]
    assert [(each.name, each.text) for each in table] == [(f"[{at}]", str(-at)) for at in wanted]
    assert len(some) == len(wanted)


def test_attributes_from_an_index_on(session: Session) -> None:
    assert [each.name for each in session.ask.parts("point", first=1, most=1)] == [".y"]
    assert [each.name for each in session.ask.parts("point")] == [".x", ".y", ".z"]


def test_at_most_a_thousand_come_at_once(session: Session) -> None:
    assert len(session.ask.parts("many", most=2000)) == len(session.ask.parts("many")) == 1000
