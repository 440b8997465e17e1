"""Where a run first went wrong: the search over checkpoints and lines finds the responsible line."""

from __future__ import annotations

import os
import random
import re
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.bisection import predicates, run_bisection
from replaydbg.debugger.bisection.bisect_results import Answer, Bisected, Verdict
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.run_bisection import begin_bisection
from replaydbg.errors import UsageError
from replaydbg.render.bisection_text import headline
from replaydbg.render.json_data.bisection_json import facts
from replaydbg.render.texts import events_of
from tests.harness.recording import record_file

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FOLDER = Path(__file__).parents[2] / "fixtures" / "bisect"
LOST = "sum(accounts.values()) != 1000"


def line_of(program: str, mark: str) -> int:
    lines = (FOLDER / program).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# <- {mark}"))


def opened(program: str, folder: Path, status: int = 0) -> Iterator[Session]:
    with Session(record_file(FOLDER / program, folder, status=status), spacing=0.001) as session:
        yield session


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield from opened("bank.py", tmp_path_factory.mktemp("bank"), status=1)


@pytest.fixture(scope="module")
def returns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield from opened("returns.py", tmp_path_factory.mktemp("returns"))


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield from opened("lanes.py", tmp_path_factory.mktemp("lanes"))


@pytest.fixture(scope="module")
def scopes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield from opened("scopes.py", tmp_path_factory.mktemp("scopes"))


def named(found: Bisected) -> tuple[str, int]:
    assert found.culprit is not None, found
    return Path(found.culprit.file).name, found.culprit.line


@pytest.mark.parametrize(
    "predicate",
    [
        predicates.bad_if(LOST),
        predicates.check("sum(accounts.values()) == 1000"),
        predicates.raises("1 / (sum(accounts.values()) == 1000)"),
        predicates.function(f"{FOLDER / 'asked.py'}:is_lost"),
        predicates.invariant("nothing is lost"),
        predicates.bad_if("not whole()"),
    ],
    ids=lambda each: each.kind,
)
def test_the_line_is_found_however_it_is_asked(bank: Session, predicate: Predicate) -> None:
    found = bank.run.bisect(predicate)
    assert found.answer is Answer.FOUND
    assert named(found) == ("bank.py", line_of("bank.py", "fee"))
    assert found.is_exact
    assert found.passing > 0, "each transfer is wrong for a line"
    assert found.culprit is not None
    assert found.culprit.before is Verdict.GOOD


def test_the_values_before_and_after_are_told(bank: Session) -> None:
    culprit = bank.run.bisect(predicates.bad_if(LOST)).culprit
    assert culprit is not None
    assert (culprit.values[0].source, culprit.values[0].before, culprit.values[0].after) == (
        "sum(accounts.values())",
        "1000",
        "999",
    )
    assert culprit.source == "accounts[giver] -= 1  # <- fee"


def test_every_line_is_looked_at_when_asked_for(bank: Session) -> None:
    found = bank.run.bisect(predicates.bad_if(LOST), linear=True)
    program, line = named(found)
    assert (program, line) == ("bank.py", line_of("bank.py", "fee") - 5), "the first transfer is wrong for a line"
    flips = list(begin_bisection(bank, predicates.bad_if(LOST)).verdict_changes(7))
    assert [each.is_bad for each in flips] == [True, False] * 3 + [True]
    assert found.culprit is not None
    assert flips[0].count == found.culprit.count
    assert {each.function for each in flips} == {"pay"}


def test_a_checkpoint_in_the_middle_of_a_transfer_is_not_taken_for_the_end_of_it(bank: Session) -> None:
    """However the checkpoints fall, some of them are between the two lines of a transfer."""
    flips = list(begin_bisection(bank, predicates.bad_if(LOST)).verdict_changes(40))
    middles = [each.count + 1 for each in flips if each.is_bad]
    for count in middles:
        bank.travel.at(count).close()
        bank.travel.timeline.add_near(bank.travel.at(count))
    found = bank.run.bisect(predicates.bad_if(LOST), last=middles[-1] + 4000)
    assert found.answer is Answer.NEVER
    assert not found.unfit


