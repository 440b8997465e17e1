"""Values at many moments, evaluated in the process that passes them, against copies that are asked one by one."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.debugger import Session
from replaydbg.debugger.values import values_at_moments, values_in_process
from replaydbg.debugger.values.values_at_moments import ModuleValue, values_at
from tests.harness.recording import record_file
from tests.harness.sanitizer import IS_SANITIZED

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "passes_often.py"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(record_file(PROGRAM, tmp_path_factory.mktemp("values")), spacing=1000.0) as session:
        # These are its only checkpoints in between.
        for count in range(session.first_own + 300, session.index.total, session.index.total // 4):
            session.travel.timeline.add(session.travel.at(count))
        yield session


def by_copies(session: Session, counts: Sequence[int], expression: str, module: str) -> dict[int, ModuleValue]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values_in_process, "guarded", lambda expression: None)
        return values_at(session, counts, expression, module=module)


@pytest.fixture
def in_process_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a copy is asked."""

    def refuse(view: object, query: object, counts: Sequence[int]) -> dict[int, ModuleValue]:
        assert not counts, "it was not evaluated in the process itself"
        return {}

    monkeypatch.setattr(values_at_moments, "_by_copies", refuse)
    monkeypatch.setattr(values_in_process, "MOST_REFUSED", 0)


PLAIN = [
    ("sorted(counts.items())", "__main__"),
    ("account.number, account.looks, len(threads)", "__main__"),
    ("[each for each in range(5) if each > start]", "__main__"),
    ("{name: counts[name] for name in counts}, counts['a']", "__main__"),
    ("missing", "__main__"),
    ("1 / (start - 3)", "__main__"),
    ("account.missing", "__main__"),
    ("'x' * 2_000_000", "__main__"),
    ("type(threading), __name__, sys.maxsize", "__main__"),
    ("len(_active)", "threading"),
    ("1", "never_imported"),
    ("(wanted := len(counts)), wanted", "__main__"),
    ("bool(counts)", "__main__"),
]
"""They read only: the process itself evaluates them."""

COPIED = [
    ("account", "__main__"),
    ("_active_limbo_lock, len(_active)", "threading"),
    ("account.looked", "__main__"),
    ("next(used)", "__main__"),
    ("list(used)", "__main__"),
    ("default['new'], len(default)", "__main__"),
    ("counts.clear() or len(counts)", "__main__"),
    ("print('printed') or start", "__main__"),
    ("__import__('json').dumps(counts)", "__main__"),
    ("[account], account == 3", "__main__"),
]
"""They may change something, or run code of the program."""


def spread(session: Session, number: int = 15) -> list[int]:
    """Return counts of lines from the first to the last one, some of them next to each other."""
    first, last = session.first_own, session.index.total
    return sorted({1, first, first + 1, first + 2, *range(first, last, max(1, (last - first) // number)), last})


@pytest.mark.parametrize(("expression", "module"), [*PLAIN, *COPIED])
def test_both_ways_find_the_same(session: Session, expression: str, module: str) -> None:
    counts = spread(session)

    assert values_at(session, counts, expression, module=module) == by_copies(session, counts, expression, module)


@pytest.mark.usefixtures("in_process_only")
@pytest.mark.parametrize(("expression", "module"), PLAIN)
def test_what_reads_only_needs_no_copy(session: Session, expression: str, module: str) -> None:
    counts = [*spread(session), *range(session.index.end - 5, session.index.end)]
    if IS_SANITIZED:
        counts.remove(1)  # the start is so slow that this line has a checkpoint of its own, and copies are asked

    assert set(values_at(session, counts, expression, module=module)) == set(counts)


@pytest.mark.usefixtures("in_process_only")
def test_more_values_than_a_process_reports_at_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values_in_process, "AT_ONCE", 7)
    counts = range(session.first_own, session.index.total + 1)
    values = [each.text for each in values_at(session, counts, "start").values() if not each.reason]

    # A module's variable that a loop counts up.
    assert list(dict.fromkeys(values)) == [str(each) for each in range(10)]
    assert values == sorted(values)


def test_refused_values_between_others(session: Session) -> None:
    expression = "account.looked if start > 6 else -start"
    counts = range(session.index.end - 400, session.index.end, 10)
    found = values_at(session, counts, expression)

    # Each copy is the first one that looks.
    assert {each.text for each in found.values()} >= {"1", "-6"}
    assert found == by_copies(session, counts, expression, "__main__")


def test_a_process_that_hangs_is_given_up(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values_in_process, "LONGEST", 0.3)
    monkeypatch.setattr(values_at_moments, "LONGEST", 0.3)
    counts = range(session.index.end - 5, session.index.end)
    found = values_at(session, counts, "sum(each for each in range(10**9))")

    assert {each.reason for each in found.values()} == {"it took longer than 0.3 s"}


@settings(deadline=None, max_examples=10)
@given(st.data())
def test_any_lines(session: Session, data: st.DataObject) -> None:
    lines = st.integers(1, session.index.total)
    counts = sorted(data.draw(st.sets(lines, min_size=1, max_size=60)))
    expression = data.draw(st.sampled_from(["sorted(counts.items())", "start", "account.looks"]))

    assert values_at(session, counts, expression) == by_copies(session, counts, expression, "__main__")
