"""A bisection evaluates the user's Python: whatever that does, the answer is right, or its absence is reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.bisection import predicates
from replaydbg.debugger.bisection.bisect_results import Answer
from replaydbg.debugger.bisection.run_bisection import begin_bisection
from replaydbg.errors import UsageError
from replaydbg.render.bisection_text import headline
from tests.harness.recording import record_file

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FOLDER = Path(__file__).parents[2] / "fixtures" / "bisect"
SPENDS = 8


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(record_file(FOLDER / "imports.py", tmp_path_factory.mktemp("imports")), spacing=0.001) as session:
        yield session


def asked(name: str, file: str = "asked_otherwise.py") -> predicates.Predicate:
    return predicates.function(f"{FOLDER / file}:{name}")


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("name", ["wrapped", "starred", "imports", "prints"])
def test_a_function_may_be_wrapped_import_and_print(imports: Session, name: str, linear: bool) -> None:
    # Before its first line an environment's own start may import functools, which the function's module then has done.
    found = imports.run.bisect(asked(name), first=imports.first_own, linear=linear)
    assert found.culprit is not None
    assert (Path(found.culprit.file).name, found.culprit.line) == ("imports.py", SPENDS)
    imports.seek(imports.index.moment(found.culprit.seen))
    value = imports.ask.evaluate("step").value
    assert value is not None
    assert value.text == "40"
    assert found.is_exact


@pytest.mark.parametrize("predicate", [asked("generated"), asked("is_lost", "asked_nothing.py")])
@pytest.mark.parametrize("linear", [False, True])
def test_a_function_that_cannot_be_asked_decides_nothing(
    imports: Session, predicate: predicates.Predicate, linear: bool
) -> None:
    found = imports.run.bisect(predicate, linear=linear)
    # An import that fails changes what the interpreter's own start finds cached: not each line can be asked then.
    assert found.answer is Answer.NEVER or (found.answer is Answer.UNKNOWN and linear)
    assert found.culprit is None
    assert "generator" in found.last_reason or "there_is_no_such_module" in found.last_reason


def test_a_cached_function_is_called(imports: Session) -> None:
    assert (imports.run.bisect(asked("cached")).answer, imports.run.bisect(asked("cached")).last_reason) == (
        Answer.NEVER,
        "",
    )


@pytest.mark.parametrize(
    "expression",
    [
        "any(os.fspath('a') and total < -1 for _ in [1])",
        "total is -5",
        "[total := each for each in [total - 4]] and total < -5",
        "(lambda: total < -1)()",
    ],
)
def test_an_expression_may_use_modules_and_assign(imports: Session, expression: str) -> None:
    found = imports.run.bisect(predicates.bad_if(expression))
    assert found.culprit is not None
    assert (Path(found.culprit.file).name, found.culprit.line) == ("imports.py", SPENDS)


@pytest.mark.parametrize("linear", [False, True])
def test_the_outside_is_refused_at_each_line_too(imports: Session, linear: bool) -> None:
    found = imports.run.bisect(predicates.bad_if("step > 3 and __import__('time').time() > 0"), linear=linear)
    assert (found.answer, found.culprit) == (Answer.NEVER, None)
    assert "time.time()" in found.last_reason


@pytest.mark.parametrize("make", [predicates.bad_if, predicates.check, predicates.raises])
def test_a_quoted_expression_is_refused(make: Callable[[str], predicates.Predicate]) -> None:
    for quoted in ('"balance < 0"', "'balance < 0'", 'b"balance < 0"'):
        with pytest.raises(UsageError, match=r"is a string, not a condition: remove the quotes"):
            make(quoted)
    assert make("balance < 0").source == "balance < 0"


@pytest.mark.parametrize("expression", ["await total", "(yield)", "-" * 100_000 + "1"])
def test_what_the_compiler_refuses_is_said(expression: str) -> None:
    with pytest.raises(UsageError, match=r"is not an expression.*\.$"):
        predicates.bad_if(expression)


def test_looking_at_a_functions_variables_keeps_nothing_alive(tmp_path: Path) -> None:
    with Session(record_file(FOLDER / "deletes.py", tmp_path), spacing=0.001) as session:
        found = session.run.bisect(predicates.bad_if("total < 0", frame="work"))
        assert found.culprit is not None
        assert found.culprit.source.endswith("# <- work")
        # Two are there while one takes the other's place: one more would be there if a look had kept it.
        more = session.run.bisect(predicates.bad_if("alive['number'] > 2", frame="work"))
        assert (more.answer, more.culprit) == (Answer.NEVER, None)
        dies = session.run.bisect(predicates.bad_if("len(history) == 20", frame="work"))
        assert dies.culprit is not None
        assert dies.culprit.function == "Thing.__del__"


def test_what_changes_the_program_at_each_line_is_not_believed(imports: Session) -> None:
    """The predicate counts its evaluations in the program itself."""
    counts = predicates.bad_if("globals().setdefault('asked', []).append(1) or len(asked) > 30")
    for linear in (False, True):
        found = imports.run.bisect(counts, linear=linear)
        assert (found.answer, found.culprit) == (Answer.UNKNOWN if linear else Answer.NEVER, None)
    with pytest.raises(UsageError, match="side effects"):
        list(begin_bisection(imports, counts).verdict_changes())


def test_what_is_true_in_between_only_may_be_found_at_each_line(tmp_path: Path) -> None:
    with Session(record_file(FOLDER / "changed.py", tmp_path), spacing=10) as session:
        between = predicates.bad_if("number == 20")
        told = list(headline(session, session.run.bisect(between)))
        assert told[-1].startswith("It may have been temporarily true before that: --linear ")
        assert session.run.bisect(between, linear=True).culprit is not None
        assert len(list(headline(session, session.run.bisect(predicates.bad_if("number == 99"), linear=True)))) == 1


def test_a_function_that_never_runs_and_a_name_that_never_is_are_told(imports: Session) -> None:
    assert imports.run.bisect(predicates.bad_if("True", frame="ad")).last_reason == "ad() never runs there"
    assert "nothing" in imports.run.bisect(predicates.bad_if("nothing > 0", frame="add")).last_reason
    never = imports.run.bisect(predicates.bad_if("amount > 9", frame="add"))
    assert (never.answer, never.last_reason, never.is_exact) == (Answer.NEVER, "", True)


def test_what_never_ends_is_given_up(imports: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replaydbg.debugger.bisection.verdict_answers.LONGEST_STRETCH", 1.0)
    with pytest.raises(UsageError, match=r"longer than \d+ s.*\.$"):
        imports.run.bisect(predicates.bad_if("amount < 0 and any(iter(int, 1))", frame="add"))


def test_what_happened_before_the_search_begins_is_always_so(imports: Session) -> None:
    printed = imports.run.bisect(predicates.output("-5"))
    assert printed.culprit is not None
    flips = list(begin_bisection(imports, predicates.output("-5")).verdict_changes())
    assert [(each.count, each.is_bad) for each in flips] == [(printed.culprit.count, True)]


def test_output_matches_as_soon_as_it_does(tmp_path: Path) -> None:
    with Session(record_file(FOLDER / "printed.py", tmp_path, status=1), spacing=0.001) as session:
        found = session.run.bisect(predicates.output("(?s)begin.*end"))
        assert found.culprit is not None
        assert found.culprit.source.endswith("# <- first")
        late = session.run.bisect(predicates.output("begin"), first=found.culprit.moment)
        assert late.answer is Answer.ALWAYS
        caught = session.run.bisect(predicates.raises("KeyError"))
        assert caught.culprit is not None
        assert caught.culprit.source.endswith("# <- caught")
        assert (
            session.run.bisect(predicates.raises("KeyError"), first=caught.culprit.seen_moment).answer is Answer.NEVER
        )
        attribute = session.run.bisect(predicates.raises("cart.total"))
        assert attribute.culprit is not None
        assert attribute.culprit.source.endswith("# <- spoils")


@pytest.mark.parametrize("linear", [False, True])
def test_the_values_shown_are_those_of_the_run_whatever_the_question_changes(tmp_path: Path, linear: bool) -> None:
    with Session(record_file(FOLDER / "changed.py", tmp_path)) as session:
        changing = predicates.bad_if("shared.append(1) or shared.extend([]) or len(shared) > 3")
        assert shown(session, changing, linear) == {
            "shared": ("['base', 'a']", "['base', 'a', 'b']"),
            "len(shared)": ("2", "3"),
            "shared.append(1)": ("None", "None"),
            "shared.extend([])": ("None", "None"),
        }
        using = predicates.bad_if("next(numbers) > 20")
        assert shown(session, using, linear)["next(numbers)"] == ("20", "21")


def shown(session: Session, predicate: predicates.Predicate, linear: bool) -> dict[str, tuple[str, str]]:
    culprit = session.run.bisect(predicate, first=session.first_own, linear=linear).culprit
    assert culprit is not None
    return {each.source: (each.before, each.after) for each in culprit.values}


@pytest.fixture(scope="module")
def raising(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    recording = record_file(FOLDER / "raising.py", tmp_path_factory.mktemp("raising"), status=1)
    with Session(recording, spacing=0.001) as session:
        yield session


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(("kind", "mark"), [("KeyError", "own"), ("ModuleNotFoundError", "missing")])
def test_an_exception_of_the_programs_own_code_comes_before_those_of_libraries(
    raising: Session, kind: str, mark: str, linear: bool
) -> None:
    found = raising.run.bisect(predicates.raises(kind), linear=linear)
    assert found.culprit is not None
    assert found.culprit.source.endswith(f"# <- {mark}")
    assert ("in libraries and imports; `catch KeyError` in the prompt" in found.note) is (kind == "KeyError")


def test_where_a_library_raised_it_is_told_if_no_code_of_the_programs_did(raising: Session) -> None:
    found = raising.run.bisect(predicates.raises("JSONDecodeError"))
    assert found.culprit is not None
    assert Path(found.culprit.file).parent.name == "json"
    assert re.match(
        r"Your own code did not raise it there; libraries and imports raised it 3 times, first in /.*\.py:\d+ \w+",
        found.note,
    )


def test_exceptions_are_looked_for_from_a_moment_on_and_each_is_listed(raising: Session) -> None:
    every = begin_bisection(raising, predicates.raises("KeyError"))
    flips = list(every.verdict_changes())
    marks = [raising.source_line(each.file, each.line).rpartition("# <- ")[2] for each in flips]
    assert (marks, [each.is_bad for each in flips]) == (["own", "own", "ends"], [True] * 3)
    assert re.match(r"In addition, \S+ was raised ", every.note)
    later = raising.run.bisect(predicates.raises("KeyError"), first=flips[0].count + 1)
    assert later.culprit is not None
    assert (later.culprit.count, later.note) == (flips[1].count, "")
    assert list(begin_bisection(raising, predicates.raises("KeyError")).verdict_changes(1)) == flips[:1]


RECURSIVE = """\
def fact(n):
    if n == 0:
        return 1
    m = fact(n - 1)
    r = n * m
    return r
