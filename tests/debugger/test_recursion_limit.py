"""Without any level of recursion left, every expression can be evaluated, and the program is unaffected."""

import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.bisection import predicates
from replaydbg.debugger.bisection.bisect_results import Answer
from replaydbg.debugger.session_results import Breakpoint
from tests.harness.recording import record_file

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

WALKS = {
    "Python": "    return walk(n + 1)\n",
    "sorted": "    return sorted([n], key=lambda each: walk(each + 1))\n",
    "repr": "    return repr(Deeper(n))\n\nclass Deeper:\n    def __init__(self, n):\n        self.n = n\n"
    "    def __repr__(self):\n        return walk(self.n + 1)\n",
    "property": "    return Deeper(n).next\n\nclass Deeper:\n    def __init__(self, n):\n        self.n = n\n"
    "    @property\n    def next(self):\n        return walk(self.n + 1)\n",
}
HEAD = "import sys\nsys.setrecursionlimit(200)\nbest = 3\ndef walk(n):\n    global deepest\n    deepest = n\n"
DEEP_TEXT = "import json\nbest = 3\nbest = 4\njson.loads('[' * 100000)\n"


def recorded(folder: Path, source: str, status: int = 0) -> Path:
    program = folder / "program.py"
    program.write_text(source)
    return record_file(program, folder, status=status)


@pytest.mark.parametrize("walk", WALKS)
def test_everything_can_be_asked_where_the_limit_is_reached(tmp_path: Path, walk: str) -> None:
    with Session(recorded(tmp_path, HEAD + WALKS[walk] + "best = 4\nwalk(0)\n", 1), spacing=0.004) as session:
        assert "RecursionError" in session.here.message
        session.seek("@exc")
        assert session.ask.evaluate("best + len([1])").value is not None
        assert (
            session.ask.evaluate("sorted([2, 1], key=lambda each: each)[0] + sum(each for each in [1])").error is None
        )
        limit = session.ask.evaluate("__import__('sys').getrecursionlimit()").value
        assert limit is not None
        assert limit.text == "200"
        assert "RecursionError" in (session.ask.evaluate("(lambda f: f(f))(lambda f: f(f))").error or "")
        assert [each.name for each in session.ask.variables()][:1] in (["n"], ["self"], ["each"])
        assert [each.text for each in session.ask.arguments()]
        why = session.run.why("best")
        assert (why.before, why.after) == ("3", "4")
        assert [each.text for each in session.run.history("best")] == ["3", "4"]
        (found, scanned) = (
            session.run.bisect(predicates.bad_if("best == 4"), linear=linear) for linear in (False, True)
        )
        assert found.culprit is not None
        assert scanned.culprit is not None
        assert found.culprit.count == scanned.culprit.count == why.count
        assert scanned.is_exact


@pytest.mark.parametrize("walk", WALKS)
def test_what_depends_on_how_deep_it_went_is_right_or_said_not_to_be(tmp_path: Path, walk: str) -> None:
    source = HEAD + WALKS[walk] + "try: walk(0)\nexcept RecursionError: pass\nsys.exit(deepest)\n"
    deepest = subprocess.run([sys.executable, "-c", source], check=False).returncode
    with Session(recorded(tmp_path, source, deepest)) as session:
        session.seek("@end")
        found = session.ask.evaluate("deepest").value
        assert found is not None
        is_said = "recursion limit" in session.limitations.text
        assert found.text == str(deepest) or is_said, (found, deepest)
        assert not is_said or (walk != "Python" and sys.version_info < (3, 12))


def test_a_value_is_logged_in_the_deepest_call(tmp_path: Path) -> None:
    with Session(recorded(tmp_path, HEAD + WALKS["Python"] + "best = 4\nwalk(0)\n", 1)) as session:
        file = str(tmp_path / "program.py")
        logged = [each.text for each in session.run.log(file, 7, "n")]
        deepest = session.ask.evaluate("deepest").value
        assert deepest is not None
        assert logged == [str(n) for n in range(int(deepest.text) + 1)]


def test_c_code_that_reached_the_limit_is_no_hindrance(tmp_path: Path) -> None:
    with Session(recorded(tmp_path, DEEP_TEXT, 1)) as session:
        assert "RecursionError" in session.here.message
        module = len(session.ask.stack()) - 1
        assert session.ask.evaluate("best", module).error is None
        assert session.run.why("best", module).after == "4"


@pytest.mark.parametrize("walk", ["Python", "property"])
def test_the_limit_comes_at_the_same_call_where_each_line_is_asked(tmp_path: Path, walk: str) -> None:
    """Evaluating in place returns the levels: after the exception the program's level is unchanged."""
    body = "try:\n    walk(0)\nexcept RecursionError:\n    reached = deepest\n"
    body += "print(reached)\nlast = reached\ndone = True\n"
    with Session(recorded(tmp_path, HEAD + WALKS[walk] + body)) as session:
        assert "another way" not in session.here.message
        found = session.run.bisect(predicates.bad_if("'last' in globals() and sorted([1], key=lambda each: each)"))
        scanned = session.run.bisect(predicates.bad_if("'reached' in globals() and reached == deepest"), linear=True)
        assert (found.answer, scanned.answer) == (Answer.FOUND, Answer.FOUND)
        assert found.is_exact
        assert scanned.is_exact
        assert not found.note
        assert not scanned.note


def test_a_change_at_the_limit_gives_the_levels_back(tmp_path: Path) -> None:
    body = "try:\n    walk(0)\nexcept RecursionError:\n    reached = deepest\nlast = reached\n"
    with Session(recorded(tmp_path, HEAD + WALKS["Python"] + body)) as session:
        reached = session.ask.evaluate("reached").value
        assert reached is not None
        deepest = session.run.bisect(predicates.bad_if(f"deepest == {reached.text}")).culprit
        assert deepest is not None
        session.seek(deepest.seen)
        session.change("global best; best = sorted([7], key=lambda each: each)[0]")
        session.breakpoints.add(Breakpoint(0, file=str(tmp_path / "program.py"), line=12))
        session.go()
        told = session.ask.evaluate("(reached, best)").value
        assert told is not None
        assert told.text == f"({reached.text}, 7)"


def test_exceptions_are_not_decoded_to_learn_that_none_is_of_this_kind(tmp_path: Path) -> None:
    program = tmp_path / "raises.py"
    program.write_text("try:\n    raise ValueError\nexcept ValueError:\n    pass\n")

    with Session(record_file(program, tmp_path)) as session:
        assert session.limitations.text == ""
        assert "_raises" not in vars(session.index)
