"""`replaydbg check` and `replay --until-outcome`: test whether edited code still fails on recorded inputs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.recording import record_file
from tests.harness.surroundings import without_steering

PROGRAM = """\
import sys

def share(total, people):
    return total // people

amounts = [int(word) for word in open("input.txt").read().split()]
shares = [share(100, amount) for amount in amounts]
print(shares)
"""


def tool(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = without_steering(os.environ) | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(
        [sys.executable, "-m", "replaydbg", *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    (tmp_path / "shares.py").write_text(PROGRAM)
    (tmp_path / "input.txt").write_text("4 0 5")
    recording = record_file(tmp_path / "shares.py", tmp_path, status=1)
    (tmp_path / "input.txt").unlink()
    return recording


def edit(recording: Path, old: str, new: str) -> None:
    program = recording.with_suffix(".py")
    text = program.read_text()
    assert old in text
    program.write_text(text.replace(old, new))


@pytest.mark.parametrize("command", [["check"], ["replay", "--current-source", "--until-outcome"]])
def test_verdicts(failed: Path, command: list[str]) -> None:
    def verdict() -> tuple[int, str]:
        ended = tool(failed.parent, *command, failed.name)
        lines = [line for line in ended.stdout.splitlines() if not line.startswith(("[", " "))]
        return ended.returncode, lines[0]

    text = "division by zero" if sys.version_info >= (3, 14) else "integer division or modulo by zero"
    failure = f"ZeroDivisionError: {text} at shares.py:4"
    assert verdict() == (1, f"still fails: {failure} (no source has changed)")
    edit(failed, "return total", "people += 0\n    return total")
    assert verdict() == (1, f"still fails: {failure.replace(':4', ':5')}")
    edit(failed, "total // people", "total // people if people else 0")
    assert verdict() == (0, f"no longer fails: exit code 0 (recorded: {failure})")
    edit(failed, "print(shares)", "print(shares)\nsys.exit(3)")
    assert verdict() == (125, f"cannot test: fails differently: exit code 3 (recorded: {failure})")
    edit(failed, "import sys", "import sys\nopen('new.txt')")
    status, text = verdict()
    assert status == 125
    assert text.startswith("cannot test: The edited program needs an input that is not in the recording: ")
    assert "new.txt" in text


def test_a_relative_import_path_is_meant_from_where_the_program_ran(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "helper.py").write_text("def half(n):\n    return n / 0\n")
    program = tmp_path / "work" / "program.py"
    program.write_text("import sys\nsys.path[0] = '.'\nimport helper\nhelper.half(4)\n")
    recording = record_file(program, program.parent, status=1)
    (tmp_path / "work" / "helper.py").write_text("def half(n):\n    return n / 2\n")

    ended = tool(tmp_path, "check", str(recording))

    assert ended.stdout.startswith("no longer fails: exit code 0")


def test_an_expression_says_what_is_good(failed: Path) -> None:
    assert tool(failed.parent, "check", failed.name, "--expr", "amounts == [4, 0, 5]").returncode == 0
    assert tool(failed.parent, "check", failed.name, "--expr", "len(amounts) == 2").returncode == 1

    raised = tool(failed.parent, "check", failed.name, "--expr", "shares")

    assert (raised.returncode, raised.stdout) == (
        125,
        "cannot test: shares raised NameError: name 'shares' is not defined\n",
    )


def test_a_program_that_just_ends_cannot_be_asked(failed: Path) -> None:
    edit(failed, "import sys", "import os, sys\nos._exit(3)")

    ended = tool(failed.parent, "check", failed.name, "--expr", "True")

    assert (ended.returncode, ended.stdout.splitlines()[0]) == (
        125,
        "cannot test: the program ended where nothing can be evaluated: exit code 3",
    )


def test_json_has_all_liberties(failed: Path) -> None:
    edit(failed, "total // people", "total // people if people else print('none', flush=True)")
    edit(failed, "for amount in amounts", "for amount in amounts * 30")

    shown = tool(failed.parent, "check", failed.name)
    ended = tool(failed.parent, "check", "--json", failed.name)

    facts = json.loads(ended.stdout)
    assert (ended.returncode, facts["verdict"]) == (0, "good")
    assert facts["recorded"]["exception"] == "ZeroDivisionError"
    assert (facts["now"]["status"], facts["now"]["exception"]) == (0, None)
    assert facts["changed"] == [str(failed.with_suffix(".py"))]
    assert len(facts["deviations"]) == sum(facts["deviation_counts"].values()) > 20
    assert len(shown.stdout.splitlines()) == 1 + 20 + 1
    assert "more: " in shown.stdout.splitlines()[-1]


def test_a_recording_that_ended_well_is_bad_where_the_program_fails_now(tmp_path: Path) -> None:
    (tmp_path / "shares.py").write_text(PROGRAM)
    (tmp_path / "input.txt").write_text("4 5")
    recording = record_file(tmp_path / "shares.py", tmp_path)

    assert tool(tmp_path, "check", recording.name).returncode == 0
    edit(recording, "total // people", "total // (people - 4)")
    ended = tool(tmp_path, "check", recording.name)

    assert ended.returncode == 1
    assert ended.stdout.startswith("fails now: ZeroDivisionError: ")


@pytest.mark.parametrize(
    "words",
    [
        ["no-such-recording"],
        ["shares.rdbg", "--no-such-option"],
        ["shares.rdbg", "--source-root", "nowhere"],
        ["shares.rdbg", "--expr", "1 +"],
    ],
)
def test_a_wrong_question_is_never_a_bad_commit(failed: Path, words: list[str]) -> None:
    ended = tool(failed.parent, "check", *words)

    assert ended.returncode == 128
    assert ended.stderr


def git(folder: Path, *words: str) -> str:
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ["-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "advice.detachedHead=false"]
    return subprocess.run(["git", *who, *words], cwd=folder, env=env, capture_output=True, text=True, check=True).stdout


def test_git_bisect_finds_the_commit_by_one_recording(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    commits = []
    for number in range(16):
        text = PROGRAM.replace("import sys\n", f"import sys\nrelease = {number}\n")
        if number < 9:
            text = text.replace("total // people", "total // people if people else 0")
        if number == 5:
            text = text.replace("import sys\n", "import no_such_module\nimport sys\n")
        (repository / "shares.py").write_text(text)
        git(repository, "add", "shares.py")
        git(repository, "commit", "-q", "-m", f"release {number}")
        commits.append(git(repository, "rev-parse", "HEAD").strip())
    (repository / "input.txt").write_text("4 0 5")
    recording = record_file(repository / "shares.py", repository, status=1).rename(tmp_path / "failure.rdbg")
    (repository / "input.txt").unlink()

    git(repository, "bisect", "start", commits[-1], commits[0])
    said = git(repository, "bisect", "run", sys.executable, "-m", "replaydbg", "check", str(recording))

    assert f"{commits[9]} is the first bad commit" in said
    assert "still fails: ZeroDivisionError" in said
