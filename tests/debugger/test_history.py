"""All values of an expression, and the note on changes that are not followed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from tests.harness.recording import record_file
from tests.harness.typed import Typed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """\
import array
import collections
import threading

class Ordered(collections.OrderedDict):
    def __repr__(self): return "-".join(self)

class Account:
    def __init__(self):
        self.log = []
        self.limits = {"day": [1]}

cache = Ordered(a=1, b=2)
queue = collections.deque([1, 2], 3)
state = {"users": {"bob": 1}, "other": {}}
numbers = array.array("i", [1])
account = Account()
started = 1

def change():
    cache.move_to_end("a")
    queue.rotate()
    queue.append(3)
    state["users"]["bob"] += 1
    numbers.append(2)
    account.limits["day"].append(2)

change()
threading.Thread(target=change).start()
inner = {"a": []}
def local(kept):
    kept["a"].append(1)
    return kept
local(inner)
raise ValueError(started)
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    program = tmp_path_factory.mktemp("history") / "contents.py"
    program.write_text(PROGRAM)
    with Session(record_file(program, program.parent, status=1)) as session:
        yield session


def lines(session: Session, name: str) -> list[tuple[int, str]]:
    return [(each.line, each.text) for each in session.run.history(name)]


def test_the_order_of_a_dictionary_and_the_content_of_a_deque_are_followed(session: Session) -> None:
    assert lines(session, "cache") == [
        (13, "a-b"),
        (21, "b-a"),
    ]
    assert [text for _, text in lines(session, "queue")] == [
        "deque([1, 2], maxlen=3)",
        "deque([2, 1], maxlen=3)",
        "deque([2, 1, 3], maxlen=3)",
        "deque([3, 2, 1], maxlen=3)",
        "deque([2, 1, 3], maxlen=3)",
    ]
    why = session.run.why("queue")
    assert (why.source, why.before, why.note) == ("queue.append(3)", "deque([3, 2, 1], maxlen=3)", "")
    assert session.run.why("cache").source == 'cache.move_to_end("a")'


@pytest.mark.parametrize(
    ("name", "told", "ask"),
    [
        ("state", "to {'users': {'bob': 3}, 'other': {}}", "`why state['users']` or"),
        ("account", "deeper changes inside a Account", "`why account.limits` or"),
        ("account.limits", "to {'day': [1, 2, 2]}", "`why account.limits['day']` or"),
        ("inner", "to {'a': [1]}", "`why inner['a']` or"),
    ],
)
def test_what_changed_further_inside_is_said(session: Session, name: str, told: str, ask: str) -> None:
    history = session.run.history(name)

    assert len(list(history)) == 1
    for note in (history.note, session.run.why(name).note):
        assert "has changed since" in note
        assert told in note
        assert ask in note
    assert history.note in Typed.at("@end", session)(f"history {name}")


@pytest.mark.parametrize("name", ["state['users']", "started", "account.log", "cache"])
def test_of_what_is_followed_nothing_is_said(session: Session, name: str) -> None:
    history = session.run.history(name)

    assert list(history)
    assert (history.note, session.run.why(name).note) == ("", "")


def test_a_history_that_is_cut_says_nothing_of_its_end(session: Session) -> None:
    history = session.run.history("queue", most=2)

    assert len(list(history)) == 2
    assert history.note == ""


def test_the_interpreters_end_is_no_line_of_a_library(session: Session) -> None:
    assert lines(session, "started") == [(18, "1")]


WRITTEN = """\
class Engine:
    __slots__ = ("mode", "__dict__")
    def __init__(self):
        self.mode = "off"
        self.speed = 0
class Bag(dict):
    def __repr__(self): return "<bag>"
engine, bag = Engine(), Bag()
engine.mode, engine.speed = "on", 5
bag["k"] = 2
bag.owner = "me"
"""


def test_of_an_object_whose_text_does_not_tell_it_the_answer_says_what_was_written(tmp_path: Path) -> None:
    program = tmp_path / "written.py"
    program.write_text(WRITTEN)
    with Session(record_file(program, tmp_path)) as session:
        typed = Typed.at("@last", session)
        engine, bag = typed("why engine"), typed("why bag")
        last = typed("last engine")

    for told in ("before  engine.mode = 'off'", "after   engine.mode = 'on'", "after   engine.speed = 5"):
        assert told in engine
    assert " object at " not in engine
    assert "engine.speed: 0 -> 5" in last
    assert "(bag['k'] not set)" in bag
    assert "after   bag['k'] = 2" in bag


def test_of_what_has_no_value_the_reason_is_shown(session: Session) -> None:
    typed = Typed.at("@exc", session)

    missing = typed("history state['users']['ann']")

    assert "No changes. state['users']['ann'] has no value here: KeyError: 'ann'." in missing
    assert "has no value here" not in typed("history __name__")


def test_every_change_of_a_small_array_is_found(session: Session) -> None:
    session.seek("@end")
    assert [each.text for each in session.run.history("numbers")] == [
        "array('i', [1])",
        "array('i', [1, 2])",
        "array('i', [1, 2, 2])",
    ]
