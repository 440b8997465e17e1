"""After `set var` the program continues as another run than the recorded one: as far as the recording has answers.

Its output is free, and it may ask in another order. At its end the reason is reported, and the session is at the line.
"""

from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint, Here
from replaydbg.record import record
from tests.harness.replay_cases import FIXTURES

pytestmark = pytest.mark.slow

_FAILS = """def price(q, rate):
    total = q * rate
    return total
def main():
    out = []
    for q in (5, 20, 30):
        out.append(price(q, 7))
    assert sum(out) < 300, out
    print("fine", out)
main()
"""
_ASKS = """import os, sys, time
name = "a"
for number in range(3):
    print(number, name, time.time() > 0)
with open(name) as file:
    text = file.read()
print(text, len(os.urandom(3)))
sys.exit(len(text))
"""
# The sleep is a crossing, at which another thread goes on.
_THREADS = """import threading, time
word = "recorded"
def work(number):
    for each in range(3):
        print(number, each, word)
        time.sleep(0.001)
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("end", word)
"""


@contextmanager
def _at(source: str, line: int, directory: Path, *, stops: int = 1) -> Iterator[Session]:
    """Record `source`, and move to the `stops`-th time at which `line` is to run."""
    program = directory / "program.py"
    program.write_text(source)
    for name in "ab":
        (directory / name).write_text(f"text of {name}")
    with Session(record([str(program)], output=directory / "r.rdbg").path) as session:
        session.seek("@start")
        point = session.breakpoints.add(Breakpoint(0, file=session.sources.file_named("program.py"), line=line))
        for _ in range(stops):
            session.go()
        session.breakpoints.remove(point.number)
        yield session


_PROGRAMS = {
    name: FIXTURES / name
    for name in ("files/walking.py", "entropy/uuids.py", "files/write_and_read_back.py", "signals/between_crossings.py")
}


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return recordings of programs that make many requests."""
    made = {}
    for name, path in _PROGRAMS.items():
        directory = tmp_path_factory.mktemp("noop")
        with chdir(directory):
            made[name] = record([str(path)], output=directory / "r.rdbg").path
    return made


def _line(here: Here) -> int:
    return here.top.line if here.top is not None and here.top.file.endswith("program.py") else 0


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_that_no_longer_fails_goes_on_to_its_end(cwd: Path) -> None:
    with _at(_FAILS, 3, cwd, stops=3) as session:
        session.change("total = 10")
        here = session.go()

        assert (here.why, _line(here), here.is_changed) == ("end", 9, True)
        assert (
            here.message == r"the changed run ended: the program ended; output since the change: 'fine [35, 140, 10]\n'"
        )
        assert session.ask.evaluate("out").value is not None
        assert session.go().message == here.message


def test_a_run_that_fails_now_ends_where_it_raises(cwd: Path) -> None:
    with _at(_FAILS, 3, cwd) as session:
        session.change("q = rate = total = None")
        here = session.go()

        assert (here.why, _line(here)) == ("end", 8)
        assert "the program ended with status 1" in here.message
        assert "TypeError: unsupported operand" in here.message


def test_a_run_writes_something_else_and_goes_on(cwd: Path) -> None:
    with _at(_ASKS, 4, cwd, stops=2) as session:
        session.change("name = './a'; number = 'changed'")
        here = session.step()
        while _line(here) != 4:
            here = session.step()

        assert session.change("name = 'a'").is_changed
        here = session.go()
        assert _line(here) == 8
        assert "the program ended with status 9" in here.message
        assert "changed ./a True\\n2 a True\\ntext of a 3\\n" in here.message


def test_a_run_that_needs_an_input_that_was_not_recorded_says_which(cwd: Path) -> None:
    with _at(_ASKS, 4, cwd) as session:
        session.change("name = 'b'")
        here = session.go()

        assert (here.why, _line(here)) == ("end", 5)
        assert here.message.startswith("the changed run cannot continue: event ")
        assert "_io.open()" in here.message or "FileIO" in here.message
        assert "needs an input that is not in the recording" in here.message


def test_threads_that_are_started_after_the_change_run(cwd: Path) -> None:
    with _at(_THREADS, 7, cwd) as session:
        session.change("word = 'changed'")
        here = session.go()

        assert _line(here) == 12
        assert "the program ended" in here.message
        said = here.message.replace("\\\\n", "\\n")
        # One is of the sentence; print() writes in pieces, between which another thread may write.
        assert said.count("changed") == 11, said
        assert r"end changed\n" in said


def test_a_change_while_threads_run_ends_at_the_first_difference(cwd: Path) -> None:
    with _at(_THREADS, 5, cwd, stops=4) as session:
        session.change("globals()['word'] = 'changed'")
        here = session.go()

        assert here.why == "end"
        assert "cannot continue, because it differs from the recording here" in here.message


_MOMENTS = st.lists(st.floats(0, 1), min_size=3, max_size=3)


@pytest.mark.parametrize("name", _PROGRAMS)
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moments=_MOMENTS)
def test_a_change_of_nothing_ends_as_recorded(name: str, moments: list[float], recordings: dict[str, Path]) -> None:
    """Wherever it is made: the events replayed until then are consumed, and all later ones are found."""
    with Session(recordings[name]) as session:
        first, last = session.first_own, session.index.end
        for moment in moments:
            session.seek(first + int(moment * (last - first)))
            session.change("pass")
            assert session.go().message.startswith(f"the changed run ended: {session.index.ended}")


def test_going_back_returns_to_the_recorded_run(cwd: Path) -> None:
    with _at(_FAILS, 3, cwd, stops=3) as session:
        session.change("total = 10")
        session.go()
        here = session.seek("@exc")

        assert (here.is_changed, _line(here)) == (False, 8)
