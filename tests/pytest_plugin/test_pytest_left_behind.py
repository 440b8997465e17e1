"""The pytest plugin: what earlier tests left behind that makes a test fail, and the fewest tests that do it again."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replaydbg.debugger import Session
from tests.harness.plugin_runs import ORDERED_AND_APART, Ran, run_pytest

pytestmark = pytest.mark.slow

_ORDER = """
    DEFAULTS = {"currency": "EUR", "labels": {"tax": "VAT"}}
    class Settings:
        def __init__(self, **changes):
            self.values = dict(DEFAULTS)
            for key, value in changes.items():
                self.values[key].update(value)
    def test_first(): assert Settings().values["currency"] == "EUR"
    def test_swiss():
        settings = Settings(labels={"tax": "MWST"})
        assert settings.values["labels"] == {"tax": "MWST"}
    def test_many(): assert Settings()
    def test_labels(): assert DEFAULTS["labels"]["tax"] == "VAT"
"""
_BOTH = """
    A, B = [], {}
    def test_a(): A.append(1)
    def test_other(): A.clear(); A.append(2)
    def test_b(): B["x"] = 1
    def test_bad(): assert not (A and B)
"""
_IN_A_LIBRARY = """
    import os
    def test_one(): pass
    def test_sets(): os.environ["LEFT"] = "1"
    def test_two(): pass
    def test_three(): pass
    def test_bad(): assert "LEFT" not in os.environ
"""


def run_in_order(folder: Path, source: str) -> Ran:
    return run_pytest(folder, source, *ORDERED_AND_APART)


def run_these(ran: Ran, meta: dict[str, Any]) -> str:
    """Run the tests that are named, without the recorder; return the last line, and require that it is printed."""
    command = ["pytest", *meta["reproduced_by"]]
    assert f"fails in the same way with these tests: {shlex.join(command)}" in ran.output
    done = subprocess.run(
        [sys.executable, "-m", *command, "-q", "-p", "no:cacheprovider", "-p", "no:replaydbg", *ORDERED_AND_APART],
        cwd=ran.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.rstrip().rpartition("\n")[2]


def test_the_value_its_line_and_the_shortest_set(tmp_path: Path) -> None:
    ran = run_in_order(tmp_path, _ORDER)

    meta = ran.meta("test_it.py-test_labels")
    (left,) = meta["left_behind"]
    assert (left["name"], left["value"], left["alone"]) == ("test_it.DEFAULTS['labels']['tax']", "'MWST'", "'VAT'")
    assert (left["test"], left["source"]) == ("test_it.py::test_swiss", "self.values[key].update(value)")
    assert f"left by test_it.py::test_swiss at {left['moment']}  test_it.py:7 Settings.__init__" in ran.output
    assert meta["reproduced_by"] == ["test_it.py::test_swiss", "test_it.py::test_labels"]
    assert run_these(ran, meta).startswith("1 failed, 1 passed")
    with Session(ran.recording("test_it.py-test_labels")) as session:  # the moment is one of the kept recording
        session.seek(left["moment"])
        assert [each.function for each in session.here.stack[:2]] == ["Settings.__init__", "test_swiss"]


def test_two_tests_are_needed(tmp_path: Path) -> None:
    ran = run_in_order(tmp_path, _BOTH)

    meta = ran.meta("test_it.py-test_bad")
    assert meta["reproduced_by"] == [f"test_it.py::test_{name}" for name in ("other", "b", "bad")]
    assert {each["test"] for each in meta["left_behind"]} == {"test_it.py::test_other", "test_it.py::test_b"}
    assert run_these(ran, meta).startswith("1 failed, 2 passed")


def test_what_lies_in_a_library_is_found_by_replays_alone(tmp_path: Path) -> None:
    ran = run_in_order(tmp_path, _IN_A_LIBRARY)

    meta = ran.meta("test_it.py-test_bad")
    assert meta["left_behind"] == []
    assert meta["reproduced_by"] == ["test_it.py::test_sets", "test_it.py::test_bad"]
    assert run_these(ran, meta).startswith("1 failed, 1 passed")


def test_a_test_that_fails_alone_has_none(tmp_path: Path) -> None:
    ran = run_in_order(tmp_path, "def test_one(): pass\ndef test_bad(): assert 1 == 2\n")

    meta = ran.meta("test_it.py-test_bad")
    assert (meta["left_behind"], meta["reproduced_by"]) == ([], [])
    assert "these tests" not in ran.output
