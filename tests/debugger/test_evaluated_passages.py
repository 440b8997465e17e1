"""Conditions and logged expressions in the process that passes a line, against copies that are asked one by one."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.debugger.stops import evaluated_passages
from replaydbg.debugger.stops.evaluated_passages import Asked, Passage, passages_between
from replaydbg.engine.protocol import Break
from tests.harness.recording import record_file

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "passes_often.py"
LINES = PROGRAM.read_text(encoding="utf-8").splitlines()


def line_of(mark: str) -> int:
    return next(number for number, text in enumerate(LINES, 1) if text.endswith(f"# {mark}"))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(record_file(PROGRAM, tmp_path_factory.mktemp("passes"))) as session:
        # The program is short: these are its only checkpoints in between.
        for count in range(session.first_own + 300, session.index.total, session.index.total // 4):
            session.travel.timeline.add(session.travel.at(count))
        yield session


def asked(session: Session, condition: str, expression: str = "", mark: str = "logged") -> Asked:
    return Asked(Break(session.sources.file_named(PROGRAM.name), line_of(mark)), condition, expression)


def both(session: Session, each: Sequence[Asked]) -> tuple[list[Passage], list[Passage]]:
    """Return the passages as they are found, and as copies find them."""
    last = session.index.total
    found = list(passages_between(session, each, 1, last))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluated_passages, "guarded", lambda expression: None)
        return found, list(passages_between(session, each, 1, last))


@pytest.fixture
def in_process_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a copy is asked."""

    def refuse(*given: object) -> None:
        raise AssertionError("it was not evaluated in the process itself")

    monkeypatch.setattr(evaluated_passages._Search, "_by_copy", refuse)


PLAIN = [
    ("total % 4 == 3 and amount", "f'{total=}', sorted(counts)"),
    ("amount == 25", "account.number, account.looks"),
    ("amount > 35", "[each for each in amounts if each > amount + total * 0][:2], amounts[-3:], amounts[0]"),
    ("amount == 3", "missing"),
    ("amount == 4 and missing", "1"),
    ("amount == 7", "'x' * 5_000_000"),
    ("amount == 8 and counts.get('b', 0) > 1", "{name: str(counts[name]).rjust(9) for name in sorted(counts)}"),
    ("not amount", "(lambda: total)(), (wanted := amount), wanted, max(amounts, key=lambda each: -each)"),
    ("amount == 9", "1 / 0"),
    ("amount == 10", "sum(each for each in range(total)), list(zip(amounts[:2], reversed(amounts[-2:])))"),
    ("amount == 11 and isinstance(account, Account)", "type(account), counts['missing']"),
    ("amount == 12", "account.missing"),
]
"""Read only: the process itself evaluates them."""

COPIED = [
    ("amount > 36 and sum({'it': used}.get('it'))", "sum((lambda: used)())"),
    ("amount == 25", "account"),
    ("amount == 5", "print('printed') or len(locals())"),
    ("amount == 6 and globals()['Account']", "0"),
    ("amount == 8 and threading.current_thread().name == 'b'", "__import__('json').dumps(amount)"),
    ("amount == 11", "for each in range(2): print(each)"),
    ("amount == 12 and", "0"),
    ("amount in (13, 14) and account.looked > 1", ""),
    ("account.looked > 1", ""),
    ("account.looked == 1 and amount == 15", ""),
    ("amount > 36 and amounts.append(1) is None", "len(amounts)"),
    ("amounts.clear() or amount > 35", ""),
    ("counts.pop('a', None) and amount == 30", ""),
    ("__import__('sys').settrace(None) or amount == 38", "amount"),
    ("amount == 16 and account == 16", "account"),
    ("amount == 17 and account", "account.number"),
    ("amount == 18 and account[amount] == 18", ""),
    ("amount == 19 and 19 in account", "*account, max(*account)"),
    ("amount in used", "amount"),
    ("amount > 36 and used", "sum(used)"),
    ("amount > 36 and next(used)", "next(used)"),
    ("amount > 36", "[*used], {**counts}"),
    ("amount > 36 and min([1], key=amounts.append)", "len(amounts)"),
    ("default[amount] or amount > 36", "len(default)"),
    ("amount > 36", "type('Made', (Account,), {}), len(Account.__subclasses__())"),
    ("amount > 36 and f'{account}'", "str(account), repr([account]), account < account"),
]
"""They may change something, or run code of the program."""


