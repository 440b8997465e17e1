"""`why` finds the same with the passages that the process selects as by looking at every passage in a copy."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.debugger.writes import equal_writes, store_passages
from replaydbg.errors import UsageError
from tests.harness.recording import record_file
from tests.harness.sanitizer import usual_addresses
from tests.harness.typed import TRAVEL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HEAD = """\
from contextlib import suppress


class Thing:
    def __init__(self, value):
        self.value = value
        self.other = 0

    def put(self, value):
        self.value = value


class Holder:
    def __init__(self, thing):
        self.plain = thing

    @property
    def thing(self):
        return self.plain


class Lookup:
    def __getitem__(self, key):
        return things[key]


class Table(dict):
    def __missing__(self, key):
        self[key] = things[0]
        return things[0]


def nested(thing):
    def put(value):
        thing.value = value

    return put


things = [Thing(number) for number in range(4)]
alias = things[1]
holder, lookup = Holder(things[2]), Lookup()
table = Table(one=things[0])
items = [0, 0, 0]
pairs = {"a": 0, "b": 0}
put = nested(things[3])
"""
ASKED = [
    *(f"things[{number}].value" for number in range(4)),
    *(f"items[{number}]" for number in range(3)),
    "pairs['a']",
    "things[1].other",
]


def program_of(seed: int) -> str:
    """Return a program that stores the same few values again and again, into objects that it reaches in many ways."""
    generator = random.Random(seed)

    def one() -> str:
        number, value = generator.randrange(4), generator.randrange(2)
        return generator.choice(
            [
                f"things[{number}].value = {value}",
                f"things[{number} - 1].value = {value}",
                f"alias.value = {value}",
                f"holder.plain.value = {value}",
                f"holder.thing.value = {value}",
                f"lookup[{number}].value = {value}",
                f"table['one'].value = {value}",
                f"table['new{number}'].value = {value}",
                f"things[{number}].put({value})",
                f"put({value})",
                f"for each in things:\n    each.value = {value}",
                f"for each in things: each.value = {value}",
                f"for index in range(3):\n    items[index] = {value}",
                f"items[{number} - 2] = {value}",
                f"with suppress(IndexError):\n    items[{number}] = {value}",
                f"pairs['ab'[{number % 2}]] = {value}",
                f"with suppress(NameError):\n    missing.value = {value}",
                f"with suppress(AttributeError):\n    alias.missing.value = {value}",
                f"class Body:\n    alias.other = value = {value}",
                f"things[{number}].value = things[{number}].other = {value}",
            ]
        )

    return HEAD + "".join(f"{one()}\n" for _ in range(60)) + "print('done')\n"


def answers(session: Session) -> dict[str, object]:
    found: dict[str, object] = {}
    for expression in ASKED:
        try:
            found[expression] = session.run.why(expression)
        except UsageError as error:
            found[expression] = str(error)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_answers_are_those_of_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    program = tmp_path / "stores.py"
    program.write_text(program_of(seed))
    selections = []
    between = store_passages.StorePassages.between

    def noted(self: store_passages.StorePassages, place: int, first: int, last: int) -> object:
        selections.append(between(self, place, first, last))
        return selections[-1]

    with usual_addresses(), Session(record_file(program, tmp_path), spacing=0.001) as session:
        monkeypatch.setattr(equal_writes, "MOST_AT_ONCE", 1 << 30)
        in_copies = answers(session)
        monkeypatch.setattr(equal_writes, "MOST_AT_ONCE", 0)
        monkeypatch.setattr(store_passages.StorePassages, "between", noted)
        selected = answers(session)

    assert selected == in_copies
    # They were selected, and not all of them.
    assert any(each is not None for each in selections)


MADE = TRAVEL / "writes_after_making.py"
WRITTEN = {
    found[2]: (found[1], number)
    for number, line in enumerate(MADE.read_text().splitlines(), 1)
    if (found := re.search(r"  # (==|~~) (.*)", line))
}


def assert_equal_writes_are_found(session: Session) -> None:
    session.seek("@exc")
    for place, (mark, line) in WRITTEN.items():
        told = session.run.why(place)
        if mark == "==":
            assert (told.line, told.is_equal, told.note) == (line, True, ""), place
        else:
            assert told.note == f"an equal value may have been written later by {MADE.name}:{line} main", place


def test_objects_that_a_line_has_just_made(tmp_path: Path) -> None:
    with usual_addresses(), Session(record_file(MADE, tmp_path), spacing=1000.0) as session:
        assert_equal_writes_are_found(session)


@pytest.mark.parametrize("mark", WRITTEN.values(), ids=str)
@pytest.mark.parametrize("after", [0, 1, 2, 5, 20])
def test_the_answers_are_the_same_wherever_a_checkpoint_is(tmp_path: Path, mark: tuple[str, int], after: int) -> None:
    with usual_addresses(), Session(record_file(MADE, tmp_path), spacing=1000.0) as session:
        point = session.breakpoints.add(Breakpoint(0, file=str(MADE), line=mark[1]))
        session.seek("@start")
        assert session.go().why == "breakpoint"
        session.breakpoints.remove(point.number)
        travel = session.travel
        travel.timeline.add(travel.at(session.here.count + after))
        assert_equal_writes_are_found(session)
