"""A preemption behind a line that no other thread can notice is not tried again, and nothing is missed by that."""

import ast
from pathlib import Path

import pytest

from replaydbg.futures.future import FutureVerdict
from replaydbg.futures.launcher import Futures, FutureWishes, run_futures
from replaydbg.futures.schedules.decisions import PreemptionPoint, ThreadPlace
from replaydbg.futures.searches.local_lines import LocalLines
from tests.futures.made import Ground

FILE = "program.py"

TEXT = """import threading
class Money:
    def __add__(self, other):
        return other
ONE, TWO = 1, Money()
ROUNDS = 3
CHANGED = 1
SHADOW = 2
def change():
    global CHANGED
    CHANGED += 1
def another(SHADOW):
    pass
def call(number, money, items, *, word="a"):
    pass                                        # local
    left = number - 1                           # local
    left += number * 2                          # local
    text: str = f"{left} {word!r:>8}"           # local
    if left < 0 or not (number in (1, 2)):      # a tuple
        pass                                    # local
    while left > number and word != text:       # local
        left = left // 2 if word else number    # local
    both = (left +                              # local
            number)                             # local
    other = both = left                         # local
    "text"                                      # local
    left, right = 1, 2                          # several
    left = items[0]                             # an item
    left = money + 1                            # not plain
    left = ONE + 1                              # of the module
    left = len(word)                            # a call
    left = [number]                             # a list
    left @= number                              # a matrix
    items.left = number                         # an attribute
    left = number; items.append(left)           # two of them
    if left: items.append(left)                 # one line
    for left in items:                          # an iterator
        break                                   # leaves it
    for left in range(number, 9):               # local
        left += ROUNDS                          # local
    for left in range(ROUNDS): items(left)      # one line
    for left in range(CHANGED):                 # another thread may change it
        left += SHADOW                          # perhaps another one
    for items.left in range(3):                 # an attribute
        left = LATER                            # has no value yet
    with items:                                 # a manager
        left = number                           # local
    try:                                        # nothing
        left = number / 0                       # local
    except ZeroDivisionError as error:          # an exception
        left = 1                                # local
    del left                                    # let go
    assert number                               # an error
    left = word = (yield)                       # waits
    return number                               # let go
LATER = 1
"""
FIRST = next(number for number, line in enumerate(TEXT.splitlines(), 2) if line.startswith("def call"))
LOCAL = [number for number, line in enumerate(TEXT.splitlines(), 1) if line.endswith("# local")]
PLAIN = frozenset({"number", "word", "left", "right", "text", "both", "other"})


GLOBALS = frozenset({"ONE", "ROUNDS", "CHANGED", "SHADOW"})


def point(line: int, ticks: int = 0, plain: frozenset[str] = PLAIN) -> PreemptionPoint:
    return PreemptionPoint(1, 0, ticks, 0, 0, (2,), ThreadPlace(FILE, line, "call"), plain, GLOBALS)


def test_local_lines_of_a_function() -> None:
    lines = LocalLines({FILE: TEXT.encode()})
    ast.parse(TEXT)

    found = [number for number in range(FIRST, TEXT.count("\n") + 1) if lines.begins(point(number))]

    assert found == LOCAL


def test_a_line_with_a_variable_that_is_not_plain() -> None:
    lines = LocalLines({FILE: TEXT.encode()})
    line = TEXT.splitlines().index("    left = number - 1                           # local") + 1

    assert lines.begins(point(line, plain=frozenset({"number", "left"})))
    assert not lines.begins(point(line, plain=frozenset({"number"})))
    assert not lines.begins(point(line, plain=frozenset({"left"})))


@pytest.mark.parametrize("more", ["range = list\n", "from typing import *\n", "def f(range): pass\n"])
def test_a_range_that_may_be_another_one(more: str) -> None:
    lines = LocalLines({FILE: (TEXT + more).encode()})

    assert not any(lines.begins(point(number)) for number, line in enumerate(TEXT.splitlines(), 1) if "range(" in line)


@pytest.mark.parametrize("text", ["", "def (", "\0"])
def test_a_source_that_is_not_known(text: str) -> None:
    assert not LocalLines({FILE: text.encode()}).begins(point(1))
    assert not LocalLines({}).begins(point(1))


def test_only_the_next_line_of_the_same_call_is_as_before() -> None:
    lines = LocalLines({FILE: TEXT.encode()})
    first, second = LOCAL[1], LOCAL[2]
    before, after = point(first), point(second, ticks=1)

    assert lines.is_same_as_before(before, after)
    assert not lines.is_same_as_before(before, after._replace(ticks=2))
    assert not lines.is_same_as_before(before, after._replace(lane=2))
    assert not lines.is_same_as_before(before, after._replace(marks=1))
    assert not lines.is_same_as_before(before, after._replace(ready=(2, 3)))
    assert not lines.is_same_as_before(before, after._replace(at=after.at._replace(function="another")))


RACE = """import threading
total = 0
go = threading.Event()
class Twice:
    def __init__(self, value):
        self.value = value
    def __mul__(self, other):
        global total
        total = total + other
        return self
def add(amount, twice):
    global total
    go.wait()
    for _ in range(2):
        before = total
    more = before + amount
    if more > 100:
        more = 100
    more = more * 1
    text = f"{more}"
    more += len(text) * 0
    twice = twice * 1
    total = more
threads = [threading.Thread(target=add, args=(number, Twice(number))) for number in (1, 2)]
for thread in threads:
    thread.start()
go.set()
for thread in threads:
    thread.join()
assert total == 3, total
"""


def tried(ground: Ground, preemptions: int) -> Futures:
    wishes = FutureWishes(ground.first_thread(), 5000, preemptions=preemptions)
    return run_futures(ground.folder / "one.rdbg", wishes, name="one", store=ground.folder / "store")


def endings(found: Futures) -> set[tuple[FutureVerdict, str]]:
    return {(each.verdict, each.ending) for each in found.groups}


@pytest.mark.slow
@pytest.mark.parametrize("preemptions", [1, 2])
def test_nothing_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, preemptions: int) -> None:
    ground = Ground.make(tmp_path, RACE, status=None)
    fewer = tried(ground, preemptions)
    monkeypatch.setattr(LocalLines, "begins", lambda *_: False)
    every = tried(ground, preemptions)

    assert fewer.systematic is not None and every.systematic is not None
    assert fewer.systematic.left == every.systematic.left == 0 == every.systematic.equal < fewer.systematic.equal
    assert fewer.count < every.count
    assert endings(fewer) == endings(every)


@pytest.mark.slow
def test_it_is_said(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, RACE, status=None)

    at = str(ground.first_thread())
    finished = ground.replaydbg("futures", "one.rdbg", "--at", at, "-n", "900", "--systematic", "1")

    told = b" that end as others do, all schedules with up to 1 preemption at lines of the program were tried."
    assert told in finished.stdout, finished
