"""Tests of one name that run more than once in a session, for any reason."""

from pathlib import Path

import pytest

from replaydbg.events.verdict import Verdict
from replaydbg.replay.edited_code import Judge
from tests.harness.plugin_runs import line_of_failure, run_pytest

pytestmark = pytest.mark.slow

COUNTED = """
    import random
    runs = []
    def test_bad():
        runs.append(random.random())
        assert len(runs) > 2
"""

CONFTEST = """
from _pytest.runner import runtestprotocol
def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for _ in range(3):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
"""


def check(folder: Path, names: list[str]) -> None:
    for number, name in enumerate(names):
        recording = folder / "test-results" / name / "rec.rdbg"
        assert line_of_failure(recording) == "assert len(runs) > 2"
        assert f'"attempt": {number}' in (recording.parent / "meta.json").read_text()
        assert Judge(recording, stdout=2, stderr=2, is_replayed_unchanged=True).judge().verdict is Verdict.BAD


def test_asked_for_twice(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, COUNTED, "--keep-duplicates", "test_it.py", "test_it.py")

    names = ["test_it.py-test_bad", "test_it.py-test_bad-retry1"]
    assert ran.counts == {"failed": 2}
    assert ran.kept() == names
    assert [ran.meta(name)["verified"] for name in names] == [True, True]
    check(tmp_path, names)


def test_run_again_by_a_hook_of_the_tests(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)

    ran = run_pytest(tmp_path, COUNTED)

    names = ["test_it.py-test_bad", "test_it.py-test_bad-retry1"]
    assert ran.counts == {"passed": 1}
    assert ran.kept() == names
    check(tmp_path, names)


def test_a_good_one_beside_the_bad(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)

    ran = run_pytest(tmp_path, COUNTED, mode="retry", wait="0")

    assert ran.kept() == ["test_it.py-test_bad", "test_it.py-test_bad-retry1", "test_it.py-test_bad-retry2"]
