"""`--replaydbg-html`: a page about each failure beside its recording, named in the report."""

from pathlib import Path

import pytest

from tests.harness.plugin_runs import RANDOM, run_pytest
from tests.html.read_page import read_page

pytestmark = pytest.mark.slow
NAME = "test_it.py-test_bad"


def test_a_page_is_beside_the_recording_of_a_failure(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, RANDOM, "--replaydbg-html")

    assert ran.counts == {"failed": 1, "passed": 2}, ran.output
    page = read_page(tmp_path / "test-results" / NAME / "failure.html")
    assert page.contents["p"][0] == f"Failure in test-results/{NAME}/rec.rdbg"
    assert page.contents["h1"][0].startswith("AssertionError: assert ")
    assert "test_it.py::test_bad" in page.contents["dd"]
    assert any(each.startswith("doubled was bound at ") for each in page.rows)
    assert any(each.startswith("drawn was bound at ") for each in page.rows)
    assert ran.output.count(f"page: test-results/{NAME}/failure.html") == 2
    assert (ran.meta(NAME)["page"], ran.meta(NAME)["no_page"]) == ("failure.html", "")
    assert "[failure.html](failure.html)" in (tmp_path / "test-results" / NAME / "summary.md").read_text()


def test_it_can_be_a_setting_and_pages_of_earlier_sessions_go(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nreplaydbg_html = true\n")
    run_pytest(tmp_path, RANDOM)
    page = tmp_path / "test-results" / NAME / "failure.html"
    assert page.exists()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    ran = run_pytest(tmp_path, RANDOM)

    assert ran.kept() == [NAME]
    assert not page.exists()
    assert "page:" not in ran.output


def test_without_time_for_it_a_page_says_so(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, RANDOM, "--replaydbg-html", wait="0")

    assert ran.counts == {"failed": 1, "passed": 2}, ran.output
    page = read_page(tmp_path / "test-results" / NAME / "failure.html")
    assert page.contents["p"][0].startswith("No page in ")
    assert any("There is no page about this failure" in each for each in page.contents["p"])


def test_earlier_failures_of_one_session_have_their_own_pages(tmp_path: Path) -> None:
    source = """
        def test_first():
            first = 2
            first -= 1
            assert first == 2
        def test_second():
            second = 3
            assert second == 4
    """
    run_pytest(tmp_path, source, "--replaydbg-html", "--replaydbg-bisect")

    for name, value in (("first", 1), ("second", 3)):
        page = read_page(tmp_path / "test-results" / f"test_it.py-test_{name}" / "failure.html")
        assert page.contents["h1"] == [f"AssertionError: assert {value} == {value + 1}"]
        assert f"test_it.py::test_{name}" in page.contents["dd"]
        assert "verified: the whole replay matched" in page.contents["dd"]
        became = [each for each in page.contents["dd"] if each.startswith("not (first == 2) in test_first(): after ")]
        assert len(became) == (name == "first"), page.contents["dd"]
