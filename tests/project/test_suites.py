"""The harness that runs test suites of packages reads, compares and judges correctly: a wrong one finds nothing."""

import json
import sys
from pathlib import Path

import pytest

from tests.harness.process import Finished
from tests.suites import outcomes_plugin, run
from tests.suites.__main__ import _write_document, main, rows_in
from tests.suites.outcomes import counted, differences, merged_differences, read_outcomes, reason_for
from tests.suites.prepare import Prepared
from tests.suites.run import Options, Pass, Result, check, kept_tests, replay_failure
from tests.suites.suite import Suite
from tests.suites.suites import SUITES


def finished(stdout: bytes = b"", stderr: bytes = b"", status: int = 0) -> Finished:
    return Finished((), status, stdout, stderr, 0.0, 0.0, False)


def prepared(directory: Path, **more: object) -> Prepared:
    return Prepared(Suite("small", "two tests", "small==1", **more), Path(sys.executable), directory)  # type: ignore[arg-type]


def result(plain: dict[str, str], recorded: dict[str, str], **more: object) -> Result:
    passes = [Pass(each, finished(), None) for each in (plain, recorded)]
    found = differences(plain, recorded)
    return Result(prepared(Path(), **more), passes[:1], passes[1:], found)


def test_a_test_that_ends_otherwise_is_found() -> None:
    plain = {"a": "passed", "b": "failed", "c": "skipped"}

    found = differences(plain, {"a": "passed", "b": "passed", "d": "error"})

    assert [str(each) for each in found] == [
        "b: failed plain, passed recorded",
        "c: skipped plain, not run recorded",
        "d: not run plain, error recorded",
    ]
    assert not any(each.is_unsteady for each in found)


def test_what_comes_in_both_ways_is_unsteady() -> None:
    plain = [{"a": "passed", "b": "passed"}, {"a": "failed", "b": "passed"}]
    recorded = [{"a": "failed", "b": "failed"}, {"a": "failed", "b": "failed"}]

    found = merged_differences(plain, recorded, ["a", "b"])

    assert [(each.test, each.is_unsteady) for each in found] == [("a", True), ("b", False)]


def test_outcomes_of_a_run_that_died_are_none(tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text('{"a": "pas')

    assert read_outcomes(tmp_path / "half.json") == read_outcomes(tmp_path / "absent.json") == {}


def test_addresses_in_node_ids_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "it.json").write_text('{"t.py::test[<object at 0x7f0011223344>]": "passed"}')

    assert read_outcomes(tmp_path / "it.json") == {"t.py::test[<object at 0x>]": "passed"}
    assert counted({"a": "passed", "b": "passed", "c": "failed"}) == "2 passed, 1 failed"


def test_a_reason_is_for_tests_that_begin_with_its_name() -> None:
    reasons = {"t.py::test_a": "all of them", "t.py::test_a[1]": "this one"}

    assert reason_for("t.py::test_a[1]", reasons) == "this one"
    assert reason_for("t.py::test_a[2]", reasons) == "all of them"
    assert reason_for("t.py::test_b", reasons) is None


def test_a_difference_fails_unless_it_has_a_reason() -> None:
    plain, recorded = {"a": "passed"}, {"a": "failed"}

    assert result(plain, recorded).is_failed
    assert not result(plain, recorded, differs={"a": "a reason"}).is_failed


def test_a_reason_without_a_difference_fails() -> None:
    equal = {"a": "passed"}

    assert result(equal, equal, differs={"a": "a reason"}).is_failed


@pytest.mark.parametrize(
    ("stderr", "printed", "failure"),
    [
        (b"replaydbg: the recording ends here, after event 1,200: the test ended.\n", b"..s", None),
        (b"replaydbg: the recording ends here, after event 1200: the test ended.\n", None, None),
        (b"replaydbg: the recording ends here, after event 900: the test ended.\n", b"..", "it ended after event 900"),
        (b"replaydbg: the recording ends here, after event 1200: the test ended.\n", b".F", "it prints something else"),
        (b"Replay diverged in thread main, event 7.\n  recorded: x\n", b"..", "exit code 4: Replay diverged"),
        (b"", b"..", "exit code 4: it says nothing"),
    ],
)
def test_a_replay_must_come_to_the_end_and_print_the_same(
    stderr: bytes, printed: bytes | None, failure: str | None
) -> None:
    found = replay_failure(finished(b"..", stderr, 4 if b"ends here" not in stderr else 0), 1200, printed)

    assert (found is None) == (failure is None)
    assert (found or "").startswith(failure or "")


def test_kept_tests_are_found_by_node_id(tmp_path: Path) -> None:
    rows = {"results": [{"directory": "one", "nodeid": "t.py::test_one"}], "passed": []}
    rows["passed"].append({"directory": "two", "nodeid": "t.py::test_two"})
    (tmp_path / "index.json").write_text(json.dumps(rows))

    assert kept_tests(tmp_path) == {f"t.py::test_{name}": tmp_path / name for name in ("one", "two")}
    assert kept_tests(tmp_path / "nothing") == {}


@pytest.mark.slow
def test_a_suite_is_run_compared_and_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_small.py").write_text(
        "import random, pytest\n\n"
        "def test_time():\n    import time\n    assert time.time() > 0\n\n"
        "def test_chance():\n    print(random.random())\n\n"
        "def test_left_out():\n    raise ValueError\n\n"
        "@pytest.mark.xfail\ndef test_expected():\n    raise ValueError\n"
    )
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "suites_outcomes.py").write_text(Path(outcomes_plugin.__file__).read_text())
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "plugin"))
    monkeypatch.setattr(run, "AGAIN", 0)
    said: list[str] = []
    options = Options(timeout=60, rounds=1, replays=2, keep=tmp_path / "kept")
    suite = prepared(tmp_path, left_out={"tests/test_small.py::test_left_out": "it fails"})

    found = check(suite, options, is_plain=False, say=said.append)

    outcomes = {"test_time": "passed", "test_chance": "passed", "test_expected": "xfailed"}
    assert found.plain[0].outcomes == {f"tests/test_small.py::{name}": it for name, it in outcomes.items()}
    assert found.trouble is None
    assert found.recorded[0].outcomes == found.plain[0].outcomes
    assert [each.failure for each in found.replays] == [None, None]
    assert not found.is_failed
    assert not (tmp_path / "kept" / "small").exists()
    assert any("recorded: 3 tests" in each for each in said)


def test_names_are_unique_and_versions_are_pinned() -> None:
    assert len({each.name for each in SUITES}) == len(SUITES)
    assert all("==" in each for suite in SUITES for each in (suite.distribution, *suite.requires))


def test_suites_are_listed_and_unknown_ones_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert SUITES[0].name in capsys.readouterr().out
    assert main(["--only", "nonesuch"]) == 2
    assert "nonesuch" in capsys.readouterr().err


def test_a_page_keeps_the_rows_of_other_suites(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    one, other = (
        [SUITES[at].name, "1.0", "it does", "7 passed", "0", "20 of 20", plain, recorded, "1.50", "equal"]
        for at, (plain, recorded) in enumerate([("2.0", "3.0"), ("4.0", "3.0")])
    )
    _write_document(page, [one], is_whole=True)

    _write_document(page, [other], is_whole=False)

    assert rows_in(page) == {one[0]: one, other[0]: other}
    summary = "2 of 2 suites are equal. In total they take 1.00 times as long when recorded (median: 1.12)."
    assert summary in page.read_text()
    assert rows_in(tmp_path / "absent.md") == {}
