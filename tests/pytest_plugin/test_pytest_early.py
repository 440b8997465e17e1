"""Start pytest as a recorded process before pytest is imported: when, with which orders, and what if they are wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.pytest_plugin.shared.shared_names import LaunchToken, read_launch_token, read_launcher_orders
from replaydbg.pytest_plugin.startup.early import orders_for
from tests.harness.plugin_runs import run_pytest

PASSING = """
    def test_it():
        assert True
"""
SCRIPTS = Path(sys.executable).parent
HEAVY = {"typing", "dataclasses", "inspect", "shutil", "hashlib", "platform", "zstandard", "pytest"}
"""Modules that take a millisecond each, with what they import."""


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """A plugin that writes a letter at each of its imports, so at each start of pytest."""
    (tmp_path / "counted.py").write_text("with open('starts', 'a') as file:\n    file.write('x')\n")
    return tmp_path / "starts"


class TestOrders:
    @pytest.mark.parametrize(
        ("words", "directory", "bisects"),
        [
            ("-m pytest --replaydbg=on", "test-results", False),
            (f"{SCRIPTS}/pytest -q a.py --replaydbg=retry", "test-results", False),
            ("-m pytest --replaydbg=on --replaydbg-dir=a/b --replaydbg-bisect", "a/b", True),
            ("-m pytest --replaydbg-dir a --replaydbg=retain-on-failure -x", "a", False),
        ],
    )
    def test_of_a_plain_command_line(self, words: str, directory: str, bisects: bool) -> None:
        text = orders_for(words.split())

        assert text is not None
        assert tuple(read_launcher_orders(text)) == (str(Path.cwd() / directory), bisects, True, "none", False)

    @pytest.mark.parametrize(
        "words",
        [
            "",
            "-c pass --replaydbg=on",
            "program.py --replaydbg=on",
            "tools/pytest --replaydbg=on",
            "-m coverage run -m pytest --replaydbg=on",
            "-m pytest",
            "-m pytest --replaydbg=off",
            "-m pytest --replaydbg=sometimes",
            "-m pytest --replaydbg on --replaydbg=retry",
            "-m pytest --replaydbg=on --replaydbg=retry",
            "-m pytest -- --replaydbg=on",
            "-m pytest -p no:replaydbg --replaydbg=on",
            "-m pytest -pno:replaydbg --replaydbg=on",
            "-m pytest -n 2 --replaydbg=on",
            "-m pytest -n2 --replaydbg=on",
            "-m pytest --numprocesses=2 --replaydbg=on",
            "-m pytest --tx popen --replaydbg=on",
            "-m pytest --replaydbg=on --replaydbg-dir=",
        ],
    )
    def test_anything_else_is_left_to_the_plugin(self, words: str) -> None:
        assert orders_for(words.split()) is None

    def test_a_directory_that_is_not_plain_text(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.chdir(tmp_path)

        text = orders_for(["-m", "pytest", "--replaydbg=on", '--replaydbg-dir=a "b"\n\udcff\u00fc'])

        assert text is not None
        assert read_launcher_orders(text).directory == f'{tmp_path}/a "b"\n\udcff\u00fc'

    @pytest.mark.parametrize("guess", ["", "?", "?bisect"])
    def test_a_token_states_whether_they_are_a_guess(self, guess: str) -> None:
        token = LaunchToken(os.getppid(), 7, "/a:b", guess)

        assert read_launch_token(token.as_text()) == token


@pytest.mark.slow
class TestStarts:
    def test_an_option_on_the_command_line(self, tmp_path: Path, counted: Path) -> None:
        ran = run_pytest(tmp_path, PASSING, "-p", "counted", mode="on")

        assert ran.counts == {"passed": 1}
        assert ran.kept() == ["test_it.py-test_it"]
        assert counted.read_text() == "x"

    def test_an_option_in_a_file(self, tmp_path: Path, counted: Path) -> None:
        (tmp_path / "pytest.ini").write_text("[pytest]\nreplaydbg = on\n")

        ran = run_pytest(tmp_path, PASSING, "-p", "counted", mode="")

        assert ran.kept() == ["test_it.py-test_it"]
        assert counted.read_text() == "xx"

    @pytest.mark.parametrize("line", ["replaydbg_dir = elsewhere", "addopts = --replaydbg-dir=elsewhere"])
    def test_another_directory_in_the_file(self, tmp_path: Path, counted: Path, line: str) -> None:
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{line}\n")

        ran = run_pytest(tmp_path, PASSING, "-p", "counted", mode="on")

        assert ran.counts == {"passed": 1}
        assert (tmp_path / "elsewhere" / "test_it.py-test_it" / "rec.rdbg").exists()
        assert not (tmp_path / "test-results").exists()
        assert counted.read_text() == "xx"  # the file was seen before the start

    @pytest.mark.parametrize("line", ["replaydbg_dir = elsewhere", "replaydbg_bisect = true", "addopts = -q -n1"])
    def test_a_wrong_guess(self, tmp_path: Path, counted: Path, line: str) -> None:
        other = tmp_path / "other.ini"  # not a name at which the start looks
        other.write_text(f"[pytest]\n{line}\n")

        ran = run_pytest(tmp_path, PASSING, "-p", "counted", "-c", str(other), mode="on")

        assert ran.status == 0
        assert ran.counts == {"passed": 1}
        directory = "elsewhere" if "elsewhere" in line else "test-results"
        assert [each.parent.parent.name for each in tmp_path.glob("*/*/rec.rdbg")] == [directory]
        assert sorted(each.name for each in tmp_path.iterdir() if each.is_dir() and each.name[0] not in "._") == [
            directory
        ]
        # Recorded on the guess; to read the options again; and recorded, here or in a worker.
        assert counted.read_text() == "xxx"

    def test_the_exit_code_of_a_usage_error(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, PASSING, "--no-such-option", mode="on")

        assert ran.status == 4
        assert "unrecognized arguments: --no-such-option" in ran.output


def test_other_programs_see_no_trace() -> None:
    """pytest warns of a plugin that was imported before it."""
    code = "import sys; print([each for each in sys.modules if each.startswith('replaydbg')])"

    for words in (["-c", code], ["-c", code, "--replaydbg=on"]):
        assert subprocess.check_output([sys.executable, *words], text=True) == "[]\n", words


def test_the_launcher_imports_little(tmp_path: Path) -> None:
    """Every recorded session pays for each of them."""
    orders = json.dumps({"directory": str(tmp_path / "results"), "bisects": False})
    script = (
        "import atexit, sys; from replaydbg.pytest_plugin.parent.launcher import main;"
        "atexit.register(lambda: print(*sys.modules)); main(sys.argv[1], ['-c', 'pass'])"
    )

    found = subprocess.check_output([sys.executable, "-c", script, orders], text=True, cwd=tmp_path)
    before = subprocess.check_output([sys.executable, "-c", "import sys; print(*sys.modules)"], text=True)

    assert not HEAVY & (set(found.split()) - set(before.split()))


def test_tests_that_remove_the_recordings_run_once(tmp_path: Path) -> None:
    program = """
        import shutil
        def test_it():
            shutil.rmtree("test-results")
            with open("runs", "a") as file:
                file.write("x")
        def test_other():
            assert 0
    """
    ran = run_pytest(tmp_path, program, mode="on")

    assert ran.status == 1
    assert (ran.folder / "runs").read_text() == "x"
    assert "was removed while the tests ran" in ran.output
