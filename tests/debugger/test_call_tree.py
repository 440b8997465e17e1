"""`calls`: which functions a part of the run called, compared with what `sys.setprofile` tells of a plain run."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.calls.call_tree import CallEntry
from replaydbg.engine.protocol import RunOrder
from replaydbg.engine.reports import EndReport, FunctionCall
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL, Typed

pytestmark = pytest.mark.slow

PROGRAM = TRAVEL / "calls_in_many_ways.py"
PROFILED = """
import json, sys, threading
told = []
def listen(frame, what, argument):
    code = frame.f_code
    if what == "call" and code.co_filename.endswith("calls_in_many_ways.py"):
        callers, at = [], frame.f_back
        while at is not None:
            if at.f_code.co_filename.endswith("calls_in_many_ways.py"):
                callers.append(at.f_code.co_qualname)
            at = at.f_back
        told.append([threading.current_thread() is threading.main_thread(), code.co_qualname, callers[::-1]])
source = open(sys.argv[1]).read()
code = compile(source, sys.argv[1], "exec")
threading.setprofile(listen)
sys.setprofile(listen)
exec(code, {"__name__": "__main__"})
sys.setprofile(None)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(record_file(PROGRAM, tmp_path_factory.mktemp("calls")), spacing=0.01) as opened:
        yield opened


def callers_of(calls: Sequence[FunctionCall], call: FunctionCall) -> list[str]:
    found = []
    while call.parent:
        call = calls[call.parent - 1]
        found.append(call.code.function)
    return found[::-1]


def test_all_calls_of_own_code_are_those_of_a_plain_run(session: Session) -> None:
    plain = subprocess.run(
        [sys.executable, "-c", PROFILED, str(PROGRAM)], check=True, capture_output=True, text=True, timeout=60
    )
    expected = json.loads(plain.stdout.splitlines()[-1])
    with closing(session.travel.at(session.first_own)) as worker:
        where = worker.run(RunOrder(until=session.index.end, own=(), most_calls=10_000))
    assert not isinstance(where, EndReport)
    calls = where.calls.each

    found = [(each.lane == 0, each.code.function, callers_of(calls, each)) for each in calls]

    # The stretch begins inside the module; its calls have it as their first caller in the other run.
    assert not where.calls.is_cut
    for is_main in (True, False):
        told = [[name, callers] for in_main, name, callers in expected if in_main == is_main and name != "<module>"]
        mine = [
            [name, ["<module>", *callers] if is_main else callers] for first, name, callers in found if first == is_main
        ]
        assert mine == told
    assert all(each.ended >= each.begun - 1 for each in calls if each.ended)


def flat(entries: Sequence[CallEntry], depth: int = 0) -> list[tuple[int, str, int]]:
    return [
        row for each in entries for row in [(depth, each.code.function, each.count), *flat(each.entries, depth + 1)]
    ]


def test_calls_in_a_row_are_one_entry(session: Session) -> None:
    typed = Typed.at("@start", session)
    typed("start", "advance work")
    top = session.here.top
    assert top is not None

    tree = session.run.calls(top.started)

    assert flat(tree.entries) == [(0, "Shop.add", 3), (1, "clean", 3)]
    assert (tree.calls, tree.is_cut) == (6, False)


def test_a_function_that_raises_has_ended(session: Session) -> None:
    typed = Typed.at("@start", session)
    typed("start", "advance fails")

    said = typed("calls")

    rows = [line for line in said.splitlines() if "calls_in" in line and "thread" not in line]
    assert [row.split()[0] for row in rows] == ["fails", "fails", "fails", "clean"]
    assert "not ended" not in said


def test_the_prompt_shows_stretches_and_libraries(session: Session) -> None:
    typed = Typed.at("@start", session)
    typed("start", "advance main")

    mine, whole, all_ = typed("calls"), typed("calls @start @end"), typed("calls all")

    assert "Shop.add x3  " in mine
    assert "numbers goes on" in mine
    assert "encoder.py" not in mine
    assert "\n  main  " in whole
    assert any(line.startswith("work  ") and "thread 1" in line for line in whole.splitlines())
    assert "JSONEncoder.encode  " in all_
    assert "The first moment must be before the second one." in typed("calls @end @start")
    assert "usage: calls [all] [FROM [TO]]" in typed("calls 1 2 3")


def test_deep_recursion_is_shown_and_cut(tmp_path: Path) -> None:
    program = tmp_path / "deep.py"
    program.write_text("def deep(n):\n    return n and deep(n - 1)\n\n\nfor _ in range(3):\n    deep(900)\n")
    with Session(record_file(program, tmp_path)) as opened:
        typed = Typed.at("@start", opened)
        typed("start")
        said = typed("calls @start @end")
        tree = opened.run.calls(opened.first_own, opened.index.end)
    assert tree.calls == 2703
    assert "Showing the first 200 rows" in said
