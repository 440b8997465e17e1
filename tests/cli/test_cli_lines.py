"""`replaydbg hits` and `replaydbg replay --to EVENT:LINES`: the step clock's counts, as text and as JSON."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.typed import TRAVEL

pytestmark = pytest.mark.slow

PROGRAM = """\
import time
def double(n):
    return n + n
for i in range(3):
    print(double(i))
    time.time()
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("lines")
    program, path = directory / "program.py", directory / "a.rdbg"
    program.write_text(PROGRAM)
    subprocess.run(tool.record(sys.executable, path, ["-S", str(program)]), check=True, capture_output=True)
    return path


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "replaydbg", *words], capture_output=True, text=True, check=False)


def test_hits_of_each_line(recording: Path) -> None:
    shown = run("hits", str(recording), "--file", "*/program.py")

    program = recording.parent / "program.py"
    rows = [line.split("\t") for line in shown.stdout.splitlines()]
    assert shown.returncode == 0
    assert rows[0] == ["4", f"{program}:4", "<module>"]
    assert ["3", f"{program}:3", "double"] in rows
    assert f"lines ran under Python {sys.version.split()[0]}" in shown.stderr
    assert "double\n" not in shown.stderr


def test_hits_as_json(recording: Path) -> None:
    facts = json.loads(run("hits", str(recording), "--json", "--limit", "1").stdout)

    assert facts["lines"][0]["hits"] == 4
    assert facts["mechanism"] == ("tracing" if sys.version_info < (3, 12) else "monitoring")
    assert facts["lines_run"] >= sum(each["hits"] for each in facts["lines"])


def test_stops_at_a_line(recording: Path) -> None:
    facts = json.loads(run("replay", str(recording), "--to", "2:1", "--json").stdout)
    shown = run("replay", str(recording), "--to", "2:1")

    assert facts["events"] == 2
    assert facts["lines_since_event"] == 1
    assert "at line 1 after event 2, before it runs" in shown.stderr
    assert shown.returncode == 0


def test_more_lines_than_there_are(recording: Path) -> None:
    shown = run("replay", str(recording), "--to", "1:99999")

    assert "before event 2: only " in shown.stderr


@pytest.mark.parametrize("moment", ["x", "0", "3:0", "3:", ":3", "3:x"])
def test_moments_that_make_no_sense(recording: Path, moment: str) -> None:
    shown = run("replay", str(recording), "--to", moment)

    assert shown.returncode == 2
    assert "--to cannot be" in shown.stderr


def test_offsets_of_calls_are_the_same_while_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.rdbg"
    program = TRAVEL / "reads_offsets_of_calls.py"
    recorded = subprocess.run(tool.record(sys.executable, path, [str(program)]), check=True, capture_output=True)

    asked = run("seek", "-q", str(path), "@exc", "--json")

    assert (asked.returncode, asked.stderr) == (0, "")
    assert recorded.stdout.decode() == run("replay", str(path)).stdout


OFFSET_OF_A_VARIABLE = """\
def chosen(is_set):
    if is_set:
        found = 1
    return 1, found
for _ in range(30):
    chosen(True)
try:
    chosen(False)
except UnboundLocalError as error:
    print(error.__traceback__.tb_next.tb_lasti)
after = 3
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="only 3.11 runs two instructions as one while it is not traced")
def test_a_question_about_a_run_that_differs_while_lines_are_counted_says_so(tmp_path: Path) -> None:
    program, path = tmp_path / "program.py", tmp_path / "a.rdbg"
    program.write_text(OFFSET_OF_A_VARIABLE)
    subprocess.run(tool.record(sys.executable, path, [str(program)]), check=True, capture_output=True)
    assert run("replay", str(path)).returncode == 0

    for words in (["log", str(path), "program.py:11", "1"], ["seek", "-q", str(path), "@end"]):
        asked = run(*words)
        first = next(line for line in asked.stderr.splitlines() if line.startswith("replaydbg: The "))
        assert first.startswith("replaydbg: The replay diverged from the recording here: event "), asked
        assert " Nothing after event " in first