def test_a_slow_question_bisects_the_lines_too(bank: Session) -> None:
    slow = predicates.function(f"{FOLDER / 'asked.py'}:slow")
    here = bank.run.bisect(predicates.bad_if(LOST)).culprit
    assert here is not None
    found = bank.run.bisect(slow, first=here.count - 300, last=here.seen + 300)
    assert found.answer is Answer.FOUND
    assert found.culprit is not None
    assert Path(found.culprit.file).name == "bank.py"


@pytest.mark.long
def test_a_slow_question_is_not_evaluated_at_all_lines_after_a_bad_checkpoint(
    bank: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To find out whether a checkpoint is bad for some lines only would take longer than an evaluation may."""
    slow = predicates.function(f"{FOLDER / 'asked.py'}:slow")
    here = bank.run.bisect(predicates.bad_if(LOST)).culprit
    assert here is not None
    monkeypatch.setattr(run_bisection, "LONGEST_SCAN", 6.0)  # so that a busy machine does not make all looks slow
    monkeypatch.setattr(run_bisection, "PASSING", 1_000_000)
    found = bank.run.bisect(slow, first=here.count - 300, last=here.seen + 3000)
    assert found.answer is Answer.FOUND


def test_a_question_that_changes_what_it_asks_for_is_asked_in_copies(bank: Session) -> None:
    # In a session of its own: between two checkpoints of the shared one it is evaluated too seldom to change.
    with Session(bank.path) as session:
        found = session.run.bisect(predicates.function(f"{FOLDER / 'asked.py'}:spoils"))
    assert found.answer is Answer.FOUND
    assert not found.is_exact
    assert found.culprit is not None
    assert Path(found.culprit.file).name == "bank.py"


def test_each_line_cannot_be_told_where_asking_there_changes_the_answer(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    # At each line the number of items is even, so no checkpoint is one at which the first predicate is true.
    program.write_text("left = list(range(300))\nwhile len(left) > 10:\n    left.pop(), left.pop()\n")
    with Session(record_file(program, tmp_path)) as session:
        sometime = session.run.bisect(predicates.bad_if("left.pop() == 120"), linear=True)
        assert (sometime.answer, sometime.culprit, sometime.is_monotone) == (Answer.UNKNOWN, None, False)
        assert "inconclusive" in " ".join(headline(session, sometime))
        at_last = session.run.bisect(predicates.bad_if("left.pop() < 120"), linear=True)
        assert (at_last.is_exact, at_last.is_monotone) == (False, False)
        assert "first true after" not in " ".join(headline(session, at_last))
        assert "could not be checked" in at_last.note
        told = facts(session, at_last)
        assert (told["is_monotone"], told["temporary"]) == (None, None)


def test_each_line_is_looked_at_across_a_signal_handler_in_pure_computation(tmp_path: Path) -> None:
    with Session(record_file(FOLDER / "alarm.py", tmp_path, status=1)) as session:
        found = session.run.bisect(predicates.bad_if("flag"), linear=True)
        assert named(found) == ("alarm.py", line_of("alarm.py", "flag"))
        assert found.is_exact
        flips = list(begin_bisection(session, predicates.bad_if("flag")).verdict_changes())
        assert [each.is_bad for each in flips] == [True, False, True]
        assert found.culprit is not None
        assert flips[0].count == found.culprit.count
        once = session.run.bisect(predicates.bad_if("i == 20"), linear=True)
        assert once.culprit is not None
        assert once.culprit.source.startswith("for i")
        handled = session.run.bisect(predicates.bad_if("number == 14", frame="on_alarm"))
        assert handled.answer is Answer.FOUND


def test_what_was_printed_or_raised_is_dated_at_its_line(bank: Session) -> None:
    printed = bank.run.bisect(predicates.output("fee of [0-9]"))
    assert printed.culprit is not None
    assert "print" in printed.culprit.source
    raised = bank.run.bisect(predicates.raises("AssertionError"))
    assert raised.culprit is not None
    assert raised.culprit.source.startswith("assert whole()")
    assert bank.run.bisect(predicates.output("no such text")).answer is Answer.NEVER


@pytest.mark.parametrize(
    ("words", "predicate", "mark"),
    [
        ((), predicates.raises("AssertionError"), "ends"),
        ((), predicates.raises("ValueError"), "caught"),
        (("exits",), predicates.raises("SystemExit"), "exits"),
    ],
)
def test_what_a_line_that_raises_took_from_outside_ends_with_the_exception(
    tmp_path: Path, words: tuple[str, ...], predicate: Predicate, mark: str
) -> None:
    """After it the interpreter prints the traceback, and flushes the streams."""
    with Session(record_file(FOLDER / "ends.py", tmp_path, *words, status=1)) as session:
        culprit = session.run.bisect(predicate).culprit
        assert culprit is not None
        assert culprit.line == line_of("ends.py", mark)
        calls = [each.gate for each in events_of(session, min(culprit.events), max(culprit.events))]
        assert (calls[0], calls[-1]) == ("_io.FileIO.__init__", "_io.FileIO.close")
        assert "_io.FileIO.write" not in calls


def test_what_is_printed_of_an_exception_was_not_taken_by_the_line_that_raised_it(tmp_path: Path) -> None:
    with Session(record_file(FOLDER / "ends_at_once.py", tmp_path, status=1)) as session:
        culprit = session.run.bisect(predicates.output("no more")).culprit
        assert culprit is not None
        assert (culprit.source, culprit.events) == ('raise SystemExit("no more")', ())


def test_a_value_that_a_call_returns_is_the_callers(returns: Session) -> None:
    found = returns.run.bisect(
        predicates.bad_if("balance < 0"), last=_count_of(returns, line_of("returns.py", "binds") + 1)
    )
    assert named(found) == ("returns.py", line_of("returns.py", "binds"))
    last = returns.run.bisect(predicates.bad_if("balance == 20"))
    assert named(last) == ("returns.py", line_of("returns.py", "last"))


def _count_of(session: Session, line: int) -> int:
    file = next(each.file for each in session.index.hits if each.file.endswith("returns.py"))
    return next(each.count for each in session.run.log(file, line, "0"))


def test_another_lanes_line_is_named(lanes: Session) -> None:
    found = lanes.run.bisect(predicates.bad_if("values['limit'] < 0"))
    assert named(found) == ("lanes.py", line_of("lanes.py", "spoils"))
    assert found.culprit is not None
    assert found.culprit.lane != 0


def test_variables_of_a_function_that_is_called_often(scopes: Session) -> None:
    predicate = predicates.bad_if("total < 0", frame="parse")
    found = scopes.run.bisect(predicate)
    assert named(found) == ("scopes.py", line_of("scopes.py", "parse"))


def test_variables_of_a_call_that_waits_in_another_thread(tmp_path: Path) -> None:
    with Session(record_file(FOLDER / "callers.py", tmp_path, status=1), spacing=0.001) as session:
        predicate = predicates.check("account.balance == account.paid", frame="main")
        found = begin_bisection(session, predicate).permanent()
        assert named(found) == ("callers.py", line_of("callers.py", "loses"))
        assert found.culprit is not None
        assert [each.before for each in found.culprit.values[:2]] == ["625", "625"]
        assert found.passing == 49
        first = begin_bisection(session, predicate).scan()
        assert named(first) == ("callers.py", line_of("callers.py", "for a while"))


@pytest.fixture(scope="module")
def suspended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield from opened("suspended.py", tmp_path_factory.mktemp("suspended"))


@pytest.mark.parametrize(
    ("expression", "frame", "mark"),
    [
        ("box['q'] == 0", "provide", "consumer"),
        ("full['q'] == 0", "receive", "at once"),
        ("got == -1", "receive", "receives"),
        ("crate['q'] == 0", "deliver", "of two"),
        ("pot['q'] == 0", "hold", "thread"),
        ("state['q'] == 0", "owner", "task"),
        ("parcel['q'] == 0", "produce", "async consumer"),
    ],
)
def test_variables_of_a_call_that_is_suspended(suspended: Session, expression: str, frame: str, mark: str) -> None:
    predicate = predicates.bad_if(expression, frame=frame)
    wanted = ("suspended.py", line_of("suspended.py", mark))
    found = suspended.run.bisect(predicate)
    assert named(found) == wanted
    assert found.culprit is not None
    assert found.culprit.before is not Verdict.BAD
    assert named(suspended.run.bisect(predicate, linear=True)) == wanted
    assert named(begin_bisection(suspended, predicate).permanent()) == wanted
    turned = next(each for each in begin_bisection(suspended, predicate).verdict_changes() if each.is_bad)
    assert (Path(turned.file).name, turned.line) == wanted


def test_what_never_was_or_always_is_or_cannot_be_told_is_said(bank: Session) -> None:
    never = bank.run.bisect(predicates.bad_if("len(accounts) > 10"))
    assert (never.answer, never.culprit, never.last_reason) == (Answer.NEVER, None, "")
    always = bank.run.bisect(predicates.bad_if("True"))
    assert (always.answer, always.culprit) == (Answer.ALWAYS, None)
    unknown = bank.run.bisect(predicates.bad_if("blance < 0"))
    assert unknown.answer is Answer.NEVER
    assert "blance" in unknown.last_reason


def test_a_name_that_comes_to_be_is_undecided_before(bank: Session) -> None:
    found = bank.run.bisect(predicates.bad_if("'whole' in globals() and whole is not None"), last="50%")
    assert found.answer is Answer.FOUND
    born = bank.run.bisect(predicates.bad_if("names is not None"))
    assert born.culprit is not None
    assert born.culprit.before is Verdict.UNDECIDED
    assert "NameError" in born.culprit.before_reason
    assert born.culprit.source == "names = list(accounts)"


@pytest.mark.parametrize(
    "make",
    [
        lambda: predicates.bad_if("accounts["),
        lambda: predicates.bad_if("x = 1"),
        lambda: predicates.output("("),
        lambda: predicates.function("nowhere.py:f"),
        lambda: predicates.function(f"{FOLDER / 'asked.py'}:missing"),
        lambda: predicates.function("asked"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(make: object) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=r"\.$"):
        make()


def test_moments_in_the_wrong_order_are_refused(bank: Session) -> None:
    with pytest.raises(UsageError, match="Empty range"):
        bank.run.bisect(predicates.bad_if(LOST), first="90%", last="10%")


def test_random_thresholds_agree_with_a_look_at_every_line(bank: Session) -> None:
    """A counter that only grows changes once: every form of the search finds the same line."""
    chance = random.Random(11)
    for _ in range(3):
        predicate = predicates.bad_if(f"transfer >= {chance.randrange(1, 2900)}")
        searched, scanned = bank.run.bisect(predicate), bank.run.bisect(predicate, linear=True)
        assert searched.culprit is not None
        assert scanned.culprit is not None
        assert (searched.culprit.count, searched.culprit.seen) == (scanned.culprit.count, scanned.culprit.seen)
        assert searched.is_monotone
        assert re.search(r"for transfer in", searched.culprit.source)


HISTORIES = int(os.environ.get("TEST_HISTORIES", "12"))
"""Of five hundred; `tox -e bisect` takes all of them."""


@pytest.mark.timeout(1800 if HISTORIES > 100 else 300)
def test_histories_of_a_program_agree_with_a_look_at_every_step(tmp_path: Path) -> None:
    program = FOLDER / "histories.py"
    known = runpy.run_path(str(program))
    with Session(record_file(program, tmp_path), spacing=0.0005) as session:
        line = next(at for at, text in enumerate(program.read_text().splitlines(), 1) if text == "    done = step")
        passed = [each.count for each in session.run.log(str(program), line, "0")]
        assert len(passed) == known["STEPS"]
        chance = random.Random(3)
        counts = Counter(
            _agrees(session, number, known["histories"][number], passed, chance) for number in range(HISTORIES)
        )
    assert counts["never"] > 0
    assert counts["once"] > HISTORIES // 3
    assert counts["often"] > HISTORIES // 20


def _agrees(session: Session, number: int, history: list[int], passed: list[int], chance: random.Random) -> str:
    limit = chance.randint(min(history) - 1, max(history) + 3)
    bad = [at for at, value in enumerate(history) if value > limit]
    became = [at for at in bad if at == 0 or history[at - 1] <= limit]
    predicate = predicates.bad_if(f"state[{number}] > {limit}")
    first = passed[0] - 600
    found = session.run.bisect(predicate, first=first)
    scanned = session.run.bisect(predicate, first=first, linear=True)
    assert (scanned.culprit.seen if scanned.culprit is not None else None) == (passed[bad[0]] if bad else None)
    if history[-1] <= limit:
        assert found.answer is Answer.NEVER
        return "never"
    assert found.culprit is not None
    assert found.culprit.seen in [passed[at] for at in became]
    if len(became) == 1:
        assert found.is_monotone
        return "once"
    return "often"
