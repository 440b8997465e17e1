"""A watch can go through a field of an object's structure, which C code declares, and only in objects of its type."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from replaydbg.debugger import Session
from replaydbg.engine.protocol import PathStep, RunOrder, Watch
from replaydbg.engine.reports import Where
from tests.harness.recording import record_file
from tests.harness.sanitizer import usual_addresses
from tests.harness.typed import TRAVEL

PARTIAL, FUNCTION_AT = "functools.partial", 16
"""As _functoolsmodule.c has it: the function comes first."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with usual_addresses():
        recording = record_file(TRAVEL / "keeps_a_function_in_a_field.py", tmp_path_factory.mktemp("fields"))
        with Session(recording) as found:
            yield found


def watch(kind: str, offset: int, *, name: str = "made") -> Watch:
    return Watch(name, module="__main__", steps=(PathStep(field=(kind, offset)),))


def test_a_field_leads_to_what_it_holds(session: Session) -> None:
    session.seek("@exc")

    found = session.cursor.locate(watch(PARTIAL, FUNCTION_AT))

    assert found[0]
    assert found == session.cursor.locate(Watch("two", module="__main__"))


def test_a_store_into_a_field_is_a_change(session: Session) -> None:
    session.seek("@exc")
    last = session.here.count
    line = next(each for each in session.run.history("one_made")).count

    with closing(session.travel.at(line)) as worker:
        where = worker.run(RunOrder(until=last, watch=watch(PARTIAL, FUNCTION_AT)))

    assert isinstance(where, Where)
    assert where.top is not None
    assert session.source_line(where.top.file, where.top.line) == "raise SystemExit(made() - 2)"


@pytest.mark.parametrize(
    ("kind", "offset", "name"),
    [
        ("functools.partialmethod", FUNCTION_AT, "made"),
        (PARTIAL, FUNCTION_AT, "two"),
        (PARTIAL, 0, "made"),
        (PARTIAL, 8, "made"),
        (PARTIAL, FUNCTION_AT + 1, "made"),
        (PARTIAL, 1 << 20, "made"),
        (PARTIAL, -8, "made"),
    ],
    ids=["other_type", "other_object", "count", "type", "inside_a_pointer", "behind_it", "before_it"],
)
def test_anything_else_leads_nowhere(kind: str, offset: int, name: str, session: Session) -> None:
    session.seek("@exc")

    assert session.cursor.locate(watch(kind, offset, name=name)) == (0, 0)
