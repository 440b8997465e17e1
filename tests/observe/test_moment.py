"""`replaydbg.moment` returns the place of its own event, and what is noted there leads back."""

import json
import os
import sys
from pathlib import Path

import pytest

import replaydbg
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering

pytestmark = pytest.mark.slow


def command(folder: Path, *words: str) -> Finished:
    """Run a command; only a replay is strict, since the debugger's collector may differ."""
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    env |= {"REPLAYDBG_TEST_STRICT": "1"} if words[0] == "replay" else {}
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=env, timeout=60)


def recorded(folder: Path, text: str, *options: str) -> str:
    """Return what a recorded program has printed; its replay prints the same."""
    (folder / "program.py").write_text(text)
    finished = command(folder, "record", "-q", *options, "-o", "one.rdbg", "program.py")
    assert finished.status == 0, finished.stderr.decode()
    name = "one.rdbg" if (folder / "one.rdbg").exists() else "one.rdbgs"
    again = command(folder, "replay", name)
    assert (again.status, again.stdout) == (0, finished.stdout), again.stderr.decode()
    return finished.stdout.decode()


def seen(folder: Path, moment: str, name: str = "one.rdbg") -> list[str]:
    """Return the functions of the stack at a moment, the innermost first."""
    finished = command(folder, "seek", name, moment, "--json")
    assert finished.status == 0, finished.stderr.decode()
    return [frame["function"] for frame in json.loads(finished.stdout)["stack"]]


def test_outside_a_recording_there_is_none() -> None:
    assert replaydbg.moment("log", "a text") == ""


def test_a_moment_leads_back(tmp_path: Path) -> None:
    text = """import replaydbg
def first(): return replaydbg.moment("log", "money was found")
def second(): return replaydbg.moment("log", "money was lost")
def third(): return replaydbg.moment()
print(first(), second(), third())
"""

    places = recorded(tmp_path, text).split()

    assert all(place.startswith("one:") and place.endswith(":0") for place in places)
    for place, function in zip(places, ("first", "second", "third"), strict=True):
        assert seen(tmp_path, place)[:2] == ["moment", function]
        assert seen(tmp_path, place.partition(":")[2])[:2] == ["moment", function]
    assert seen(tmp_path, "@log:lost")[1] == "second"
    assert seen(tmp_path, "@log:money")[1] == "first"


@pytest.mark.parametrize("moment", ["@log:nothing", "@trace:money", "@log:"])
def test_what_was_not_noted_is_said(moment: str, tmp_path: Path) -> None:
    recorded(tmp_path, 'import replaydbg; replaydbg.moment("log", "money")')

    finished = command(tmp_path, "seek", "one.rdbg", moment)

    assert finished.status == 2 and b"No such moment" in finished.stderr


def test_a_text_that_was_only_printed_is_found_in_the_output(tmp_path: Path) -> None:
    recorded(tmp_path, 'print("one")\nprint("tw", end="")\nprint("o: lost")\nprint("lost")')

    printed = command(tmp_path, "seek", "one.rdbg", "@log:two: lost")
    missing = command(tmp_path, "seek", "one.rdbg", "@log:three")

    assert (
        b"no call of replaydbg.moment() had this kind and text; the program printed it in line 2 of its output, @out:2"
        in printed.stderr
    ), printed
    assert b"@out" not in missing.stderr


def test_a_process_of_a_group_has_its_number(tmp_path: Path) -> None:
    text = """import os, replaydbg
if os.fork() == 0:
    print(replaydbg.moment("log", "from the child"), flush=True)
    os._exit(0)
os.wait()
"""

    place = recorded(tmp_path, text).strip()

    assert place.startswith("one/2:")
    assert seen(tmp_path, place, "one.rdbgs/2")[1] == "<module>"


def test_texts_of_any_kind_are_noted(tmp_path: Path) -> None:
    text = """import replaydbg
class Text(str): pass
for text in ("", "x" * 5000, "\\udcff\\n\\0", Text("own"), 7):
    assert replaydbg.moment("log", text).startswith("one:"), text
"""

    recorded(tmp_path, text)

    assert seen(tmp_path, "@log:own") and seen(tmp_path, "@log:" + "x" * 1000)


def test_a_future_goes_on_with_it(tmp_path: Path) -> None:
    text = """import replaydbg, threading
def work(): replaydbg.moment("log", "from a thread")
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    recorded(tmp_path, text)

    finished = command(tmp_path, "futures", "one.rdbg", "-n", "4", "--json")

    assert json.loads(finished.stdout)["passed"] == 4


def test_a_text_that_is_equal_comes_before_one_that_contains_it(tmp_path: Path) -> None:
    text = """from replaydbg import moment
def first(): moment("cell", "13")
def second(): moment("cell", "3")
first(); second()
"""
    recorded(tmp_path, text)

    assert seen(tmp_path, "@cell:3")[1] == "second"
    assert seen(tmp_path, "@cell:1")[1] == "first"