# Copies take long: most of these are compared in the second stage.
@pytest.mark.parametrize(
    ("condition", "expression"),
    [*PLAIN[::3], *COPIED[::5], *(pytest.param(*each, marks=pytest.mark.long) for each in [*PLAIN, *COPIED])],
)
def test_both_ways_find_the_same(session: Session, condition: str, expression: str) -> None:
    found, by_copies = both(session, [asked(session, condition, expression)])

    assert found == by_copies


@pytest.mark.usefixtures("in_process_only")
@pytest.mark.parametrize(("condition", "expression"), PLAIN)
def test_what_reads_only_needs_no_copy(session: Session, condition: str, expression: str) -> None:
    assert list(passages_between(session, [asked(session, condition, expression)], 1, session.index.total))


@pytest.mark.usefixtures("in_process_only")
def test_no_copies_are_made_of_the_process(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluated_passages, "AT_ONCE", 7)
    found = list(passages_between(session, [asked(session, "amount % 2", "amount")], 1, session.index.total))

    # More than a process reports at once, from three threads.
    assert len(found) == 60
    assert {each.lane for each in found} == {0, 1, 2}
    assert [each.text for each in found if each.lane == 0] == [str(number) for number in range(1, 40, 2)]
    assert [each.count for each in found] == sorted(each.count for each in found)


@pytest.mark.usefixtures("in_process_only")
def test_names_are_those_that_the_line_sees(session: Session) -> None:
    places = [
        asked(session, "", "sorted(squares), numbers", "logged in a class"),
        asked(session, "", "shared, start, Account", "logged in a closure"),
    ]
    found = list(passages_between(session, places, 1, session.index.total))

    assert [each.asked for each in found] == [0, 1] * 10
    assert found[0].text == "<NameError: name 'numbers' is not defined>"
    assert found[1].text.startswith("([0, 1, 2, 3, 4], 0, <class '__main__.Account'>")


@pytest.mark.parametrize("condition", ["__import__('os')._exit(3)", "__import__('os').abort()", "input()"])
def test_one_that_ends_the_process_stops_a_breakpoint(session: Session, condition: str) -> None:
    file = session.sources.file_named(PROGRAM.name)
    number = session.breakpoints.add(Breakpoint(0, file=file, line=line_of("logged"))).number
    session.breakpoints.change(number, condition=condition)
    session.seek("@start")
    try:
        here = session.go()
    finally:
        session.breakpoints.remove(number)

    assert here.breakpoint == number
    assert "its condition" in here.message


def test_one_that_takes_too_long_is_asked_in_copies(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluated_passages, "LONGEST", 0.2)
    place = asked(session, "amount == 3 and sum(iter(int, 1))", "amount")
    found = next(passages_between(session, [place], 1, session.index.total))

    assert "took longer than" in found.note


def test_conditions_are_counted_with_ignored_passages(session: Session) -> None:
    file = session.sources.file_named(PROGRAM.name)
    number = session.breakpoints.add(Breakpoint(0, file=file, line=line_of("logged"))).number
    session.breakpoints.change(number, condition="amount % 3 == 1", ignore=4)
    session.seek("@start")
    seen = []
    try:
        while session.go().breakpoint:
            value = session.ask.evaluate("amount").value
            assert value is not None
            seen.append(int(value.text))
    finally:
        session.breakpoints.remove(number)

    passed = [
        each.text
        for each in passages_between(session, [asked(session, "amount % 3 == 1", "amount")], 1, session.index.total)
    ]
    assert [str(each) for each in seen] == passed[4::5]