fact(3)
"""
NESTED = """\
import asyncio
async def fact(n):
    if n == 0:
        return 1
    m = await fact(n - 1)
    r = n * m
    return r
asyncio.run(fact(3))
"""


@pytest.mark.parametrize(
    ("program", "lines"), [(RECURSIVE, [4, 4, 3, 6]), (NESTED, [5, 5, 4, 7])], ids=["calls", "coroutines"]
)
def test_the_changes_in_calls_of_calls_come_in_the_order_of_time(
    tmp_path: Path, program: str, lines: list[int]
) -> None:
    path = tmp_path / "nested_calls.py"
    path.write_text(program)
    with Session(record_file(path, tmp_path)) as session:
        flips = list(begin_bisection(session, predicates.bad_if("n == 1", frame="fact")).verdict_changes())
    counts = [each.count for each in flips]
    assert counts == sorted(set(counts))
    assert [each.line for each in flips] == lines
    assert [each.is_bad for each in flips] == [True, False, True, False]


def test_a_violation_that_passes_is_ignored_where_asking_changes_the_program(tmp_path: Path) -> None:
    """Lines are bisected in copies then, and two thirds of those in the loop are in the middle of a booking."""
    with Session(record_file(FOLDER / "counts_its_checks.py", tmp_path, status=1), spacing=60) as session:
        found = session.run.bisect(predicates.bad_if("ledger.is_wrong()"))
        assert found.culprit is not None
        assert "side effects" in found.note
        assert found.culprit.source == "ledger.paid += 1"
        assert [each for each in found.looks if each.is_check]
        assert found.is_monotone
